import type { ErrorCode } from '../../core/errors.ts'
import { targetFailures } from '../../core/routing/target-failures.ts'
import type { Quantiles } from './latency-query.ts'

/** An attempt at a target, as its row of the ledger has it; `ended` is Unix milliseconds, `call` the id of its call. */
export type Attempt = {
  id: string
  call: string
  organization: string
  provider: string
  model: string
  outcome: string
  status: number
  error?: string
  failure?: string
  providerCode?: string
  ended: number
  durationMs: number
  firstEventMs?: number
}

/** The last failure of a target: the row of the attempt, and its call. */
export type LastFailure = {
  id: string
  call: string
  organization: string
  at: number
  code: ErrorCode
  failure: string
  status: number
  providerCode?: string
}

/** Counts of a target in ten minutes; `start` is Unix milliseconds. */
export type Period = { start: number; succeeded: number; failed: number }

/** The sums of a target: by period, in their order, and in total. */
export type Tally = { provider: string; model: string; periods: Period[]; total: Sums }

/** Length of a period. */
export const tallyMs = 600_000
/** Maximum number of periods of all targets together; the oldest ones are forgotten first. */
const maxPeriods = 50_000

/** Sums of the attempts of a day by period, organization and target. Attempts may come in any order of time. */
export class RecentAttempts {
  /** Sums by start, then by organization and target. */
  readonly #periods = new Map<number, Map<string, Sums>>()
  readonly #most: number
  #count = 0
  #keptSince = Number.NEGATIVE_INFINITY

  constructor(most = maxPeriods) {
    this.#most = most
  }

  /** Time from which nothing was forgotten because it was too much. */
  get keptSince(): number {
    return this.#keptSince
  }

  add(attempt: Attempt): void {
    const { provider, ended } = attempt
    const start = Math.floor(ended / tallyMs) * tallyMs
    if (provider === '' || start < this.#keptSince) return
    const period = this.#periods.get(start) ?? new Map<string, Sums>()
    this.#periods.set(start, period)
    const key = keyOf(attempt)
    let sums = period.get(key)
    if (!sums) {
      sums = new Sums()
      period.set(key, sums)
      this.#count++
    }
    sums.add(attempt)
    while (this.#count > this.#most && this.#periods.size > 1) this.#drop(Math.min(...this.#periods.keys()))
  }

  /** Forgets the periods that ended before a time. */
  forget(before: number): void {
    for (const start of [...this.#periods.keys()]) if (start + tallyMs <= before) this.#remove(start)
  }

  /** Yields the sums of the targets of an organization, or of all, in the periods from a time on. */
  *tallies(organization: string | undefined, from: number): Generator<Tally> {
    const found = new Map<string, Tally>()
    for (const start of [...this.#periods.keys()].toSorted((one, other) => one - other)) {
      if (start < from) continue
      for (const [key, sums] of this.#periods.get(start) ?? []) {
        const { organization: owner, provider, model } = targetIn(key)
        if (organization !== undefined && owner !== organization) continue
        const name = `${provider}/${model}`
        const tally = found.get(name) ?? { provider, model, periods: [], total: new Sums() }
        found.set(name, tally)
        tally.periods.push({ start, succeeded: sums.succeeded, failed: sums.failed })
        tally.total.merge(sums)
      }
    }
    yield* found.values()
  }

  #drop(start: number): void {
    this.#remove(start)
    this.#keptSince = Math.max(this.#keptSince, start + tallyMs)
  }

  #remove(start: number): void {
    this.#count -= this.#periods.get(start)?.size ?? 0
    this.#periods.delete(start)
  }
}

function keyOf({ organization, provider, model }: Attempt): string {
  // Only the model, which is last, may have a line feed in its name.
  return `${organization}\n${provider}\n${model}`
}

function targetIn(key: string): Pick<Attempt, 'organization' | 'provider' | 'model'> {
  const [organization = '', provider = '', ...model] = key.split('\n')
  return { organization, provider, model: model.join('\n') }
}

/** Counts and times of attempts. */
class Sums {
  succeeded = 0
  failed = 0
  others = 0
  readonly failures = new Map<string, number>()
  readonly duration = new Times()
  readonly firstEvent = new Times()
  lastSuccess: number | undefined
  lastFailure: LastFailure | undefined
  /** Number of successes since the last failure. */
  sinceFailure = 0
  #firstFailure: number | undefined

  /** Time of the first failure since the last success. */
  get failingSince(): number | undefined {
    if (this.#firstFailure !== undefined) return this.#firstFailure
    const last = this.lastFailure?.at
    return last !== undefined && last > (this.lastSuccess ?? Number.NEGATIVE_INFINITY) ? last : undefined
  }

  add(attempt: Attempt): void {
    const { outcome, failure = '', ended, durationMs, firstEventMs } = attempt
    if (outcome === 'complete') {
      this.succeeded++
      this.duration.add(durationMs)
      if (firstEventMs !== undefined) this.firstEvent.add(firstEventMs)
      if (ended > (this.lastFailure?.at ?? Number.NEGATIVE_INFINITY)) this.sinceFailure++
      this.#succeededAt(ended)
    } else if (targetFailures.has(failure)) {
      this.failed++
      this.failures.set(failure, (this.failures.get(failure) ?? 0) + 1)
      if (ended >= (this.lastSuccess ?? Number.NEGATIVE_INFINITY)) this.sinceFailure = 0
      this.#failedAt(ended, lastFailureOf(attempt, failure))
    } else this.others++
  }

  /** Adds the sums of a later time, or of others at the same time. */
  merge(other: Sums): void {
    this.succeeded += other.succeeded
    this.failed += other.failed
    this.others += other.others
    for (const [name, count] of other.failures) this.failures.set(name, (this.failures.get(name) ?? 0) + count)
    this.duration.merge(other.duration)
    this.firstEvent.merge(other.firstEvent)
    this.sinceFailure = other.lastFailure ? other.sinceFailure : this.sinceFailure + other.sinceFailure
    if (other.lastSuccess !== undefined) this.#succeededAt(other.lastSuccess)
    if (other.lastFailure) this.#failedAt(other.failingSince, other.lastFailure)
  }

  #succeededAt(at: number): void {
    this.lastSuccess = Math.max(this.lastSuccess ?? at, at)
    if (this.#firstFailure !== undefined && this.#firstFailure <= at) this.#firstFailure = undefined
  }

  #failedAt(first: number | undefined, last: LastFailure): void {
    if (first !== undefined && first > (this.lastSuccess ?? Number.NEGATIVE_INFINITY))
      this.#firstFailure = Math.min(this.#firstFailure ?? first, first)
    if (last.at >= (this.lastFailure?.at ?? 0)) this.lastFailure = last
  }
}

function lastFailureOf(attempt: Attempt, failure: string): LastFailure {
  const { id, call, organization, ended: at, error, status, providerCode } = attempt
  const code = (error ?? 'provider_failed') as ErrorCode
  return { id, call, organization, at, code, failure, status, ...(providerCode !== undefined && { providerCode }) }
}

/** Counts of times in classes, each of which is a twelfth of an octave wide: quantiles are exact to 3 %. */
class Times {
  readonly #counts = new Map<number, number>()
  #count = 0

  add(ms: number, count = 1): void {
    this.#addTo(Math.round(Math.log2(ms + 1) * steps), count)
  }

  merge(other: Times): void {
    for (const [place, count] of other.#counts) this.#addTo(place, count)
  }

  /** Undefined where there are none. */
  get quantiles(): Quantiles | undefined {
    if (this.#count === 0) return undefined
    const sorted = [...this.#counts].toSorted(([one], [other]) => one - other)
    const at = (share: number) => {
      let left = Math.ceil(share * this.#count)
      const [place = 0] =
        sorted.find(([, count]) => {
          left -= count
          return left <= 0
        }) ?? []
      return Math.round(2 ** (place / steps) - 1)
    }
    return { p50: at(0.5), p95: at(0.95) }
  }

  #addTo(place: number, count: number): void {
    this.#counts.set(place, (this.#counts.get(place) ?? 0) + count)
    this.#count += count
  }
}

const steps = 12
