import { LRUCache } from 'lru-cache'
import type { RouterError } from '../core/errors.ts'
import { type Target, targetId } from '../manifest/target.ts'
import type { SpeedFinding } from './findings.ts'
import { failureClass } from './health/failure-class.ts'
import type { AttemptHandle } from './health/health.ts'

/** Calls whose times can be compared, by the names of the gauges for the time to the first content and that for each token. */
export type CallClass = { toContent: string; perToken: string; streams: boolean }

/** Returns the class of a call by its operation and the size of its input. */
export function callClass(operation: string, streams: boolean, promptTokens: number): CallClass {
  const size = sizeOf(promptTokens)
  if (operation === 'chat') return chatKinds[streams ? 'streamed' : 'whole'][size] as CallClass
  return kindOf(operation, streams, size)
}

function kindOf(operation: string, streams: boolean, size: number): CallClass {
  const way = streams ? 'streamed' : 'whole'
  return { toContent: `${operation} ${way} ${size}`, perToken: way, streams }
}

/** Largest numbers of tokens of the classes: each has four times those of the one before. */
const maxOfClasses = [1_000, 4_000, 16_000, 64_000, Infinity]

function sizeOf(promptTokens: number): number {
  return maxOfClasses.findIndex((most) => promptTokens <= most)
}

const chatKinds = {
  streamed: maxOfClasses.map((_, size) => kindOf('chat', true, size)),
  whole: maxOfClasses.map((_, size) => kindOf('chat', false, size)),
}

/** Measurements of one target. */
export class Speed {
  /** Calls that have begun and not ended. */
  underWay = 0
  readonly #gauges = new Map<string, Gauge>()

  /** Returns the gauge of milliseconds until the first content, or until the answer where it comes at once. */
  toContent({ toContent }: CallClass): Gauge {
    return this.gauge(toContent)
  }

  /** Returns the gauge of milliseconds for each token of the answer. */
  perToken({ perToken }: CallClass): Gauge {
    return this.gauge(perToken)
  }

  gauge(name: string): Gauge {
    let gauge = this.#gauges.get(name)
    if (!gauge) {
      gauge = new Gauge()
      this.#gauges.set(name, gauge)
    }
    return gauge
  }

  gauges(): Iterable<[name: string, gauge: Gauge]> {
    return this.#gauges
  }
}

type MeasurementsOptions = {
  /** Milliseconds of a monotonic clock, the same one for all event loops that share findings. */
  now?: () => number
  /** Measurements are kept for `takeFindings`. */
  isShared?: boolean
}

/** Speed of targets, and the number of calls to them that are in flight. One for each event loop; it survives reloads. */
export class Measurements {
  readonly now: () => number
  readonly #speeds = new LRUCache<string, Speed>({ max: maxTargets })
  readonly #fresh: Map<Gauge, SpeedFinding> | undefined

  constructor({ now = () => performance.now(), isShared = false }: MeasurementsOptions = {}) {
    this.now = now
    this.#fresh = isShared ? new Map() : undefined
  }

  of(target: Target): Speed {
    return this.#speedOf(targetId(target))
  }

  /** Returns the tokens that a target writes per second, thinking included; undefined where nothing was measured. */
  tokensPerSecond(target: Target): number | undefined {
    const gauge = this.of(target).gauge(tokensPerSecond)
    return gauge.count === 0 ? undefined : gauge.estimate(this.now())
  }

  /** Adds a measurement of this event loop. */
  add(target: string, name: string, value: number, at: number): void {
    const gauge = this.#speedOf(target).gauge(name)
    gauge.add(value, at)
    if (!this.#fresh) return
    const fresh = this.#fresh.get(gauge)
    if (!fresh) {
      this.#fresh.set(gauge, { kind: 'speed', at, target, gauge: name, count: 1, most: value, mean: value })
      return
    }
    fresh.at = at
    fresh.count++
    fresh.most = Math.max(fresh.most, value)
    fresh.mean += (value - fresh.mean) / fresh.count
  }

  /** Returns and clears the measurements of this event loop since the last time. */
  takeFindings(): SpeedFinding[] {
    const found = [...(this.#fresh?.values() ?? [])]
    this.#fresh?.clear()
    return found
  }

  /** Adds the measurements of another event loop. */
  merge({ target, gauge, ...measured }: SpeedFinding): void {
    this.#speedOf(target).gauge(gauge).addSeveral(measured)
  }

  /** Returns everything that is known, for an event loop that knows nothing yet. */
  findings(): SpeedFinding[] {
    const found: SpeedFinding[] = []
    for (const [target, speed] of this.#speeds.entries()) {
      for (const [gauge, { measured }] of speed.gauges())
        if (measured.count > 0) found.push({ kind: 'speed', target, gauge, ...measured })
    }
    return found
  }

  /** Measures an attempt, from now until its attempt handle ends; one that fails counts as if it had taken until its time limit. */
  begin(target: Target, { kind, limitMs }: { kind: CallClass; limitMs: number }, handle: AttemptHandle): AttemptHandle {
    const id = targetId(target)
    return new MeasuredAttempt(handle, { target: id, measurements: this, kind, limitMs }, this.#speedOf(id))
  }

  #speedOf(target: string): Speed {
    let speed = this.#speeds.get(target)
    if (!speed) {
      speed = new Speed()
      this.#speeds.set(target, speed)
    }
    return speed
  }
}

/** Maximum number of targets: where unknown models are allowed, clients may invent names. */
const maxTargets = 2_000

type Attempt = { target: string; measurements: Measurements; kind: CallClass; limitMs: number }

class MeasuredAttempt implements AttemptHandle {
  readonly #handle: AttemptHandle
  readonly #attempt: Attempt
  readonly #speed: Speed
  readonly #beganAt: number
  #answeredAt: number | undefined
  #isOver = false

  constructor(handle: AttemptHandle, attempt: Attempt, speed: Speed) {
    this.#handle = handle
    this.#attempt = attempt
    this.#speed = speed
    this.#beganAt = attempt.measurements.now()
    speed.underWay++
  }

  succeeded(): void {
    this.#handle.succeeded()
    const { measurements, kind } = this.#attempt
    this.#answeredAt = measurements.now()
    this.#add(kind.toContent, this.#answeredAt - this.#beganAt, this.#answeredAt)
  }

  produced(tokens: number, isEstimated = false): void {
    if (this.#answeredAt === undefined || tokens <= 0) return
    const { measurements, kind } = this.#attempt
    const at = measurements.now()
    const ms = at - (kind.streams ? this.#answeredAt : this.#beganAt)
    this.#add(kind.perToken, Math.max(ms, minMs) / tokens, at)
    const seconds = Math.max(at - this.#beganAt, minMs) / 1_000
    if (!isEstimated && tokens >= minTokens) this.#add(tokensPerSecond, tokens / seconds, at)
  }

  failed(error: RouterError): void {
    this.#handle.failed(error)
    const { measurements, kind, limitMs } = this.#attempt
    const at = measurements.now()
    const elapsed = at - this.#beganAt
    const { health } = failureClass(error)
    // One that is busy is left alone as long as it says.
    const counts = health !== undefined && health.closes !== 'until_told'
    if (counts) this.#add(kind.perToken, limitMs, at)
    if (this.#answeredAt !== undefined) return
    const known = this.#speed.toContent(kind)
    // A target that fails immediately is not fast. A client that left has waited for at least this long.
    if (counts) this.#add(kind.toContent, Math.max(limitMs, elapsed), at)
    else if (known.count > 0 && elapsed > known.estimate(at)) this.#add(kind.toContent, elapsed, at)
  }

  ended(): void {
    this.#handle.ended()
    if (!this.#isOver) this.#speed.underWay--
    this.#isOver = true
  }

  #add(gauge: string, value: number, at: number): void {
    const { measurements, target } = this.#attempt
    measurements.add(target, gauge, value, at)
  }
}

/** Name of the gauge of tokens per second, thinking included, of answers long enough for the wait before them to matter little. */
const tokensPerSecond = 'tokens per second'
const minTokens = 200

/** Minimum time, for an answer that arrived at once. */
const minMs = 1

/** Summary of several measurements: the time of the last one, their number, the largest and the mean. */
type Measured = { at: number; count: number; most: number; mean: number }

/**
 * An average of measurements that rises immediately and falls with a half-life: a target that becomes slow is known after one call. While
 * nothing is measured it falls as well, so that a slow target is tried again; but not faster than calls pass it over, or it would be
 * forgotten where calls are rare.
 */
export class Gauge {
  #value = 0
  #at = 0
  #count = 0
  #passedOver = 0

  /** Returns the number of measurements. */
  get count(): number {
    return this.#count
  }

  /** Adds a measurement. `now` is milliseconds of one monotonic clock. */
  add(value: number, now: number): void {
    this.addSeveral({ at: now, count: 1, most: value, mean: value })
  }

  /** Adds measurements of another event loop, which may be a little older than those that are known. */
  addSeveral({ at, count, most, mean }: Measured): void {
    const kept = this.#count === 0 ? 0 : Math.min(1, 2 ** ((this.#at - at) / halfLifeMs))
    this.#value = most > this.#value ? most : this.#value * kept + mean * (1 - kept)
    this.#at = Math.max(this.#at, at)
    this.#count += count
    this.#passedOver = 0
  }

  /** Returns everything that is known as one measurement, for those who know nothing yet. */
  get measured(): Measured {
    return { at: this.#at, count: this.#count, most: this.#value, mean: this.#value }
  }

  /** Records that another target was chosen because of it. */
  passOver(): void {
    this.#passedOver++
  }

  /** Returns the expected value of the next measurement; Infinity where nothing was measured. */
  estimate(now: number): number {
    if (this.#count === 0) return Infinity
    const halvings = Math.min((now - this.#at) / halfLifeMs, this.#passedOver / callsPerHalving)
    return halvings <= 0 ? this.#value : this.#value * 2 ** -halvings
  }
}

const halfLifeMs = 10_000

const callsPerHalving = 10
