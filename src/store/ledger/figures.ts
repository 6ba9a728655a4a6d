import type { CallRecord } from '../../core/call.ts'
import { promptClasses, type UsageClass } from '../../core/usage.ts'
import { cachedColumns, costNano, outputColumns, tokensOf } from './ledger-row.ts'

/** What usage counts, as the columns of the tables of sums: calls, nano-USD and tokens. */
export type Figures = { -readonly [name in Figure]: bigint }

/** The name of one figure. */
export type Figure = keyof typeof inLedger

/** The expression of each figure over rows of the ledger. */
export const inLedger = {
  requests: 'sum(attempt_of IS NULL)',
  nano: 'sum(cost_nano)',
  input_tokens: sumOf(promptClasses),
  output_tokens: sumOf(outputColumns),
  cached_tokens: sumOf(cachedColumns),
  reasoning_tokens: sumOf(['reasoning']),
  failed: "sum(outcome = 'failed' AND attempt_of IS NULL)",
  partial: "sum(outcome = 'partial' AND attempt_of IS NULL)",
  estimated: 'sum(estimated)',
  unpriced: 'sum(unpriced)',
} as const satisfies { [name: string]: string }

/** All figures, in the order of their columns. */
export const figureNames = Object.keys(inLedger) as readonly Figure[]

/** The figures of one call. As bigint throughout: sums of money exceed 2^53, and SQLite adds a bound number as a float. */
export function figuresOf(record: CallRecord): Figures {
  const { input, output, cached, reasoning } = tokensOf(record)
  const { outcome, cost, attemptOf } = record
  // A call is one request, however many attempts it made.
  const isCall = attemptOf === undefined
  return {
    requests: isCall ? 1n : 0n,
    nano: costNano(record),
    input_tokens: BigInt(input),
    output_tokens: BigInt(output),
    cached_tokens: BigInt(cached),
    reasoning_tokens: BigInt(reasoning),
    failed: isCall && outcome === 'failed' ? 1n : 0n,
    partial: isCall && outcome === 'partial' ? 1n : 0n,
    estimated: cost.estimated ? 1n : 0n,
    unpriced: cost.unpriced ? 1n : 0n,
  }
}

/** Adds figures to others. */
export function addFigures(total: Figures, added: Figures): void {
  for (const name of figureNames) total[name] += added[name]
}

/** Figures of nothing. */
export function noFigures(): Figures {
  return Object.fromEntries(figureNames.map((name) => [name, 0n])) as Figures
}

function sumOf(columns: readonly UsageClass[]): string {
  return `sum(${columns.map((name) => `coalesce(${name}, 0)`).join(' + ')})`
}
