import { RouterError } from '../core/errors.ts'
import type { Need, Standing } from '../lending/account.ts'
import { Borrowing, freeIn, type Purse, type PurseAccount } from '../lending/purse.ts'
import { slotEnd } from '../lending/window.ts'
import {
  exceededMessage,
  type Limited,
  type LimitReservation,
  type Limits,
  neededTokens,
  type Remaining,
  remainingHeaders,
  runningWaitMs,
  type TokenRequest,
  unlimited,
  type What,
} from './limits.ts'

/** One limit that applies to a call, and the amount that the call needs of it. */
type Applied = Pick<Limited, 'scope'> & { what: What; need: Need & { limit: bigint } }

/**
 * Opens the limits of one event loop of several: its local quota of them. Throws Borrowing where that is too little.
 * `now` returns milliseconds of the quota allocator's clock.
 */
export function openQuotaLimits(purse: Purse, { now }: { now(): number }): Limits {
  return {
    take(limited, request) {
      const applied = limited.flatMap((one) => appliedOf(one, request))
      if (applied.length === 0) return unlimited
      const accounts = applied.flatMap(({ need }) => purse.find(need) ?? [])
      const isLent = applied.every(({ need }, index) => covers(accounts[index], need))
      if (accounts.length < applied.length || !isLent) throw requestQuota(purse, applied)
      const endsAt = slotEnd(now())
      const taken = applied.map(({ what, need }, index) => takeFrom(purse, { what, need, endsAt }, accounts[index]))
      for (const account of accounts) purse.refill(account)
      const resetMs = endsAt - now()
      const rests = applied.map(({ what, need }, index): Remaining => {
        const { left } = accounts[index] as PurseAccount
        return {
          what,
          limit: Number(need.limit),
          left: Number(freeIn(accounts[index] as PurseAccount) + left),
          resetMs,
        }
      })
      return { ...endsOf(taken), headers: remainingHeaders(rests) }
    },
    state: () => ({ windows: purse.totals().accounts, running: Number(purse.totals().reserved) }),
  }
}

function appliedOf({ scope, id, limits }: Limited, request: TokenRequest): Applied[] {
  const { concurrentCalls, requestsPerMinute, tokensPerMinute } = limits
  const applied: Applied[] = []
  const add = (what: What, limit: number | null, needed: Pick<Need, 'kind' | 'least' | 'wish'>) => {
    if (limit === null) return
    const need = { account: `${what} ${scope} ${id}`, limit: BigInt(limit), ...needed }
    applied.push({ scope, what, need: { ...need, ...(what === 'tokens' && { passesAlone: true }) } })
  }
  add('calls', concurrentCalls, { kind: 'running', least: 1n, wish: 1n })
  add('requests', requestsPerMinute, { kind: 'minute', least: 1n, wish: 1n })
  const least = neededTokens(request)
  const wish = Math.max(request.prompt + request.output, least)
  add('tokens', tokensPerMinute, { kind: 'minute', least: units(least), wish: units(wish) })
  return applied
}

/** Checks whether a call may run with the local quota; more than that is requested while the quota allocator has it. */
function covers(account: PurseAccount | undefined, { least, wish }: Need): boolean {
  if (!account) return false
  const free = freeIn(account)
  return free >= wish || (free >= least && account.left <= 0n)
}

/** Reservations of a call, which end with its usage, or as if it had not happened. */
type Taken = { settle(tokens: number): void; undo(): void }

function takeFrom(
  purse: Purse,
  { what, need, endsAt }: Pick<Applied, 'what' | 'need'> & { endsAt: number },
  found: PurseAccount | undefined,
): Taken {
  const account = found as PurseAccount
  if (what === 'calls') {
    const end = () => {
      account.reserved--
      account.open--
    }
    account.reserved++
    account.open++
    return { settle: end, undo: end }
  }
  const free = freeIn(account)
  const wished = free < need.wish ? free : need.wish
  const uses = wished > need.least ? wished : need.least
  purse.use(account, endsAt, uses, uses)
  return {
    settle(tokens) {
      if (what === 'tokens') purse.use(account, endsAt, units(tokens) - uses, 0n)
    },
    undo: () => purse.use(account, endsAt, -uses, -uses),
  }
}

function endsOf(taken: readonly Taken[]): Pick<LimitReservation, 'settle' | 'undo'> {
  let running = true
  const end = (change: (one: Taken) => void) => {
    if (running) taken.forEach(change)
    running = false
  }
  return { settle: (tokens) => end((one) => one.settle(tokens)), undo: () => end((one) => one.undo()) }
}

function requestQuota(purse: Purse, applied: readonly Applied[]): Borrowing {
  const needs = applied.map(({ need }) => need)
  return new Borrowing(purse, needs, (standings) => refusalOf(applied, standings))
}

function refusalOf(applied: readonly Applied[], standings: readonly Standing[]): RouterError {
  const stood = applied.flatMap((one) => {
    const standing = standings.find(({ account }) => account === one.need.account)
    return standing ? { ...one, standing } : []
  })
  const rests = stood.map(({ what, need, standing: { left, resetMs } }): Remaining => {
    return { what, limit: Number(need.limit), left: Number(left), resetMs }
  })
  const exceeded = stood.filter(({ standing }) => standing.isShort).map(exceededBy)
  const [longest] = exceeded.sort((one, other) => other.waitMs - one.waitMs)
  const facts = { retryAfterMs: longest?.waitMs ?? runningWaitMs, headers: remainingHeaders(rests) }
  return new RouterError('rate_limited', longest ? exceededMessage(longest) : 'A limit has been reached.', facts)
}

function exceededBy({ scope, what, need, standing }: Applied & { standing: Standing }) {
  const waitMs = what === 'calls' ? runningWaitMs : standing.waitMs
  const left = Number(standing.left > 0n ? standing.left : 0n)
  return { scope, what, limit: Number(need.limit), left, needed: Number(need.least), waitMs }
}

/** Estimates may have fractions. */
function units(tokens: number): bigint {
  return BigInt(Math.round(tokens))
}
