import { LRUCache } from 'lru-cache'
import type { RouterError } from '../core/errors.ts'
import { type Target, targetId } from '../manifest/target.ts'
import { failureClass } from './failure-class.ts'
import { Gauge } from './gauge.ts'
import type { Passage } from './health.ts'

/** Calls whose times can be compared. */
export type CallKind = { name: string; streams: boolean }

/** The kind of a call by what it is for and the size of its input. */
export function callKind(operation: string, streams: boolean, promptTokens: number): CallKind {
  const size = sizeOf(promptTokens)
  if (operation === 'chat') return chatKinds[streams ? 'streamed' : 'whole'][size] as CallKind
  return kindOf(operation, streams, size)
}

function kindOf(operation: string, streams: boolean, size: number): CallKind {
  return { name: `${operation} ${streams ? 'streamed' : 'whole'} ${size}`, streams }
}

/** Each class has four times the tokens of the one before. */
const largestOfClasses = [1_000, 4_000, 16_000, 64_000, Infinity]

function sizeOf(promptTokens: number): number {
  return largestOfClasses.findIndex((most) => promptTokens <= most)
}

const chatKinds = {
  streamed: largestOfClasses.map((_, size) => kindOf('chat', true, size)),
  whole: largestOfClasses.map((_, size) => kindOf('chat', false, size)),
}

/** What was measured of one target. */
export class Speed {
  /** Calls that have begun and not ended. */
  underWay = 0
  readonly #toContent = new Map<string, Gauge>()
  readonly #perToken = { streamed: new Gauge(), whole: new Gauge() }

  /** Milliseconds until the first content, or until the answer where it comes at once. */
  toContent({ name }: CallKind): Gauge {
    let gauge = this.#toContent.get(name)
    if (!gauge) {
      gauge = new Gauge()
      this.#toContent.set(name, gauge)
    }
    return gauge
  }

  /** Milliseconds for each token of the answer. */
  perToken({ streams }: CallKind): Gauge {
    return this.#perToken[streams ? 'streamed' : 'whole']
  }
}

/** How fast targets are, and how many calls to them are under way. One for each event loop; it survives reloads. */
export class Measurements {
  readonly now: () => number
  readonly #speeds = new LRUCache<string, Speed>({ max: mostTargets })

  constructor(now: () => number = () => performance.now()) {
    this.now = now
  }

  of(target: Target): Speed {
    const id = targetId(target)
    let speed = this.#speeds.get(id)
    if (!speed) {
      speed = new Speed()
      this.#speeds.set(id, speed)
    }
    return speed
  }

  /** Measures an attempt, from now until its passage ends; one that fails counts as if it had taken until its time limit. */
  begin(target: Target, { kind, limitMs }: { kind: CallKind; limitMs: number }, passage: Passage): Passage {
    return new MeasuredPassage(passage, { speed: this.of(target), kind, limitMs, now: this.now })
  }
}

/** Where unknown models are allowed, clients may invent names. */
const mostTargets = 2_000

type Measured = { speed: Speed; kind: CallKind; limitMs: number; now: () => number }

class MeasuredPassage implements Passage {
  readonly #passage: Passage
  readonly #measured: Measured
  readonly #beganAt: number
  #answeredAt: number | undefined
  #isOver = false

  constructor(passage: Passage, measured: Measured) {
    this.#passage = passage
    this.#measured = measured
    this.#beganAt = measured.now()
    measured.speed.underWay++
  }

  succeeded(): void {
    this.#passage.succeeded()
    const { speed, kind, now } = this.#measured
    this.#answeredAt = now()
    speed.toContent(kind).add(this.#answeredAt - this.#beganAt, this.#answeredAt)
  }

  produced(tokens: number): void {
    if (this.#answeredAt === undefined || tokens <= 0) return
    const { speed, kind, now } = this.#measured
    const at = now()
    const ms = at - (kind.streams ? this.#answeredAt : this.#beganAt)
    speed.perToken(kind).add(Math.max(ms, leastMs) / tokens, at)
  }

  failed(error: RouterError): void {
    this.#passage.failed(error)
    const { speed, kind, limitMs, now } = this.#measured
    const at = now()
    const elapsed = at - this.#beganAt
    const { health } = failureClass(error)
    // One that is busy is left alone as long as it says.
    const counts = health !== undefined && health.closes !== 'until_told'
    if (counts) speed.perToken(kind).add(limitMs, at)
    if (this.#answeredAt !== undefined) return
    const gauge = speed.toContent(kind)
    // Whoever fails at once is not fast. A client that left has waited for so long at least.
    if (counts) gauge.add(Math.max(limitMs, elapsed), at)
    else if (gauge.count > 0 && elapsed > gauge.estimate(at)) gauge.add(elapsed, at)
  }

  ended(): void {
    this.#passage.ended()
    if (!this.#isOver) this.#measured.speed.underWay--
    this.#isOver = true
  }
}

/** Of an answer that came at once. */
const leastMs = 1
