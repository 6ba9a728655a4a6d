export const sorts = ['order', 'weighted', 'price', 'latency', 'throughput'] as const
export const stickiness = ['none', 'session', 'user', 'hash', 'cache'] as const
export const afterCuts = ['error', 'hold', 'continue', 'restart'] as const
export const afterBlocks = ['error', 'next'] as const

/** Rules for trying the targets of a name, and for what happens when one fails. Times in milliseconds. */
export type RoutingRules = {
  /** The order in which targets are tried: as listed, by weight, by the worst cost of the request, by what was measured. */
  sort: (typeof sorts)[number]
  /**
   * Key that keeps calls at one target: none, the client's session, its user, a hash of the caller and its user, or the warm prompt
   * cache.
   */
  sticky: (typeof stickiness)[number]
  /** Number of times that one target is asked again after a failure that may pass. */
  retries: number
  /** Maximum time without content in a stream before another target is asked, where one is left. */
  firstEventMs: number
  /** The time for the whole call; undefined leaves each attempt the time limits of its provider. */
  totalMs?: number
  /** True if the caller has set that time, which may be as short as it likes: it says nothing about targets. */
  isTotalOfCaller?: boolean
  /** The longest wait for a target that is busy. */
  retryAfterMs: number
  /** Reaction to a stream that breaks after content. */
  onCut: (typeof afterCuts)[number]
  /** Reaction to a refusal by a content filter. */
  onBlocked: (typeof afterBlocks)[number]
}

/** The most times that one target is asked again. */
export const maxRetries = 5

/** The largest weight of a target. */
export const maxWeight = 1_000_000

/** The default rules of a name. */
export const defaultRouting: RoutingRules = {
  sort: 'order',
  sticky: 'none',
  retries: 1,
  firstEventMs: 10_000,
  retryAfterMs: 5_000,
  onCut: 'error',
  onBlocked: 'error',
}

/** Rules for stopping calls to a target that fails, and for resuming them. Times in milliseconds. */
export type HealthSettings = {
  /** Number of consecutive failures that stops calls. */
  inARow: number
  /** Share of failures, in at least `of` calls within `windowMs`, that stops calls too. */
  share: number
  of: number
  windowMs: number
  /** Time for which calls are stopped at first; it doubles each time the target fails again, up to `openMostMs`. */
  openMs: number
  maxOpenMs: number
  /** Time until a target that has recovered gets all its calls again. */
  rampUpMs: number
}

export const defaultHealth: HealthSettings = {
  inARow: 5,
  share: 0.5,
  of: 10,
  windowMs: 30_000,
  openMs: 5_000,
  maxOpenMs: 60_000,
  rampUpMs: 30_000,
}
