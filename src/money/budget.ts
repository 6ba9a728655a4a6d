import { RouterError } from '../core/errors.ts'
import { formatTime, monthStart } from '../core/time.ts'
import { monthOf, type Spend } from '../store/ledger/sums.ts'
import { usdText } from './usd.ts'

/** The accounts that pay for a call. Limits and credit in nano-USD; null is no limit. */
export type PayingAccounts = {
  /** Unix milliseconds; the call counts toward the month of this time. */
  at: number
  key: { id: string; monthlyLimitNano: bigint | null }
  group?: { id: string; name?: string; limitNano: bigint | null } | undefined
  organization: { id: string; creditNano: bigint; enforcesBalance: boolean }
}

/** The accounts that pay for a call, and its maximum cost in nano-USD. */
export type BudgetRequest = PayingAccounts & {
  nanoUsd: bigint
  /** The output tokens that the cost assumes when the call sets no limit. */
  assumedTokens?: number | undefined
  /** Uses of the provider's tools that the cost assumes when the call sets no limit. */
  assumedUses?: number | undefined
}

/** The money that is reserved for a running call. */
export type Reservation = {
  /** Raises the reservation to at least this amount, where it was less. Throws RouterError `budget_exhausted`, and nothing is changed. */
  raise(nanoUsd: bigint): void | Promise<void>
  /** A part of what is reserved has been spent, although the call goes on. Nano-USD. */
  charge(nanoUsd: bigint): void
  /**
   * Ends the reservation with the call's cost, which may exceed it and counts as spent from now on; 0 only releases it.
   * Later calls have no effect.
   */
  settle(nanoUsd: bigint): void
  /** The most that has been reserved, in nano-USD. */
  maxNano(): bigint
  /** The settled cost is now in the spend tables. Not called while that is uncertain. */
  written(): void
}

/** Enforces limits and balances. Reservations are in memory only: a crash releases them. */
export type Budget = {
  /** Returns what the accounts can still pay, in nano-USD: the lowest of their balances, not below 0; undefined where none has a limit. */
  left(payers: PayingAccounts): bigint | undefined
  /**
   * Reserves money of the key, its group and the organization, of all or none. A call that costs nothing is always admitted.
   * Throws RouterError `budget_exhausted`, and the errors of the tables when they cannot be read.
   */
  reserve(request: BudgetRequest): Reservation
  /** Returns the number of cached accounts, and the sum of the reservations on them, in nano-USD. */
  totals(): { accounts: number; reservedNano: bigint }
}

/** The stored sums, read at the first use of an account. */
export type SpendTables = Pick<Spend, 'ofKey' | 'ofGroup' | 'totalOfOrganization'>

/**
 * Opens the budget on the spend tables, which only this process may add to: an account is read once and cached as long as
 * a reservation or an unwritten cost needs it. `mostIdle` bounds how many other accounts are cached.
 */
export function openBudget(tables: SpendTables, { mostIdle = 10_000 } = {}): Budget {
  const accounts = new Map<string, Account>()
  let sweepAt = mostIdle
  let month: Month = { from: 0, until: 0, name: '' }

  const accountFor = (name: string, read: () => bigint): Account => {
    let found = accounts.get(name)
    if (!found) {
      found = { spent: read(), reserved: 0n, open: 0, used: true }
      accounts.set(name, found)
    }
    found.used = true
    return found
  }

  /** Evicts accounts not used since the last sweep; they can be reloaded from the tables. */
  const sweep = () => {
    for (const [name, { open, used }] of accounts) if (open === 0 && !used) accounts.delete(name)
    for (const remaining of accounts.values()) remaining.used = false
    sweepAt = Math.max(mostIdle, 2 * accounts.size)
  }

  /** The accounts with their limits, the key's first. */
  const accountsOf = ({ at, key, group, organization }: PayingAccounts): Limited[] => {
    if (accounts.size >= sweepAt) sweep()
    if (at < month.from || at >= month.until) month = monthAround(at)
    const ofKey = accountFor(`key ${key.id} ${month.name}`, () => tables.ofKey(key.id, at))
    const ofGroup = group && accountFor(`group ${group.id} ${month.name}`, () => tables.ofGroup(group.id, at))
    const ofOrganization = accountFor(`organization ${organization.id}`, () =>
      tables.totalOfOrganization(organization.id),
    )
    const { creditNano, enforcesBalance } = organization
    const limited: Limited[] = [{ account: ofKey, limitNano: key.monthlyLimitNano, owner: 'this API key', month }]
    if (group && ofGroup) {
      const owner = `the group '${group.name ?? group.id}' of this API key`
      limited.push({ account: ofGroup, limitNano: group.limitNano, owner, month })
    }
    limited.push({ account: ofOrganization, limitNano: enforcesBalance ? creditNano : null })
    return limited
  }

  return {
    left(payers) {
      if (!isLimited(payers)) return undefined
      let least: bigint | undefined
      for (const { account, limitNano } of accountsOf(payers)) {
        if (limitNano === null) continue
        const left = limitNano - account.spent - account.reserved
        if (least === undefined || left < least) least = left
      }
      return least !== undefined && least < 0n ? 0n : least
    },
    reserve(request) {
      const { nanoUsd, assumedTokens, assumedUses } = request
      const limited = accountsOf(request)
      const headroom = (mostNano: bigint, moreNano: bigint) =>
        requireHeadroom(limited, { nanoUsd: mostNano, moreNano, assumedTokens, assumedUses })
      headroom(nanoUsd, nanoUsd)
      const accounts = limited.map(({ account }) => account)
      return reserveOn(accounts, { nanoUsd, headroom })
    },
    totals: () => ({
      accounts: accounts.size,
      reservedNano: [...accounts.values()].reduce((sum, { reserved }) => sum + reserved, 0n),
    }),
  }
}

/** Nano-USD. `open` counts the calls that are running or whose cost is not on disk yet. */
export type Account = { spent: bigint; reserved: bigint; open: number; used: boolean }

/** An account and its limit; a monthly one has an owner, and resets at the end of its month. */
export type Limited = { account: Account; limitNano: bigint | null; owner?: string; month?: Month }

/** The maximum cost of a call, and what the accounts have to hold of it beyond what they hold already. */
export type RequestedFunds = {
  nanoUsd: bigint
  moreNano: bigint
  assumedTokens: number | undefined
  assumedUses: number | undefined
}

/** The month of a time, by its name in the tables. Unix milliseconds. */
export type Month = { from: number; until: number; name: string }

export function monthAround(at: number): Month {
  return { from: monthStart(at), until: monthStart(at, 1), name: monthOf(at) }
}

/** Checks whether any of the accounts has a limit. */
export function isLimited({ key, group, organization }: PayingAccounts): boolean {
  return key.monthlyLimitNano !== null || (group?.limitNano ?? null) !== null || organization.enforcesBalance
}

/** A call that costs nothing needs no room. */
function requireHeadroom(limited: readonly Limited[], asked: RequestedFunds): undefined {
  if (asked.moreNano <= 0n) return
  for (const one of limited) {
    const { account, limitNano } = one
    if (limitNano !== null && account.spent + account.reserved + asked.moreNano > limitNano)
      throw exhausted(one, limitNano, asked)
  }
}

/**
 * Way for a reservation to grow: `room` throws where no money is left, or returns a function that frees the amount once it has been
 * waited for.
 */
export type Reserving = {
  nanoUsd: bigint
  headroom(mostNano: bigint, moreNano: bigint): Promise<() => void> | undefined
  /** Called when the accounts have spent. */
  onSpent?(): void
}

/** Reserves on accounts that have room for it. */
export function reserveOn(accounts: readonly Account[], { nanoUsd, headroom, onSpent }: Reserving): Reservation {
  let reserved = nanoUsd
  let mostNano = nanoUsd
  for (const account of accounts) {
    account.reserved += reserved
    account.open++
  }
  let charged = false
  let state: 'running' | 'settled' | 'closed' = 'running'
  const close = () => {
    state = 'closed'
    for (const account of accounts) account.open--
  }
  const raiseTo = (most: bigint) => {
    if (state !== 'running' || most <= reserved) return
    for (const account of accounts) account.reserved += most - reserved
    reserved = most
    if (most > mostNano) mostNano = most
  }
  const spend = (costNano: bigint, released: bigint) => {
    reserved -= released
    for (const account of accounts) {
      account.reserved -= released
      account.spent += costNano
    }
    onSpent?.()
  }
  return {
    raise(most) {
      if (state !== 'running' || most <= reserved) return
      const waiting = headroom(most, most - reserved)
      if (!waiting) return raiseTo(most)
      return waiting.then((free) => {
        free()
        raiseTo(most)
      })
    },
    maxNano: () => mostNano,
    charge(costNano) {
      charged = true
      spend(costNano, costNano < reserved ? costNano : reserved)
    },
    settle(costNano) {
      if (state !== 'running') return
      state = 'settled'
      spend(costNano, reserved)
      // What was charged is in no table yet.
      if (costNano === 0n && !charged) close()
    },
    written() {
      if (state === 'settled') close()
    },
  }
}

/** The error of an account that cannot hold what is asked. */
export function exhausted(
  { account, owner, month }: Omit<Limited, 'account' | 'limitNano'> & { account: Pick<Account, 'spent' | 'reserved'> },
  limitNano: bigint,
  asked: RequestedFunds,
): RouterError {
  const summary = spendingSummary(account, asked)
  const message =
    owner === undefined
      ? `The balance of the organization is ${usd(limitNano - account.spent)} of ${usd(limitNano)} credit: ${summary} It does not reset: add credit.`
      : `The monthly limit of ${owner} is ${usd(limitNano)}: ${summary} It resets at ${formatTime(month?.until ?? 0)}.`
  return new RouterError('budget_exhausted', message)
}

/** A call that is raised holds something already: it is not counted among the others. */
function spendingSummary(
  { spent, reserved }: Pick<Account, 'spent' | 'reserved'>,
  { nanoUsd, moreNano, assumedTokens, assumedUses }: RequestedFunds,
): string {
  const assumptions = [
    assumedTokens !== undefined &&
      `it sets no output limit such as max_tokens, so ${assumedTokens} output tokens are assumed`,
    assumedUses !== undefined &&
      `it sets no limit such as max_uses on the tools that run at the provider, so ${assumedUses} uses of each are assumed`,
  ].filter(Boolean)
  const why = assumptions.length > 0 ? ` (${assumptions.join('; ')})` : ''
  const others = reserved - (nanoUsd - moreNano)
  return `${usd(spent)} spent, ${usd(others)} reserved by running calls, and this call could cost up to ${usd(nanoUsd)}${why}.`
}

function usd(nano: bigint): string {
  return `${usdText(nano)} USD`
}
