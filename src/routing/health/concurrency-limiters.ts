import { type Target, targetId } from '../../manifest/target.ts'
import { Gate, type GateLimits } from './concurrency-limiter.ts'

/** The gates of targets whose provider may be asked by a limited number of calls at once. */
export class Gates {
  readonly #gates = new Map<string, KnownGate>()
  readonly #lines: number

  /** `lines`: how many event loops share each limit. */
  constructor(lines = 1) {
    this.#lines = lines
  }

  /** Undefined for a target without limits. */
  of(target: Target): Gate | undefined {
    const { limits } = target.provider
    if (!limits) return undefined
    const id = targetId(target)
    let known = this.#gates.get(id)
    if (!known) {
      if (this.#gates.size >= mostGates) this.#forgetEmpty()
      known = new KnownGate(limits, this.#lines)
      this.#gates.set(id, known)
    }
    // They may have been read again.
    known.limits = limits
    return known.gate
  }

  /** Those through which calls go at present, by the id of their target. */
  standings(): GateStanding[] {
    const used = [...this.#gates].filter(([, { gate }]) => gate.running + gate.waiting > 0)
    return used.map(([id, { gate, limits }]) => standingOf(id, gate, shared(limits, this.#lines)))
  }

  #forgetEmpty(): void {
    for (const [id, { gate }] of this.#gates) if (gate.running + gate.waiting === 0) this.#gates.delete(id)
  }
}

/** How many calls run and wait where so many may run. */
export type GateStanding = { name: string; running: number; waiting: number; most: number }

export function standingOf(name: string, { running, waiting }: Gate, { concurrent }: GateLimits): GateStanding {
  return { name, running, waiting, most: concurrent }
}

class KnownGate {
  limits: GateLimits
  readonly gate: Gate

  constructor(limits: GateLimits, lines: number) {
    this.limits = limits
    this.gate = new Gate(() => shared(this.limits, lines))
  }
}

/** What one of several event loops may let in. */
export function shared({ concurrent, queue }: GateLimits, lines: number): GateLimits {
  return { concurrent: Math.ceil(concurrent / lines), queue: Math.ceil(queue / lines) }
}

/** Where unknown models are allowed, clients may invent names. */
const mostGates = 10_000
