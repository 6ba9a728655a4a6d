import { RouterError, withoutStack } from '../../core/errors.ts'
import { type Target, targetId } from '../../manifest/target.ts'

/** Number of calls that may run at once, and of those that may wait. */
export type ConcurrencyLimits = { concurrent: number; queue: number }

/** Caller of a call: organizations and their keys take turns, and calls of low priority are refused first. */
export type Caller = { organization: string; key: string; isLow: boolean }

/** Ends an admitted call; later calls have no effect. */
export type Release = () => void

/** The place of a call among those that the server runs at once. */
export type CallPlace = {
  /**
   * Gives the place up and returns true where others wait while the key of the call has nearly all places: a call whose client takes
   * nothing is then cut off.
   */
  giveWay(): boolean
  /** Offers the place to other keys, once the call is over and goes on only to learn its usage. */
  offer(): void
}

/** Maximum time for which calls wait. Milliseconds. */
const maxWaitMs = 1_000

/** Time for which a key that held every place leaves some to others. Milliseconds. */
const leavingMs = 60_000

/**
 * Limiter of concurrent calls. Waiting calls are admitted newest first, as the oldest are the nearest to being given up, with organizations
 * in turn, and of one organization the key that has the fewest calls. A call that waits too long, or does not fit in, is refused while it
 * is still worth trying again: immediately, unless it takes the place of a call of low priority, or of the organization or key that has
 * the most. One key may have all places as long as nobody else wants one; after that it leaves a tenth of them to others for a minute.
 * The place of a call that is over, and whose provider is only read for its usage, goes to the first other key that wants one.
 */
export class ConcurrencyLimiter {
  readonly #limits: () => ConcurrencyLimits
  /** The calls that have a place, and the shares they belong to. */
  readonly #running = new Map<Release, Share>()
  /** The calls whose places others may take, the oldest first. */
  readonly #offered = new Set<Release>()
  /** The calls that go on without the place they offered. */
  readonly #displaced = new Set<Release>()
  #waiting = 0
  /** Number of calls of low priority among them. */
  #lowWaiting = 0
  /** Waiting calls by organization, the newest last; the organization whose turn is next comes first. */
  readonly #queues = new Map<string, PendingCaller[]>()
  /** The calls of each key that has any. */
  readonly #shares = new Map<string, Share>()
  /** The share that was the last to have nearly all places. */
  #largest: Share | undefined
  /** The key that held nearly all places when another one had to wait, and until when it leaves some. */
  #leaving: { key: string; until: number } | undefined

  constructor(limits: () => ConcurrencyLimits) {
    this.#limits = limits
  }

  /** Checks whether a place is free. */
  get isOpen(): boolean {
    return this.#running.size < this.#limits().concurrent
  }

  /** Checks whether one more may at least wait. */
  get hasCapacity(): boolean {
    const { concurrent, queue } = this.#limits()
    return this.#running.size < concurrent || this.#waiting < queue
  }

  get running(): number {
    return this.#running.size
  }

  get waiting(): number {
    return this.#waiting
  }

  /** Returns why a call would be refused immediately; undefined for one that would be admitted, or may wait. */
  refusal(caller: Caller): RouterError | undefined {
    if (this.hasCapacity || this.#offeredTo(caller.key)) return undefined
    this.#noteContention(caller)
    return this.#placeFor(caller) ? undefined : full()
  }

  /** Checks whether others wait while this key has nearly all places: a call of it that makes no progress should give its place up. */
  mustYield({ key }: Pick<Caller, 'key'>): boolean {
    if (this.#waiting === 0 || this.#holder() !== key) return false
    return this.#waiting > (this.#shares.get(key)?.waiting ?? 0)
  }

  /** Admits a call immediately, or after a wait. Rejects with RouterError `rate_limited`, or with the reason of the signal. */
  enter(caller: Caller, signal: AbortSignal, mostMs = maxWaitMs): Release | Promise<Release> {
    if (this.isOpenTo(caller.key)) return this.#acquire(caller.key)
    const offered = this.#offeredTo(caller.key)
    if (offered) {
      this.#displace(offered)
      return this.#acquire(caller.key)
    }
    signal.throwIfAborted()
    this.#noteContention(caller)
    if (this.#waiting >= this.#limits().queue && !this.#makeRoom(caller)) throw full()
    return this.#wait(caller, signal, Math.min(mostMs, maxWaitMs))
  }

  /**
   * Offers the place of a call that is over but goes on until it calls `leave`: the first other key that wants a place takes it. As many
   * calls can be displaced at once as there are places.
   */
  offer(leave: Release): void {
    const share = this.#running.get(leave)
    if (!share) return
    this.#offered.add(leave)
    const next = this.#offeredTo(undefined) && this.#next(share.key)
    if (!next) return
    this.#displace(leave)
    this.#admit(next)
  }

  /** Returns the call whose place this key may take. */
  #offeredTo(key: string | undefined): Release | undefined {
    if (this.#displaced.size >= this.#limits().concurrent) return undefined
    for (const leave of this.#offered) if (this.#running.get(leave)?.key !== key) return leave
    return undefined
  }

  #displace(leave: Release): void {
    this.#offered.delete(leave)
    this.#displaced.add(leave)
    this.#free(leave)
  }

  async #wait(caller: Caller, signal: AbortSignal, mostMs: number): Promise<Release> {
    const { promise, resolve, reject } = Promise.withResolvers<Release>()
    const waiting: PendingCaller = { ...caller, share: this.#shareOf(caller.key), resolve, reject }
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

  #acquire(key: string): Release {
    const share = this.#shareOf(key)
    const leave = () => {
      this.#offered.delete(leave)
      if (!this.#displaced.delete(leave) && this.#free(leave)) this.#acquireNext()
    }
    this.#running.set(leave, share)
    share.running++
    if (this.#isLarge(share)) this.#largest = share
    return leave
  }

  /** Frees the place of a call, if it has one. */
  #free(leave: Release): boolean {
    const share = this.#running.get(leave)
    if (!share) return false
    this.#running.delete(leave)
    share.running--
    this.#forgetIfEmpty(share)
    return true
  }

  #acquireNext(): void {
    while (this.isOpen) {
      const next = this.#next()
      if (!next) return
      this.#admit(next)
    }
  }

  #admit(next: PendingCaller): void {
    this.#remove(next)
    // Its organization waits until all others have had their turn.
    const others = this.#queues.get(next.organization)
    if (others) {
      this.#queues.delete(next.organization)
      this.#queues.set(next.organization, others)
    }
    next.resolve(this.#acquire(next.key))
  }

  /**
   * Returns the call of the organization whose turn it is: of the key that has the fewest calls, the newest; one of low priority only when
   * there is no other. With `holder` it is that of any other key.
   */
  #next(holder?: string): PendingCaller | undefined {
    let low: PendingCaller | undefined
    const isAdmissible = ({ key }: PendingCaller) => (holder === undefined ? this.isOpenTo(key) : key !== holder)
    for (const queue of this.#queues.values()) {
      const open = this.#leaving || holder !== undefined ? queue.filter(isAdmissible) : queue
      const usual = leastServed(open)
      if (usual) return usual
      low ??= open.at(-1)
    }
    return low
  }

  /** Checks whether a key would get a place: where others had to wait for it, not one of the last ones. */
  isOpenTo(key: string): boolean {
    const { concurrent } = this.#limits()
    const free = concurrent - this.#running.size
    if (this.#leaving && this.#leaving.until <= performance.now()) this.#leaving = undefined
    return free > (this.#leaving?.key === key ? Math.min(othersPart(concurrent), concurrent - 1) : 0)
  }

  /** Takes note that a call cannot be admitted: a key that has nearly all places then leaves some, unless it is its own. */
  #noteContention({ key }: Caller): void {
    const holder = this.#holder()
    if (holder !== undefined && holder !== key) this.#leaving = { key: holder, until: performance.now() + leavingMs }
  }

  /** Returns the key that has more places than it may have when others want some. */
  #holder(): string | undefined {
    return this.#largest && this.#isLarge(this.#largest) ? this.#largest.key : undefined
  }

  #isLarge({ running }: Share): boolean {
    const { concurrent } = this.#limits()
    return running > concurrent - othersPart(concurrent)
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
   * most; in the caller's own organization, that of a key that has more than the caller.
   */
  #placeFor({ organization, key, isLow }: Caller): PendingCaller | undefined {
    if (isLow) return undefined
    const queues = [...this.#queues.values()]
    if (this.#lowWaiting > 0) return queues.flat().find((waiting) => waiting.isLow)
    const most = longest(queues)
    if (most?.[0]?.organization !== organization) return most?.[0]
    const heaviest = most.reduce((one, other) => (other.share.waiting > one.share.waiting ? other : one))
    return heaviest.share.waiting > (this.#shares.get(key)?.waiting ?? 0) + 1 ? heaviest : undefined
  }

  #add(waiting: PendingCaller): void {
    const queue = this.#queues.get(waiting.organization)
    if (queue) queue.push(waiting)
    else this.#queues.set(waiting.organization, [waiting])
    this.#waiting++
    waiting.share.waiting++
    if (waiting.isLow) this.#lowWaiting++
  }

  #remove(waiting: PendingCaller): boolean {
    const queue = this.#queues.get(waiting.organization)
    const index = queue?.indexOf(waiting) ?? -1
    if (!queue || index < 0) return false
    queue.splice(index, 1)
    if (queue.length === 0) this.#queues.delete(waiting.organization)
    this.#waiting--
    waiting.share.waiting--
    this.#forgetIfEmpty(waiting.share)
    if (waiting.isLow) this.#lowWaiting--
    return true
  }

  #shareOf(key: string): Share {
    const known = this.#shares.get(key)
    if (known) return known
    const share: Share = { key, running: 0, waiting: 0 }
    this.#shares.set(key, share)
    return share
  }

  #forgetIfEmpty({ key, running, waiting }: Share): void {
    if (running + waiting === 0) this.#shares.delete(key)
  }
}

/** Numbers of running and waiting calls of one key. */
type Share = { readonly key: string; running: number; waiting: number }

type PendingCaller = Caller & { share: Share; resolve(leave: Release): void; reject(reason: unknown): void }

/** Returns the places that a key leaves to others, once they want any. */
function othersPart(concurrent: number): number {
  return Math.ceil(concurrent / 10)
}

/** Returns the newest call of usual priority of the key that has the fewest running ones. */
function leastServed(queue: readonly PendingCaller[]): PendingCaller | undefined {
  let least: PendingCaller | undefined
  for (const one of queue) if (!one.isLow && !(least && least.share.running < one.share.running)) least = one
  return least
}

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
