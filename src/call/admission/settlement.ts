import { randomUUIDv7 } from 'node:crypto'
import type { CallRecord, Cost, LogFacts, Outcome } from '../../core/call.ts'
import type { RouterError } from '../../core/errors.ts'
import { recordedError } from '../../core/refused-call.ts'
import { withoutSecrets } from '../../core/secrets.ts'
import { completionTokens, promptTokens, type Usage } from '../../core/usage.ts'
import type { Target } from '../../manifest/target.ts'
import { chargeOf } from '../../money/charge.ts'
import { boundedUsage } from '../../money/meter.ts'
import type { CallPlugins } from '../../plugin/call-plugins.ts'
import type { MaybePromise } from '../../plugin/contract.ts'
import type { AttemptTimes, Explanation } from '../../routing/explanation.ts'
import { failureClass } from '../../routing/health/failure-class.ts'
import type { ServedModel } from '../../routing/served-model.ts'
import type { UnseenUsage } from '../../routing/types.ts'
import { costNano } from '../../store/ledger/ledger-row.ts'
import type { SentResponse } from '../../store/responses.ts'
import type {
  Admission,
  AttemptSummary,
  CallLedger,
  CallStart,
  FailedAttempt,
  ReceivedReply,
  Settled,
} from '../types.ts'
import type { ProviderMessage } from './provider-message.ts'

type SettlementOptions = {
  ledger: CallLedger
  admission: Admission
  explanation?: Explanation | undefined
  /** The plugins that are sent the record of the call. */
  plugins?: Pick<CallPlugins, 'record'> | undefined
  /** Reads the provider's message about a failed attempt, where it is stored. */
  providerMessage?: ProviderMessage | undefined
}

/**
 * The ledger row of one call: written, and the admission closed, exactly once, however the call ends. Only `complete` rejects: where
 * the ledger fails, it keeps the row for later, and a client whose call failed receives that failure.
 */
export class Settlement {
  readonly #start: CallStart
  readonly #ledger: CallLedger
  readonly #admission: Admission
  readonly #explanation: Explanation | undefined
  readonly #plugins: SettlementOptions['plugins']
  readonly #providerMessage: SettlementOptions['providerMessage']
  readonly #end: (() => void) | undefined
  #written = false
  /** Attempts whose answers are read in overtime. */
  readonly #open = new Set<Promise<unknown>>()

  constructor(start: CallStart, { ledger, admission, explanation, plugins, providerMessage }: SettlementOptions) {
    this.#start = start
    this.#ledger = ledger
    this.#admission = admission
    this.#explanation = explanation
    this.#plugins = plugins
    this.#providerMessage = providerMessage
    this.#end = ledger.begin?.(start)
  }

  /** Returns the milliseconds since the call arrived. */
  elapsed(): number {
    return Math.round(performance.now() - this.#start.monotonicMs)
  }

  /** Returns the cost of a reply as far as it has been received. */
  costOf(received: ReceivedReply): Settled {
    return this.#price(received)
  }

  /** Settles a reply that was received whole. `store` returns the response to store with the row, once the price is known. */
  async complete(
    received: ReceivedReply,
    store?: (settled: Settled) => MaybePromise<SentResponse | undefined>,
  ): Promise<Settled> {
    const settled = this.#price(received)
    const storing = store?.(settled)
    const response = storing instanceof Promise ? await storing : storing
    await this.#write(received, { outcome: 'complete', status: 200, settled, response })
    return settled
  }

  /** Settles a reply that broke off after its first event: the part that was received is charged. */
  async partial(received: ReceivedReply, error: RouterError): Promise<void> {
    if (this.#written) return
    await this.#writeQuietly(received, {
      outcome: 'partial',
      status: error.status,
      settled: this.#price(received),
      error,
    })
  }

  /** Returns true while an answer that nobody receives is read, to be charged. */
  get isReadingOn(): boolean {
    return this.#open.size > 0
  }

  /**
   * Settles a call without a reply. Usage that the provider counted anyway is charged; so is, by an estimate, the prompt of a client
   * that left when the request had been `sent`, and what a model that thinks has likely written.
   */
  async fail(attempted: FailedAttempt, error: RouterError): Promise<void> {
    const { rest: reading } = attempted
    if (reading) this.#readOn(reading)
    await this.#allRead()
    const rest = reading && (await reading)
    const settled = this.#priceFailure(attempted, error, rest)
    const summary = rest?.measured ? { ...attempted, ...rest } : attempted
    await this.#writeQuietly(summary, { outcome: 'failed', status: error.status, settled, error })
  }

  /** Records a failed attempt that the row of the call does not report: it has a row of its own, and its usage is charged. */
  failAttempt(attempted: FailedAttempt, error: RouterError): void {
    const write = (rest?: UnseenUsage) => {
      const settled = this.#priceFailure(attempted, error, rest)
      this.#writeAttempt(attempted, { outcome: 'failed', status: error.status, settled, error })
    }
    if (attempted.rest) this.#readOn(attempted.rest.then(write))
    else write()
  }

  /** Settles an attempt that broke off after content, when another target is to continue: the part that was received is charged. */
  cutAttempt(received: ReceivedReply, error: RouterError): Settled {
    const settled = this.#price(received)
    this.#writeAttempt(received, { outcome: 'partial', status: error.status, settled, error })
    return settled
  }

  /**
   * Does that for an attempt whose answer is read on while the call goes on: once it has been read, which must not reject, its row is
   * written. The reservation of the call ends after that.
   */
  cutAttemptWhenRead(reading: Promise<ReceivedReply>, error: RouterError): Promise<void> {
    const settling = reading.then((received) => void this.cutAttempt(received, error))
    this.#readOn(settling)
    return settling
  }

  #readOn(reading: Promise<unknown>): void {
    this.#open.add(reading)
    const close = () => this.#open.delete(reading)
    reading.then(close, close)
  }

  async #allRead(): Promise<void> {
    if (this.isReadingOn) await Promise.allSettled(this.#open)
  }

  /** Settles a reply that broke off and that no other target could continue: the part that was received is charged already. */
  async charged(attempted: AttemptSummary, error: RouterError): Promise<void> {
    await this.#allRead()
    await this.#writeQuietly(attempted, { outcome: 'partial', status: error.status, settled: nothingUsed, error })
  }

  #writeAttempt(summary: RowFacts, end: SettledOutcome): void {
    const record = this.#record(summary, end)
    const { times } = summary
    const own = {
      id: randomUUIDv7(),
      attemptOf: this.#start.id,
      ...(times && { durationMs: Math.round((times.ended ?? performance.now()) - times.began), ...this.#began(times) }),
    }
    const cost = costNano(record)
    if (cost > 0n) this.#admission.charge(cost)
    // The ledger keeps the row until it can be written; the row of the call itself waits behind it.
    void this.#ledger.settle({ ...record, ...own }, undefined, this.#logFacts(end)).catch(() => {})
  }

  #priceFailure({ target, sent, times, served }: FailedAttempt, error: RouterError, rest?: UnseenUsage): Settled {
    if (rest?.measured) return this.#price({ target, ...rest })
    const billed = rest?.billed ?? error.billed
    const hasLeft = rest !== undefined || (sent === true && error.code === 'client_gone')
    const abandoned = hasLeft ? this.#abandonedUsage(target, times) : undefined
    if (!billed && !abandoned) return nothingUsed
    const most = this.#admission.mostAt(target, false)
    const counted = billed && boundedUsage(billed, most)
    const known =
      counted && this.#chargeAs(counted.usage, { target, served: rest ? rest.served : served }, counted.bounded)
    const asked = abandoned && this.#chargeAs(abandoned, { target }, true)
    // Of a request in pieces some may be counted when its client leaves.
    if (known && asked) return known.cost.nanoUsd < asked.cost.nanoUsd ? asked : known
    return (known ?? asked) as Settled
  }

  /** Returns the usage that is charged to a client that left before any output, where such clients pay. */
  #abandonedUsage(target: Target, times: AttemptTimes | undefined): Usage | undefined {
    const { abandonedUsage: usage } = this.#admission
    if (!usage || !times) return usage
    return { ...usage, ...this.#admission.hiddenUsage(target, performance.now() - times.began, []) }
  }

  #price({ target, served, measured }: Pick<ReceivedReply, 'target' | 'served' | 'measured'>): Settled {
    const { usage, estimated } = measured
    const cost = this.#charge(usage, target, served)
    return { usage, cost: estimated ? { ...cost, estimated } : cost }
  }

  #chargeAs(usage: Usage, { target, served }: Pick<ReceivedReply, 'target' | 'served'>, estimated: boolean): Settled {
    const cost = this.#charge(usage, target, served)
    return { usage, cost: estimated ? { ...cost, estimated } : cost }
  }

  #charge(usage: Usage, { entry, provider }: Target, served?: ServedModel): Cost {
    const byReport = provider.reports?.has('cost') ?? false
    return chargeOf(usage, { entry, served: served?.entry, byReport }, this.#start.at)
  }

  async #writeQuietly(summary: RowFacts, end: SettledOutcome): Promise<void> {
    await this.#write(summary, end).catch(() => {})
  }

  async #write(summary: RowFacts, end: SettledOutcome): Promise<void> {
    if (this.#written) return
    this.#written = true
    this.#end?.()
    const record = this.#record(summary, end)
    this.#release(costNano(record), promptTokens(end.settled.usage) + completionTokens(end.settled.usage))
    const shown = this.#plugins && { ...record }
    const row: CallRecord = record
    row.reservedNano = Number(this.#admission.maxNano())
    if (this.#explanation) row.explanation = this.#explanation.told()
    try {
      await this.#ledger.settle(row, end.response, this.#logFacts(end))
    } finally {
      // They may ask for budgets, which count written rows.
      if (shown) this.#plugins?.record(shown)
    }
  }

  /** Returns what the log says besides the record. What a provider wrote is in the record, where it is stored: it may repeat a prompt. */
  #logFacts({ error }: SettledOutcome): LogFacts {
    return { detail: error?.quotes ? undefined : error?.forLog, keyName: this.#start.keyName }
  }

  /** Ends the reservation with the cost of the call; while an attempt is read on, the rest stays reserved for it. */
  #release(cost: bigint, tokens: number): void {
    if (this.isReadingOn) {
      this.#admission.charge(cost)
      void this.#allRead().then(() => this.#admission.settle(0n, tokens))
    } else this.#admission.settle(cost, tokens)
  }

  #began({ began }: AttemptTimes): { startedMs: number } {
    return { startedMs: Math.round(began - this.#start.monotonicMs) }
  }

  /** Makes the row of the call. Members are added one by one, so that records of the same members are of the same shape to V8. */
  #record(summary: RowFacts, { outcome, status, settled, error }: SettledOutcome): CallRecord {
    const { id, at, organization, key, api, operation, requested, stream } = this.#start
    const { target, attempts, dropped } = summary
    const record: CallRecord = {
      id,
      at,
      organization,
      key,
      api,
      operation,
      requested,
      stream,
      provider: target.provider.slug,
      // Where unknown models are allowed, the name is any text the client sent.
      model: withoutSecrets(target.model),
      outcome,
      status,
      usage: settled.usage,
      cost: settled.cost,
      dropped,
      attempts,
      durationMs: this.elapsed(),
    }
    this.#addStated(record)
    this.#addFound(record, summary)
    if (error) this.#addError(record, error, target)
    return record
  }

  #addError(record: CallRecord, error: RouterError, target: Target): void {
    Object.assign(record, recordedError(error), { failure: failureClass(error).name })
    const providerMessage = this.#providerMessage?.(error, target)
    if (providerMessage !== undefined) record.providerMessage = providerMessage
  }

  /** Adds the facts that some calls know from their beginning. */
  #addStated(record: CallRecord): void {
    const { requestId, group, user, metadata, trace } = this.#start
    if (requestId !== undefined) record.requestId = requestId
    if (group !== undefined) record.group = group
    if (user !== undefined) record.user = user
    if (metadata !== undefined) record.metadata = metadata
    if (trace !== undefined) record.trace = trace
  }

  #addFound(record: CallRecord, { times, served, firstEventMs, damaged, measured }: RowFacts): void {
    if (served) record.served = served.model
    if (times) Object.assign(record, this.#began(times))
    if (firstEventMs !== undefined) record.firstEventMs = firstEventMs
    if (damaged) record.damaged = damaged
    if (measured?.contents) record.contents = measured.contents
  }
}

/** Returns the settlement of a call that is free: its limits are released, and it has no row. */
export function freeSettlement(start: CallStart, admission: Admission): Settlement {
  return new Settlement(start, { ledger: noLedger, admission })
}

const noLedger: CallLedger = { settle: async () => {} }

const nothingUsed: Settled = { usage: {}, cost: { nanoUsd: 0, parts: {}, priceVersion: '' } }

type RowFacts = AttemptSummary & Partial<Pick<ReceivedReply, 'served' | 'firstEventMs' | 'damaged' | 'measured'>>

type SettledOutcome = {
  outcome: Outcome
  status: number
  settled: Settled
  error?: RouterError
  response?: SentResponse | undefined
}
