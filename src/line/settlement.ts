import type { CallRecord, Cost, Outcome } from '../core/call.ts'
import type { RouterError } from '../core/errors.ts'
import type { Reply } from '../core/reply.ts'
import type { NeutralRequest } from '../core/request.ts'
import { withoutSecrets } from '../core/secrets.ts'
import { completionTokens, promptTokens, type Usage } from '../core/usage.ts'
import type { Target } from '../manifest/target.ts'
import { measuredUsage } from '../money/meter.ts'
import { priceOf } from '../money/price.ts'
import { costNano } from '../store/ledger-row.ts'
import type { StoredResponse } from '../store/responses.ts'
import type { Admission } from './admission.ts'

/** What is known of a call before anybody was asked. `at` and `begun` are milliseconds, `begun` on the monotonic clock. */
export type Opening = Pick<
  CallRecord,
  'id' | 'at' | 'organization' | 'key' | 'group' | 'api' | 'operation' | 'requested' | 'stream' | 'user' | 'metadata'
> & { begun: number; request: NeutralRequest }

/** Where records go, with the response that is kept of the call; resolves when both are on disk. */
export type Ledger = { settle(record: CallRecord, response?: StoredResponse): Promise<void> }

/** What a settled call used and cost. */
export type Settled = { usage: Usage; cost: Cost }

/** The one row of one call: whatever happens to the call, it is written and the admission closed exactly once. */
export class Settlement {
  readonly #opening: Opening
  readonly #ledger: Ledger
  readonly #admission: Admission
  #written = false
  target: Target | undefined
  attempts = 0
  dropped: string[] = []
  firstEventMs: number | undefined

  constructor(opening: Opening, { ledger, admission }: { ledger: Ledger; admission: Admission }) {
    this.#opening = opening
    this.#ledger = ledger
    this.#admission = admission
  }

  /** What is left of the caller's limits, for the headers of the reply. */
  get limitHeaders(): Admission['headers'] {
    return this.#admission.headers
  }

  /** Milliseconds since the call arrived. */
  elapsed(): number {
    return Math.round(performance.now() - this.#opening.begun)
  }

  /** The whole reply came. `keep` gives what is to be kept of it, once its price is known. */
  async complete(reply: Reply, keep?: (settled: Settled) => StoredResponse | undefined): Promise<Settled> {
    const settled = this.#price(reply, true)
    await this.#write('complete', 200, settled, undefined, keep?.(settled))
    return settled
  }

  /** It broke off after its first event: what has passed is paid. */
  async partial(reply: Reply, error: RouterError): Promise<void> {
    if (this.#written) return
    await this.#write('partial', error.status, this.#price(reply, false), error)
  }

  /** Nothing came: nothing is paid. */
  async fail(error: RouterError): Promise<void> {
    const cost: Cost = { nanoUsd: 0, parts: {}, priceVersion: '' }
    await this.#write('failed', error.status, { usage: {}, cost }, error)
  }

  #price(reply: Reply, complete: boolean): Settled {
    const { usage, estimated } = this.#measured(reply, complete)
    const cost = priceOf(usage, this.target?.entry, this.#opening.at)
    return { usage, cost: estimated ? { ...cost, estimated } : cost }
  }

  #measured(reply: Reply, complete: boolean): { usage: Usage; estimated: boolean } {
    try {
      return measuredUsage(reply, { request: this.#opening.request, complete })
    } catch {
      // What a provider says may be anything: a call whose words cannot be counted must end all the same.
      return { usage: reply.usage, estimated: true }
    }
  }

  async #write(
    outcome: Outcome,
    status: number,
    settled: Settled,
    error?: RouterError,
    response?: StoredResponse,
  ): Promise<void> {
    if (this.#written) return
    this.#written = true
    const { begun, request, ...opening } = this.#opening
    const record: CallRecord = {
      ...opening,
      provider: this.target?.provider.slug ?? '',
      // Where any model passes, its name is what the client wrote.
      model: withoutSecrets(this.target?.model ?? ''),
      outcome,
      status,
      ...(error && { error: error.code }),
      ...settled,
      dropped: this.dropped,
      attempts: this.attempts,
      durationMs: this.elapsed(),
      ...(this.firstEventMs !== undefined && { firstEventMs: this.firstEventMs }),
    }
    const { usage } = settled
    this.#admission.settle(costNano(record), promptTokens(usage) + completionTokens(usage))
    await this.#ledger.settle(record, response)
    this.#admission.written()
  }
}
