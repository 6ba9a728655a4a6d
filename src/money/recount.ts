import type { CallRecord } from '../core/call.ts'
import type { ModelEntry } from '../core/models/model.ts'
import { chargeOf } from './charge.ts'

/** The result of a recount of settled calls with today's prices. Sums are nano-USD. */
export type Recount = {
  calls: number
  /** Attempts of them that have rows of their own: no calls, but what was billed for them is recounted as well. */
  attempts: number
  /** Calls that cost nothing because they failed before any output. */
  unbilled: number
  /** Billed at today's prices, and the same to the nano-dollar: here and below rows of calls and of attempts. */
  agreeing: number
  /** Billed at today's prices, but not the same: something is wrong. At most `maxListed` of them are listed. */
  wrong: { calls: number; difference: bigint; listed: WrongCall[] }
  /** Calls by model that were billed at other prices than the current ones, also where there were none or are none now. */
  repriced: Map<string, { calls: number; ledger: bigint; today: bigint }>
  /** Costs by model that the provider reported, beside the ledger's. */
  reported: Map<string, { calls: number; ledger: bigint; provider: bigint }>
}

/** A call whose cost does not follow from its usage and the prices that it names. */
export type WrongCall = {
  id: string
  at: number
  organization: string
  key: string
  model: string
  ledger: bigint
  today: bigint
}

/**
 * Recomputes the cost of each call, one at a time. `entryOf` finds today's catalog entry of a model: of the
 * prices in it, those of the time of the call are used. `chargesByReport`: whether a provider charges by its own figure.
 */
export async function recount(
  calls: Iterable<CallRecord> | AsyncIterable<CallRecord>,
  entryOf: (provider: string, model: string) => ModelEntry | undefined,
  chargesByReport: (provider: string) => boolean = () => false,
): Promise<Recount> {
  const found: Recount = {
    calls: 0,
    attempts: 0,
    unbilled: 0,
    agreeing: 0,
    wrong: { calls: 0, difference: 0n, listed: [] },
    repriced: new Map(),
    reported: new Map(),
  }
  for await (const call of calls) {
    const isCall = call.attemptOf === undefined
    if (isCall) found.calls++
    else found.attempts++
    const { at, cost, usage, provider, model, served } = call
    const name = `${provider}/${model}`
    const ledger = BigInt(cost.nanoUsd)
    if (usage.reported_cost !== undefined) {
      const reported = entry(found.reported, name, () => ({ calls: 0, ledger: 0n, provider: 0n }))
      reported.calls++
      reported.ledger += ledger
      reported.provider += BigInt(Math.round(usage.reported_cost * 1e9))
    }
    if (isUnbilled(call)) {
      if (isCall) found.unbilled++
      continue
    }
    const entries = {
      entry: entryOf(provider, model),
      served: served === undefined ? undefined : entryOf(provider, served),
    }
    const recomputed = chargeOf(usage, { ...entries, byReport: chargesByReport(provider) }, at)
    const today = BigInt(recomputed.nanoUsd)
    if (recomputed.priceVersion !== cost.priceVersion) {
      const other = entry(found.repriced, name, () => ({ calls: 0, ledger: 0n, today: 0n }))
      other.calls++
      other.ledger += ledger
      other.today += today
    } else if (ledger === today) found.agreeing++
    else addWrong(found.wrong, call, ledger, today)
  }
  return found
}

/** The most wrong calls that are listed. */
export const maxListed = 100

function addWrong(wrong: Recount['wrong'], call: CallRecord, ledger: bigint, today: bigint): void {
  wrong.calls++
  wrong.difference += today - ledger
  if (wrong.listed.length === maxListed) return
  const { id, at, organization, key, provider, model } = call
  wrong.listed.push({ id, at, organization, key, model: `${provider}/${model}`, ledger, today })
}

/** A failed call has neither a price version nor unknown prices. */
function isUnbilled({ cost }: CallRecord): boolean {
  return cost.priceVersion === '' && !cost.unpriced && cost.nanoUsd === 0
}

function entry<Value>(map: Map<string, Value>, name: string, empty: () => Value): Value {
  const value = map.get(name) ?? empty()
  map.set(name, value)
  return value
}
