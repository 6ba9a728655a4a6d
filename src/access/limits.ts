import { RouterError } from '../core/errors.ts'
import type { RateLimits } from '../core/limits.ts'

/** Who is limited. */
export type Limited = { id: string; scope: 'key' | 'organization'; limits: RateLimits }

/** Tokens a call may use: its prompt, and its answer at most; `stated` when the request itself says that bound. */
export type WantedTokens = { prompt: number; output: number; stated: boolean }

/** What a running call has taken of the limits. `headers` tell what is left of them: none when nothing is limited. */
export type Taken = {
  /** The call is over and used this many tokens. Only the first end counts. */
  settle(tokens: number): void
  /** The call was refused elsewhere: as if it had not been. */
  undo(): void
  headers: Readonly<Record<string, string>>
}

/** The limits of keys and organizations, exact within one process. */
export type Limits = {
  /**
   * Takes a request, tokens and a place among the running calls from all who are limited, or from none. Throws RouterError
   * `rate_limited` with the time after which the same call passes.
   */
  take(limited: readonly Limited[], wanted: WantedTokens): Taken
  /** How many windows are remembered, and how many calls run in them. */
  state(): { windows: number; running: number }
}

/**
 * Opens the limits. In no 60 s there are more requests or tokens than the limit. A call without a stated bound takes what
 * is left of the tokens, up to its estimate, and is refused only where its prompt does not fit; one that alone is more than
 * the limit passes when nothing else was used. `now` gives milliseconds of a clock that only goes forward.
 */
export function openLimits({ now = () => performance.now(), mostIdle = 10_000 } = {}): Limits {
  const windows = new Map<string, Window>()
  let sweepAt = mostIdle

  const windowOf = ({ scope, id }: Limited, at: number): Window => {
    const name = `${scope} ${id}`
    const known = windows.get(name)
    if (known) forget(known, at)
    const window = known ?? { slots: [], requests: 0, tokens: 0, running: 0 }
    if (!known) windows.set(name, window)
    return window
  }

  const sweep = (at: number) => {
    for (const [name, window] of windows) {
      forget(window, at)
      if (window.slots.length === 0 && window.running === 0) windows.delete(name)
    }
    sweepAt = Math.max(mostIdle, 2 * windows.size)
  }

  return {
    take(limited, wanted) {
      const at = now()
      if (windows.size >= sweepAt) sweep(at)
      const asked = limited.filter(isLimited).map((one) => ({ ...one, window: windowOf(one, at) }))
      if (asked.length === 0) return nothingTaken
      const longest = asked.flatMap((one) => refusals(one, wanted, at)).sort((a, b) => b.waitMs - a.waitMs)[0]
      if (longest) {
        const facts = { retryAfterMs: longest.waitMs, headers: headersOf(asked, at) }
        throw new RouterError('rate_limited', longest.message, facts)
      }
      const taken = asked.map((one) => takeFrom(one, wanted, at))
      return { ...endsOf(taken), headers: headersOf(asked, at) }
    },
    state: () => ({
      windows: windows.size,
      running: [...windows.values()].reduce((sum, { running }) => sum + running, 0),
    }),
  }
}

/** What came within the same moment; it counts until `endsAt`, 60 s after the end of that moment. */
type Slot = { endsAt: number; requests: number; tokens: number }
/** The last 60 s of somebody; the sums are those of its slots, the oldest first. */
type Window = { slots: Slot[]; requests: number; tokens: number; running: number }
type Asked = Limited & { window: Window }
type Refusal = { waitMs: number; message: string }

const windowMs = 60_000
/** Coarse enough that a window has at most 601 slots, fine enough that nobody waits long because of it. */
const slotMs = 100
/** When one of the running calls ends is not known. */
const runningWaitMs = 1_000

const nothingTaken: Taken = { settle() {}, undo() {}, headers: {} }

function isLimited({ limits }: Limited): boolean {
  return limits.requestsPerMinute !== null || limits.tokensPerMinute !== null || limits.concurrentCalls !== null
}

function forget(window: Window, at: number): void {
  let gone = 0
  for (const slot of window.slots) {
    if (slot.endsAt > at) break
    window.requests -= slot.requests
    window.tokens -= slot.tokens
    gone++
  }
  if (gone > 0) window.slots.splice(0, gone)
}

function refusals({ scope, limits, window }: Asked, wanted: WantedTokens, at: number): Refusal[] {
  const { concurrentCalls, requestsPerMinute, tokensPerMinute } = limits
  const whose = scope === 'key' ? 'this API key' : 'the organization'
  const found: Refusal[] = []
  if (concurrentCalls !== null && window.running >= concurrentCalls) {
    const message = `The limit of ${whose} is ${concurrentCalls} calls at once, and as many are running. Try again when one has ended.`
    found.push({ waitMs: runningWaitMs, message })
  }
  if (requestsPerMinute !== null && window.requests + 1 > requestsPerMinute) {
    const waitMs = waitFor(window, 'requests', window.requests + 1 - requestsPerMinute) - at
    const message = `The limit of ${whose} is ${requestsPerMinute} requests per minute, and it is used up. Try again in ${inWords(waitMs)}.`
    found.push({ waitMs, message })
  }
  const needed = neededTokens(wanted)
  if (tokensPerMinute !== null && needed > 0 && window.tokens > 0 && window.tokens + needed > tokensPerMinute) {
    const waitMs = waitFor(window, 'tokens', window.tokens + needed - tokensPerMinute) - at
    const left = Math.max(tokensPerMinute - window.tokens, 0)
    const message = `The limit of ${whose} is ${tokensPerMinute} tokens per minute: ${left} are left, and this call may need ${needed}. Try again in ${inWords(waitMs)}.`
    found.push({ waitMs, message })
  }
  return found
}

/** The moment when so many are free again, or all that can be. */
function waitFor(window: Window, what: 'requests' | 'tokens', missing: number): number {
  let freed = 0
  for (const slot of window.slots) {
    freed += slot[what]
    if (freed >= missing) return slot.endsAt
  }
  return window.slots.at(-1)?.endsAt ?? 0
}

/** Below this a call does not pass; what has no output needs none. */
function neededTokens({ prompt, output, stated }: WantedTokens): number {
  return stated ? prompt + output : Math.max(prompt, 1)
}

type TakenPart = { window: Window; slot: Slot; tokens: number }

function takeFrom({ window, limits }: Asked, wanted: WantedTokens, at: number): TakenPart {
  const left = limits.tokensPerMinute === null ? Number.POSITIVE_INFINITY : limits.tokensPerMinute - window.tokens
  const tokens = Math.max(Math.min(left, wanted.prompt + wanted.output), neededTokens(wanted))
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

/** A slot that has left the window changes it no longer. */
function add({ window, slot }: TakenPart, requests: number, tokens: number): void {
  if (window.slots[0] && slot.endsAt >= window.slots[0].endsAt) {
    window.requests += requests
    window.tokens += tokens
  }
  slot.requests += requests
  slot.tokens += tokens
}

function endsOf(parts: readonly TakenPart[]): Pick<Taken, 'settle' | 'undo'> {
  let running = true
  const end = (change: (part: TakenPart) => void) => {
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

/** What is left of the tightest limit of each kind, and when all of it is there again. */
function headersOf(asked: readonly Asked[], at: number): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const { what, limitOf, limitName, remainingName, resetName } of kinds) {
    let tightest: { limit: number; left: number; window: Window } | undefined
    for (const { limits, window } of asked) {
      const limit = limits[limitOf]
      if (limit === null) continue
      const left = Math.max(limit - window[what], 0)
      if (!tightest || left < tightest.left) tightest = { limit, left, window }
    }
    if (!tightest) continue
    const { limit, left, window } = tightest
    headers[limitName] = String(limit)
    headers[remainingName] = String(left)
    headers[resetName] = shortly(Math.max((window.slots.at(-1)?.endsAt ?? at) - at, 0))
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

/** `350ms`, `12s`. */
function shortly(ms: number): string {
  return ms < 1_000 ? `${Math.ceil(ms)}ms` : `${Math.ceil(ms / 1_000)}s`
}

function inWords(ms: number): string {
  return `${Math.ceil(ms / 1_000)} s`
}
