import { RouterError } from '../core/errors.ts'
import type { RateLimits } from '../store/keys.ts'

/** A key or organization with its limits. */
export type Limited = { id: string; scope: 'key' | 'organization'; limits: RateLimits }

/** Tokens that a call may use: its prompt and its longest output; `hasOutputLimit` when the request limits its output. */
export type TokenRequest = { prompt: number; output: number; hasOutputLimit: boolean }

/** The part of the limits that a running call occupies. `headers` report what remains; none when nothing is limited. */
export type LimitReservation = {
  /** Ends the call with the tokens that it used. Later calls have no effect. */
  settle(tokens: number): void
  /** Ends the call as if it had not happened: it was rejected elsewhere. */
  undo(): void
  headers: Readonly<Record<string, string>>
}

/** Enforces the limits of keys and organizations, exactly within one process. */
export type Limits = {
  /**
   * Reserves a request, tokens and a running call within the limits of all, or of none. Throws RouterError `rate_limited`
   * with the time after which the same call passes.
   */
  take(limited: readonly Limited[], request: TokenRequest): LimitReservation
  /** Returns the number of windows in memory, and of the calls that run in them. */
  state(): { windows: number; running: number }
}

/**
 * Opens the limits. No period of 60 s has more requests or tokens than the limit. A call without an output limit reserves
 * the remaining tokens, up to its estimate, and is rejected only when its prompt does not fit; a call that alone exceeds
 * the limit passes when nothing else was used. `now` returns milliseconds of a monotonic clock.
 */
export function openLimits({ now = () => performance.now(), mostIdle = 10_000 } = {}): Limits {
  const windows = new Map<string, Window>()
  let sweepAt = mostIdle

  const windowOf = ({ scope, id }: Limited, at: number): Window => {
    const name = `${scope} ${id}`
    const known = windows.get(name)
    if (known) dropExpired(known, at)
    const window = known ?? { slots: [], requests: 0, tokens: 0, running: 0 }
    if (!known) windows.set(name, window)
    return window
  }

  const sweep = (at: number) => {
    for (const [name, window] of windows) {
      dropExpired(window, at)
      if (window.slots.length === 0 && window.running === 0) windows.delete(name)
    }
    sweepAt = Math.max(mostIdle, 2 * windows.size)
  }

  return {
    take(limited, request) {
      const at = now()
      if (windows.size >= sweepAt) sweep(at)
      const applied = limited.filter(isLimited).map((one) => ({ ...one, window: windowOf(one, at) }))
      if (applied.length === 0) return unlimited
      const longest = applied.flatMap((one) => exceededLimits(one, request, at)).sort((a, b) => b.waitMs - a.waitMs)[0]
      if (longest) {
        const facts = { retryAfterMs: longest.waitMs, headers: headersOf(applied, at) }
        throw new RouterError('rate_limited', longest.message, facts)
      }
      const reserved = applied.map((one) => reserveIn(one, request, at))
      return { ...endsOf(reserved), headers: headersOf(applied, at) }
    },
    state: () => ({
      windows: windows.size,
      running: [...windows.values()].reduce((sum, { running }) => sum + running, 0),
    }),
  }
}

/** The usage of one interval of `slotMs`; it counts until `endsAt`, 60 s after the end of the interval. */
type Slot = { endsAt: number; requests: number; tokens: number }
/** The last 60 s of a key or organization; the sums are those of its slots, oldest first. */
type Window = { slots: Slot[]; requests: number; tokens: number; running: number }
type LimitedWindow = Limited & { window: Window }
type Exceeded = { waitMs: number; message: string }

const windowMs = 60_000
/** A window has at most 601 slots, and a retry waits at most this much too long. */
const slotMs = 100
/** The suggested delay when the limit of calls at once is reached: when one will end is unknown. */
export const runningWaitMs = 1_000

/** Reservation of a call that no limit applies to. */
export const unlimited: LimitReservation = { settle() {}, undo() {}, headers: {} }

function isLimited({ limits }: Limited): boolean {
  return limits.requestsPerMinute !== null || limits.tokensPerMinute !== null || limits.concurrentCalls !== null
}

function dropExpired(window: Window, at: number): void {
  let expired = 0
  for (const slot of window.slots) {
    if (slot.endsAt > at) break
    window.requests -= slot.requests
    window.tokens -= slot.tokens
    expired++
  }
  if (expired > 0) window.slots.splice(0, expired)
}

function exceededLimits({ scope, limits, window }: LimitedWindow, request: TokenRequest, at: number): Exceeded[] {
  const { concurrentCalls, requestsPerMinute, tokensPerMinute } = limits
  const exceeded: Exceeded[] = []
  const add = (what: What, facts: Omit<ExceededFacts, 'scope' | 'what'>) =>
    exceeded.push({ waitMs: facts.waitMs, message: exceededMessage({ scope, what, ...facts }) })
  if (concurrentCalls !== null && window.running >= concurrentCalls)
    add('calls', { limit: concurrentCalls, left: 0, needed: 1, waitMs: runningWaitMs })
  if (requestsPerMinute !== null && window.requests + 1 > requestsPerMinute) {
    const waitMs = waitFor(window, 'requests', window.requests + 1 - requestsPerMinute) - at
    add('requests', { limit: requestsPerMinute, left: 0, needed: 1, waitMs })
  }
  const needed = neededTokens(request)
  if (tokensPerMinute !== null && needed > 0 && window.tokens > 0 && window.tokens + needed > tokensPerMinute) {
    const waitMs = waitFor(window, 'tokens', window.tokens + needed - tokensPerMinute) - at
    add('tokens', { limit: tokensPerMinute, left: Math.max(tokensPerMinute - window.tokens, 0), needed, waitMs })
  }
  return exceeded
}

/** Kind of quantity that is limited. */
export type What = 'calls' | 'requests' | 'tokens'

/** A limit that a call exceeds: how much of it is left, and when the call would pass. */
export type ExceededFacts = Pick<Limited, 'scope'> & {
  what: What
  limit: number
  left: number
  needed: number
  waitMs: number
}

/** Returns the message for clients. */
export function exceededMessage({ scope, what, limit, left, needed, waitMs }: ExceededFacts): string {
  const owner = scope === 'key' ? 'this API key' : 'the organization'
  if (what === 'calls')
    return `The limit of ${owner} is ${limit} concurrent calls, and that many are already running. Try again when one has finished.`
  if (what === 'requests')
    return `The limit of ${owner} is ${limit} requests per minute, and it has been reached. Try again in ${seconds(waitMs)}.`
  return `The limit of ${owner} is ${limit} tokens per minute: ${left} remain and this call may need ${needed}. Try again in ${seconds(waitMs)}.`
}

/** Returns the time when `missing` units are free, or as many as can be. */
function waitFor(window: Window, what: 'requests' | 'tokens', missing: number): number {
  let freed = 0
  for (const slot of window.slots) {
    freed += slot[what]
    if (freed >= missing) return slot.endsAt
  }
  return window.slots.at(-1)?.endsAt ?? 0
}

/** Returns the tokens that must be available for a call to pass. */
export function neededTokens({ prompt, output, hasOutputLimit }: TokenRequest): number {
  return hasOutputLimit ? prompt + output : Math.max(prompt, 1)
}

type Reserved = { window: Window; slot: Slot; tokens: number }

function reserveIn({ window, limits }: LimitedWindow, request: TokenRequest, at: number): Reserved {
  const left = limits.tokensPerMinute === null ? Number.POSITIVE_INFINITY : limits.tokensPerMinute - window.tokens
  const tokens = Math.max(Math.min(left, request.prompt + request.output), neededTokens(request))
  const endsAt = (Math.floor(at / slotMs) + 1) * slotMs + windowMs
  let slot = window.slots.at(-1)
  if (slot?.endsAt !== endsAt) {
    slot = { endsAt, requests: 0, tokens: 0 }
    window.slots.push(slot)
  }
  window.running++
  add({ window, slot, tokens: 0 }, 1, tokens)
  return { window, slot, tokens }
}

/** Adds to a slot, and to its window unless the slot has left it. */
function add({ window, slot }: Reserved, requests: number, tokens: number): void {
  if (window.slots[0] && slot.endsAt >= window.slots[0].endsAt) {
    window.requests += requests
    window.tokens += tokens
  }
  slot.requests += requests
  slot.tokens += tokens
}

function endsOf(parts: readonly Reserved[]): Pick<LimitReservation, 'settle' | 'undo'> {
  let running = true
  const end = (change: (part: Reserved) => void) => {
    if (!running) return
    running = false
    for (const part of parts) {
      part.window.running--
      change(part)
    }
  }
  return {
    settle: (tokens) => end((part) => add(part, 0, tokens - part.tokens)),
    undo: () => end((part) => add(part, -1, -part.tokens)),
  }
}

/** Returns the remainder of the tightest limit of each kind, and when it is fully available again. */
function headersOf(applied: readonly LimitedWindow[], at: number): Record<string, string> {
  const rests = applied.flatMap(({ limits, window }): Remaining[] => {
    const resetMs = (window.slots.at(-1)?.endsAt ?? at) - at
    return kinds.flatMap(({ what, limitOf }) => {
      const limit = limits[limitOf]
      return limit === null ? [] : { what, limit, left: limit - window[what], resetMs }
    })
  })
  return remainingHeaders(rests)
}

/** Remaining part of a limit, and the time until all of it is available. */
export type Remaining = { what: What; limit: number; left: number; resetMs: number }

/** Returns headers for the client: the remainder of the tightest limit of each kind. */
export function remainingHeaders(rests: readonly Remaining[]): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const { what, limitName, remainingName, resetName } of kinds) {
    let tightest: Remaining | undefined
    for (const rest of rests)
      if (rest.what === what && (!tightest || Math.max(rest.left, 0) < Math.max(tightest.left, 0))) tightest = rest
    if (!tightest) continue
    headers[limitName] = String(tightest.limit)
    headers[remainingName] = String(Math.max(tightest.left, 0))
    headers[resetName] = shortly(Math.max(tightest.resetMs, 0))
  }
  return headers
}

const kinds = [
  {
    what: 'requests',
    limitOf: 'requestsPerMinute',
    limitName: 'x-ratelimit-limit-requests',
    remainingName: 'x-ratelimit-remaining-requests',
    resetName: 'x-ratelimit-reset-requests',
  },
  {
    what: 'tokens',
    limitOf: 'tokensPerMinute',
    limitName: 'x-ratelimit-limit-tokens',
    remainingName: 'x-ratelimit-remaining-tokens',
    resetName: 'x-ratelimit-reset-tokens',
  },
] as const

/** Formats a time as `350ms` or `12s`. */
function shortly(ms: number): string {
  return ms < 1_000 ? `${Math.ceil(ms)}ms` : `${Math.ceil(ms / 1_000)}s`
}

function seconds(ms: number): string {
  return `${Math.ceil(ms / 1_000)} s`
}
