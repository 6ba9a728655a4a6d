import type { CallRecord } from '../core/call.ts'
import type { UsageClass } from '../core/usage.ts'
import { tokenClasses } from './rates.ts'

/**
 * A part of a cost: a class of usage, the request as such, what the provider charged beyond (`reported`), or what the one rounding to
 * nano-USD added or took away.
 */
export type CostPart = {
  class: UsageClass | 'request' | 'reported' | 'rounding'
  /** Number of units counted; missing where nothing was. */
  units?: number
  /** USD for a number of units (`per`), as they were counted: with multipliers, and on the average where units had several prices. */
  price?: number
  per?: number
  picoUsd: bigint
}

/** The parts of a settled cost: their sum is exactly the cost. */
export function costParts({ usage, cost }: Pick<CallRecord, 'usage' | 'cost'>): CostPart[] {
  const parts = Object.entries(cost.parts).map(([name, nanoUsd]): CostPart => {
    const known = { class: name as keyof typeof cost.parts, picoUsd: picoOf(nanoUsd) }
    const units = name === 'request' ? 1 : usage[name as UsageClass]
    if (name === 'reported' || units === undefined || !(units > 0)) return known
    const per = isSmall(name) ? million : 1
    return { ...known, units, price: shortNumber((nanoUsd / units) * 1e-9 * per), per }
  })
  const rest = picoOf(cost.nanoUsd) - parts.reduce((sum, { picoUsd }) => sum + picoUsd, 0n)
  return rest === 0n ? parts : [...parts, { class: 'rounding', picoUsd: rest }]
}

const million = 1_000_000

/** Checks for units whose prices are quoted by the million. */
function isSmall(name: string): boolean {
  return tokenClasses.has(name as UsageClass) || ['characters', 'drawing_input', 'drawing_output'].includes(name)
}

function picoOf(nanoUsd: number): bigint {
  return BigInt(Math.round(nanoUsd * 1_000))
}

/** Formats a number without the error of the last digits of a division. */
function shortNumber(value: number): number {
  return Number(value.toPrecision(12))
}
