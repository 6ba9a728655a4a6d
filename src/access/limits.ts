import { accountName, type Need, type QuotaStatus, type Reserved } from '../accounts/account.ts'
import type { Accounts } from '../accounts/accounts.ts'
import { RouterError } from '../core/errors.ts'
import type { RateLimits } from '../store/keys.ts'

/** A key with its organization, or the organization itself, and the limits. */
export type Limited = { id: string; organization: string; scope: 'key' | 'organization'; limits: RateLimits }

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

/** Enforces the limits of keys and organizations, exactly. */
export type Limits = {
  /**
   * Reserves a request, tokens and a running call within the limits of all, or of none. Throws RouterError `rate_limited`
   * with the time after which the same call passes. The result is a promise where another instance of the router has been granted what is
   * missing.
   */
  take(limited: readonly Limited[], request: TokenRequest): LimitReservation | Promise<LimitReservation>
}

/** One limit that applies to a call, and the amount that the call needs of it. */
type Applied = Pick<Limited, 'scope'> & { what: What; need: Need & { limit: bigint } }

/**
 * Opens the limits on the accounts of this thread. No period of 60 s has more requests or tokens than the limit. A call without an output
 * limit reserves the remaining tokens, up to its estimate, and is rejected only when its prompt does not fit; a call that alone exceeds
 * the limit passes when nothing else was used.
 */
export function openLimits(accounts: Accounts): Limits {
  return {
    take(limited, request) {
      const applied = limited.flatMap((one) => appliedOf(one, request))
      if (applied.length === 0) return unlimited
      const reserved = accounts.reserve(applied.map(({ need }) => need))
      if (reserved instanceof Promise) return reserved.then((one) => reservationOf(accounts, applied, one))
      return reservationOf(accounts, applied, reserved)
    },
  }
}

/** The suggested delay when the limit of calls at once is reached: when one will end is unknown. */
const runningWaitMs = 1_000

/** Reservation of a call that no limit applies to. */
const unlimited: LimitReservation = { settle() {}, undo() {}, headers: {} }

function appliedOf(one: Limited, request: TokenRequest): Applied[] {
  const { scope, limits } = one
  const { concurrentCalls, requestsPerMinute, tokensPerMinute } = limits
  const applied: Applied[] = []
  if (concurrentCalls === null && requestsPerMinute === null && tokensPerMinute === null) return applied
  const names = namesOf(one)
  const add = (what: What, limit: number | null, needed: Omit<Need, 'account' | 'limit'>) => {
    if (limit === null) return
    applied.push({ scope, what, need: { account: names[what], limit: BigInt(limit), ...needed } })
  }
  add('calls', concurrentCalls, { kind: 'running', least: 1n, wish: 1n })
  add('requests', requestsPerMinute, { kind: 'minute', least: 1n, wish: 1n })
  const least = neededTokens(request)
  const wish = Math.max(request.prompt + request.output, least)
  add('tokens', tokensPerMinute, { kind: 'minute', least: units(least), wish: units(wish), passesAlone: true })
  return applied
}

/** Names of accounts by the limits of the last call with them: to look up a new string takes as long as all the rest. */
const known = new WeakMap<RateLimits, { owner: Limited; names: { [what in What]: string } }>()

function namesOf(owner: Limited): { [what in What]: string } {
  const { id, scope, organization, limits } = owner
  const found = known.get(limits)
  if (found?.owner.id === id && found.owner.scope === scope && found.owner.organization === organization)
    return found.names
  const name = (what: What) => accountName(organization, scope === 'key' ? `${what} key ${id}` : `${what} organization`)
  const names = { calls: name('calls'), requests: name('requests'), tokens: name('tokens') }
  known.set(limits, { owner: { id, scope, organization, limits }, names })
  return names
}

/** Throws RouterError `rate_limited` where nothing was reserved. */
function reservationOf(accounts: Accounts, applied: readonly Applied[], reserved: Reserved): LimitReservation {
  const headers = headersOf(applied, reserved.statuses)
  if (!reserved.isReserved) throw refusalOf(applied, reserved.statuses, headers)
  const { parts } = reserved
  let isRunning = true
  const end = (change: (applied: Applied, amount: bigint) => bigint) => {
    if (!isRunning) return
    isRunning = false
    const changes = parts.map(({ amount }, index) => change(applied[index] as Applied, amount))
    accounts.end(parts, changes)
  }
  return {
    settle: (tokens) => end(({ what }, amount) => (what === 'tokens' ? units(tokens) - amount : 0n)),
    undo: () => end((_, amount) => -amount),
    headers,
  }
}

function refusalOf(applied: readonly Applied[], statuses: readonly QuotaStatus[], headers: Record<string, string>) {
  const exceeded = applied.flatMap(({ scope, what, need }, index) => {
    const { isShort, waitMs, left } = statuses[index] as QuotaStatus
    if (!isShort) return []
    const facts = { limit: Number(need.limit), left: Number(left > 0n ? left : 0n), needed: Number(need.least) }
    return [{ scope, what, ...facts, waitMs: what === 'calls' ? runningWaitMs : waitMs }]
  })
  const [longest] = exceeded.sort((one, other) => other.waitMs - one.waitMs)
  const facts = { retryAfterMs: longest?.waitMs ?? runningWaitMs, headers }
  return new RouterError('rate_limited', longest ? exceededMessage(longest) : 'A limit has been reached.', facts)
}

/** Returns the remainder of the tightest limit of each kind, and when it is fully available again. */
function headersOf(applied: readonly Applied[], statuses: readonly QuotaStatus[]): Record<string, string> {
  const rests = applied.map(({ what, need }, index): Remaining => {
    const { left, resetMs } = statuses[index] as QuotaStatus
    return { what, limit: Number(need.limit), left: Number(left), resetMs }
  })
  return remainingHeaders(rests)
}

/** Estimates may have fractions. */
function units(tokens: number): bigint {
  return BigInt(Math.round(tokens))
}

/** Kind of quantity that is limited. */
type What = 'calls' | 'requests' | 'tokens'

/** A limit that a call exceeds: how much of it is left, and when the call would pass. */
type ExceededFacts = Pick<Limited, 'scope'> & {
  what: What
  limit: number
  left: number
  needed: number
  waitMs: number
}

/** Returns the message for clients. */
function exceededMessage({ scope, what, limit, left, needed, waitMs }: ExceededFacts): string {
  const owner = scope === 'key' ? 'this API key' : 'the organization'
  if (what === 'calls')
    return `The limit of ${owner} is ${limit} concurrent calls, and that many are already running. Try again when one has finished.`
  if (what === 'requests')
    return `The limit of ${owner} is ${limit} requests per minute, and it has been reached. Try again in ${seconds(waitMs)}.`
  return `The limit of ${owner} is ${limit} tokens per minute: ${left} remain and this call may need ${needed}. Try again in ${seconds(waitMs)}.`
}

/** Returns the tokens that must be available for a call to pass. */
function neededTokens({ prompt, output, hasOutputLimit }: TokenRequest): number {
  return hasOutputLimit ? prompt + output : Math.max(prompt, 1)
}

/** Remaining part of a limit, and the time until all of it is available. */
type Remaining = { what: What; limit: number; left: number; resetMs: number }

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
    limitName: 'x-ratelimit-limit-requests',
    remainingName: 'x-ratelimit-remaining-requests',
    resetName: 'x-ratelimit-reset-requests',
  },
  {
    what: 'tokens',
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
