import { RouterError, withoutStack } from '../../core/errors.ts'
import { type Target, targetId } from '../../manifest/target.ts'

/** Number of calls that may run at once, and of those that may wait. */
export type ConcurrencyLimits = { concurrent: number; queue: number }

/** Caller of a call: organizations take turns, and calls of low priority are refused first. */
export type Caller = { organization: string; isLow: boolean }

/** Ends an admitted call; later calls have no effect. */
export type Release = () => void

/** Maximum time for which calls wait. Milliseconds. */
const maxWaitMs = 1_000

/**
 * Limiter of concurrent calls. Waiting calls are admitted newest first, as the oldest are the nearest to being given up, with organizations
 * in turn. A call that waits too long, or does not fit in, is refused while it is still worth trying again: immediately, unless it takes
 * the place of a call of low priority, or of the organization that has the most.
 */
export class ConcurrencyLimiter {
  readonly #limits: () => ConcurrencyLimits
  #running = 0
  #waiting = 0
  /** Number of calls of low priority among them. */
  #lowWaiting = 0
  /** Waiting calls by organization, the newest last; the organization whose turn is next comes first. */
  readonly #queues = new Map<string, PendingCaller[]>()

  constructor(limits: () => ConcurrencyLimits) {
    this.#limits = limits
  }

  /** Checks whether a call would be admitted immediately. */
  get isOpen(): boolean {
    return this.#running < this.#limits().concurrent
  }

  /** Checks whether one more may at least wait. */
  get hasCapacity(): boolean {
    const { concurrent, queue } = this.#limits()
    return this.#running < concurrent || this.#waiting < queue
  }

  get running(): number {
    return this.#running
  }

  get waiting(): number {
    return this.#waiting
  }

  /** Returns why a call would be refused immediately; undefined for one that would be admitted, or may wait. */
  refusal(caller: Caller): RouterError | undefined {
    if (this.hasCapacity) return undefined
    return this.#placeFor(caller) ? undefined : full()
  }

  /** Admits a call immediately, or after a wait. Rejects with RouterError `rate_limited`, or with the reason of the signal. */
  enter(caller: Caller, signal: AbortSignal, mostMs = maxWaitMs): Release | Promise<Release> {
    if (this.isOpen) return this.#acquire()
    signal.throwIfAborted()
    if (this.#waiting >= this.#limits().queue && !this.#makeRoom(caller)) throw full()
    return this.#wait(caller, signal, Math.min(mostMs, maxWaitMs))
  }

  async #wait(caller: Caller, signal: AbortSignal, mostMs: number): Promise<Release> {
    const { promise, resolve, reject } = Promise.withResolvers<Release>()
    const waiting: PendingCaller = { ...caller, resolve, reject }
    this.#add(waiting)
    const giveUp = (reason: unknown) => {
      if (this.#remove(waiting)) reject(reason)
    }
    const onAbort = () => giveUp(signal.reason)
    const timer = setTimeout(() => giveUp(full()), mostMs)
    signal.addEventListener('abort', onAbort)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    }
  }

  #acquire(): Release {
    this.#running++
    let isIn = true
    return () => {
      if (!isIn) return
      isIn = false
      this.#running--
      this.#acquireNext()
    }
  }

  #acquireNext(): void {
    while (this.isOpen) {
      const next = this.#next()
      if (!next) return
      this.#remove(next)
      // Its organization waits until all others have had their turn.
      const others = this.#queues.get(next.organization)
      if (others) {
        this.#queues.delete(next.organization)
        this.#queues.set(next.organization, others)
      }
      next.resolve(this.#acquire())
    }
  }

  /** Returns the newest call of the organization whose turn it is; one of low priority only when there is no other. */
  #next(): PendingCaller | undefined {
    let low: PendingCaller | undefined
    for (const queue of this.#queues.values()) {
      const usual = queue.findLast(({ isLow }) => !isLow)
      if (usual) return usual
      low ??= queue.at(-1)
    }
    return low
  }

  /** Refuses a call that waits, in place of one that comes. */
  #makeRoom(caller: Caller): boolean {
    const victim = this.#placeFor(caller)
    if (!victim) return false
    this.#remove(victim)
    victim.reject(full())
    return true
  }

  /**
   * Returns the call whose place another one may take: the oldest one of low priority, else the oldest of the organization that has the
   * most.
   */
  #placeFor({ organization, isLow }: Caller): PendingCaller | undefined {
    if (isLow) return undefined
    const queues = [...this.#queues.values()]
    if (this.#lowWaiting > 0) return queues.flat().find((waiting) => waiting.isLow)
    const most = longest(queues)
    return most?.[0]?.organization === organization ? undefined : most?.[0]
  }

  #add(waiting: PendingCaller): void {
    const queue = this.#queues.get(waiting.organization)
    if (queue) queue.push(waiting)
    else this.#queues.set(waiting.organization, [waiting])
    this.#waiting++
    if (waiting.isLow) this.#lowWaiting++
  }

  #remove(waiting: PendingCaller): boolean {
    const queue = this.#queues.get(waiting.organization)
    const index = queue?.indexOf(waiting) ?? -1
    if (!queue || index < 0) return false
    queue.splice(index, 1)
    if (queue.length === 0) this.#queues.delete(waiting.organization)
    this.#waiting--
    if (waiting.isLow) this.#lowWaiting--
    return true
  }
}

type PendingCaller = Caller & { resolve(leave: Release): void; reject(reason: unknown): void }

function longest(queues: readonly PendingCaller[][]): PendingCaller[] | undefined {
  return queues.reduce<PendingCaller[] | undefined>(
    (most, one) => (most && most.length >= one.length ? most : one),
    undefined,
  )
}

function full(): RouterError {
  const message = 'Too many calls are running. Send this one again in a moment.'
  return withoutStack(() => new RouterError('rate_limited', message, { retryAfterMs: maxWaitMs }))
}

/** Concurrency limiters of targets whose provider accepts only a limited number of concurrent calls. */
export class ConcurrencyLimiters {
  readonly #limiters = new Map<string, KnownLimiter>()
  readonly #workers: number

  /** `lines` is the number of event loops that share each limit. */
  constructor(lines = 1) {
    this.#workers = lines
  }

  /** Returns the limiter of a target; undefined for one without limits. */
  of(target: Target): ConcurrencyLimiter | undefined {
    const { limits } = target.provider
    if (!limits) return undefined
    const id = targetId(target)
    let known = this.#limiters.get(id)
    if (!known) {
      if (this.#limiters.size >= maxLimiters) this.#forgetEmpty()
      known = new KnownLimiter(limits, this.#workers)
      this.#limiters.set(id, known)
    }
    // They may have been read again.
    known.limits = limits
    return known.limiter
  }

  /** Returns the limiters that have calls at present, by the id of their target. */
  standings(): LimiterStatus[] {
    const used = [...this.#limiters].filter(([, { limiter }]) => limiter.running + limiter.waiting > 0)
    return used.map(([id, { limiter, limits }]) => limiterStatus(id, limiter, shared(limits, this.#workers)))
  }

  #forgetEmpty(): void {
    for (const [id, { limiter }] of this.#limiters)
      if (limiter.running + limiter.waiting === 0) this.#limiters.delete(id)
  }
}

/** Numbers of running and waiting calls, and the maximum that may run. */
type LimiterStatus = { name: string; running: number; waiting: number; max: number }

export function limiterStatus(
  name: string,
  { running, waiting }: ConcurrencyLimiter,
  { concurrent }: ConcurrencyLimits,
): LimiterStatus {
  return { name, running, waiting, max: concurrent }
}

class KnownLimiter {
  limits: ConcurrencyLimits
  readonly limiter: ConcurrencyLimiter

  constructor(limits: ConcurrencyLimits, lines: number) {
    this.limits = limits
    this.limiter = new ConcurrencyLimiter(() => shared(this.limits, lines))
  }
}

/** Returns the share of the limits that one of several event loops has. */
export function shared({ concurrent, queue }: ConcurrencyLimits, lines: number): ConcurrencyLimits {
  return { concurrent: Math.ceil(concurrent / lines), queue: Math.ceil(queue / lines) }
}

/** Maximum number of limiters: where unknown models are allowed, clients may invent names. */
const maxLimiters = 10_000
