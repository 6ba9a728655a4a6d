import { RouterError } from '../core/errors.ts'
import { formatTime, monthStart } from '../core/time.ts'
import { monthOf, type Spend } from '../store/spend.ts'
import { usdText } from './usd.ts'

/** The accounts that pay for a call, and its maximum cost. Limits and credit in nano-USD; null is no limit. */
export type BudgetRequest = {
  /** Unix milliseconds; the call counts toward the month of this time. */
  at: number
  key: { id: string; monthlyLimitNano: bigint | null }
  group?: { id: string; name?: string; limitNano: bigint | null }
  organization: { id: string; creditNano: bigint; enforcesBalance: boolean }
  nanoUsd: bigint
  /** The output tokens that the cost assumes when the call sets no limit. */
  assumedTokens?: number
}

/** The money that is reserved for a running call. */
export type Reservation = {
  /**
   * Ends the reservation with the call's cost, which may exceed it and counts as spent from now on; 0 only releases it.
   * Later calls have no effect.
   */
  settle(nanoUsd: bigint): void
  /** The settled cost is now in the spend tables. Not called while that is uncertain. */
  written(): void
}

/** Enforces limits and balances. Reservations are in memory only: a crash releases them. */
export type Budget = {
  /**
   * Reserves money of the key, its group and the organization, of all or none. A call that costs nothing is always admitted.
   * Throws RouterError `budget_exhausted`, and the errors of the tables when they cannot be read.
   */
  reserve(request: BudgetRequest): Reservation
  /** How many accounts are cached, and the sum of the reservations on them, in nano-USD. */
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
  let month = { from: 0, until: 0, name: '' }

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

  return {
    reserve({ at, key, group, organization, nanoUsd, assumedTokens }) {
      if (accounts.size >= sweepAt) sweep()
      if (at < month.from || at >= month.until) month = monthAround(at)
      const ofKey = accountFor(`key ${key.id} ${month.name}`, () => tables.ofKey(key.id, at))
      const ofGroup = group && accountFor(`group ${group.id} ${month.name}`, () => tables.ofGroup(group.id, at))
      const ofOrganization = accountFor(`organization ${organization.id}`, () =>
        tables.totalOfOrganization(organization.id),
      )
      const details = { nanoUsd, resetAt: month.until, assumedTokens }
      if (exceedsLimit(nanoUsd, ofKey, key.monthlyLimitNano)) {
        throw monthlyLimitError('this API key', key.monthlyLimitNano, { ...ofKey, ...details })
      }
      if (group && ofGroup && exceedsLimit(nanoUsd, ofGroup, group.limitNano)) {
        throw monthlyLimitError(`the group '${group.name ?? group.id}' of this API key`, group.limitNano, {
          ...ofGroup,
          ...details,
        })
      }
      if (exceedsLimit(nanoUsd, ofOrganization, organization.enforcesBalance ? organization.creditNano : null)) {
        throw balanceError(organization.creditNano, { ...ofOrganization, ...details })
      }
      return reserveOn(ofGroup ? [ofKey, ofGroup, ofOrganization] : [ofKey, ofOrganization], nanoUsd)
    },
    totals: () => ({
      accounts: accounts.size,
      reservedNano: [...accounts.values()].reduce((sum, { reserved }) => sum + reserved, 0n),
    }),
  }
}

/** Nano-USD. `open` counts the calls that are running or whose cost is not on disk yet. */
type Account = { spent: bigint; reserved: bigint; open: number; used: boolean }

type Spending = Pick<Account, 'spent' | 'reserved'> & {
  nanoUsd: bigint
  resetAt: number
  assumedTokens: number | undefined
}

function monthAround(at: number): { from: number; until: number; name: string } {
  return { from: monthStart(at), until: monthStart(at, 1), name: monthOf(at) }
}

function exceedsLimit(costNano: bigint, { spent, reserved }: Account, limitNano: bigint | null): boolean {
  return limitNano !== null && costNano > 0n && spent + reserved + costNano > limitNano
}

function reserveOn(accounts: readonly Account[], nanoUsd: bigint): Reservation {
  for (const account of accounts) {
    account.reserved += nanoUsd
    account.open++
  }
  let state: 'running' | 'settled' | 'closed' = 'running'
  const close = () => {
    state = 'closed'
    for (const account of accounts) account.open--
  }
  return {
    settle(costNano) {
      if (state !== 'running') return
      state = 'settled'
      for (const account of accounts) {
        account.reserved -= nanoUsd
        account.spent += costNano
      }
      if (costNano === 0n) close()
    },
    written() {
      if (state === 'settled') close()
    },
  }
}

function monthlyLimitError(owner: string, limitNano: bigint | null, spending: Spending): RouterError {
  const reset = formatTime(spending.resetAt)
  const message = `The monthly limit of ${owner} is ${usd(limitNano ?? 0n)}: ${spendingSummary(spending)} It resets at ${reset}.`
  return new RouterError('budget_exhausted', message)
}

function balanceError(creditNano: bigint, spending: Spending): RouterError {
  const balance = usd(creditNano - spending.spent)
  const message = `The balance of the organization is ${balance} of ${usd(creditNano)} credit: ${spendingSummary(spending)} It does not reset: add credit.`
  return new RouterError('budget_exhausted', message)
}

function spendingSummary({ spent, reserved, nanoUsd, assumedTokens }: Spending): string {
  const why =
    assumedTokens === undefined
      ? ''
      : ` (it sets no output limit such as max_tokens, so ${assumedTokens} output tokens are assumed)`
  return `${usd(spent)} spent, ${usd(reserved)} reserved by running calls, and this call could cost up to ${usd(nanoUsd)}${why}.`
}

function usd(nano: bigint): string {
  return `${usdText(nano)} USD`
}
