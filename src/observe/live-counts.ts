import type { CallRecord } from '../core/call.ts'
import { completionTokens, promptTokens } from '../core/usage.ts'

/** Totals of the calls settled since somebody began to watch; `newest` is the id of the last call. */
export type LiveTotals = {
  calls: number
  failed: number
  inputTokens: number
  outputTokens: number
  nanoUsd: bigint
  newest?: string
}

/** A watcher of an organization. */
export type LiveWatch = { totals(): LiveTotals; close(): void }

/** Maximum number of watchers of one organization. */
export const maxWatches = 20

/** Counts the rows of organizations that somebody looks at. */
export class LiveCounts {
  readonly #watched = new Map<string, { totals: LiveTotals; watches: number }>()

  /** Checks whether anybody watches: until then nothing has to be counted. */
  get isWatched(): boolean {
    return this.#watched.size > 0
  }

  /** Counts a row of the ledger. */
  count({ id, attemptOf, organization, outcome, usage, cost }: CallRecord): void {
    const totals = this.#watched.get(organization)?.totals
    if (!totals) return
    totals.inputTokens += promptTokens(usage)
    totals.outputTokens += completionTokens(usage)
    totals.nanoUsd += BigInt(Math.round(cost.nanoUsd))
    if (attemptOf !== undefined) return
    totals.calls++
    if (outcome === 'failed') totals.failed++
    totals.newest = id
  }

  /** Counts from now on; undefined where as many look on as may. */
  watch(organization: string): LiveWatch | undefined {
    const found = this.#watched.get(organization) ?? { totals: noTotals(), watches: 0 }
    if (found.watches >= maxWatches) return undefined
    this.#watched.set(organization, found)
    found.watches++
    const before = { ...found.totals }
    let isOpen = true
    return {
      totals: () => since(before, found.totals),
      close: () => {
        if (!isOpen) return
        isOpen = false
        found.watches--
        if (found.watches === 0) this.#watched.delete(organization)
      },
    }
  }
}

function noTotals(): LiveTotals {
  return { calls: 0, failed: 0, inputTokens: 0, outputTokens: 0, nanoUsd: 0n }
}

function since(before: LiveTotals, now: LiveTotals): LiveTotals {
  return {
    calls: now.calls - before.calls,
    failed: now.failed - before.failed,
    inputTokens: now.inputTokens - before.inputTokens,
    outputTokens: now.outputTokens - before.outputTokens,
    nanoUsd: now.nanoUsd - before.nanoUsd,
    ...(now.newest !== undefined && now.newest !== before.newest && { newest: now.newest }),
  }
}
