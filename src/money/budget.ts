import { RouterError } from '../core/errors.ts'
import { formatTime, monthStart } from '../core/time.ts'
import { monthOf, type Spend } from '../store/spend.ts'
import { usdText } from './usd.ts'

/** The accounts that pay for a call, and its maximum cost. Limits and credit in nano-USD; null is no limit. */
export type HoldRequest = {
  /** Unix milliseconds; the call counts in the month of this time. */
  at: number
  key: { id: string; monthlyLimitNano: bigint | null }
  group?: { id: string; name?: string; limitNano: bigint | null }
  organization: { id: string; creditNano: bigint; enforcesBalance: boolean }
  nanoUsd: bigint
  /** The tokens of output that the cost assumes, when the call does not bound them itself. */
  assumedTokens?: number
}

/** The money that a running call holds. */
export type Hold = {
  /**
   * Ends the hold with the call's cost, which may exceed it and counts as spent from now on; 0 releases the hold. Only the
   * first call has an effect.
   */
  settle(nanoUsd: bigint): void
  /** To be called when the settled cost is in the tables of spend; not called when that is unknown. */
  written(): void
}

/** Enforces limits and balances. Holds are in memory only: a crash releases them. */
export type Budget = {
  /**
   * Holds money of the key, its group and the organization, of all or none. A call that costs nothing is always admitted.
   * Throws RouterError `budget_exhausted`, and what the tables throw when they cannot be read.
   */
  hold(request: HoldRequest): Hold
  /** How many accounts are cached, and the sum of what running calls hold of them, in nano-USD. */
  totals(): { accounts: number; heldNano: bigint }
}

/** The stored sums, read at the first use of an account. */
export type SpendTables = Pick<Spend, 'ofKey' | 'ofGroup' | 'totalOfOrganization'>

/**
 * Opens the budget on the tables of spend, which only this process may add to: an account is read once and cached as long
 * as a hold or an unwritten cost needs it. `mostIdle` bounds how many other accounts are cached.
 */
export function openBudget(tables: SpendTables, { mostIdle = 10_000 } = {}): Budget {
  const accounts = new Map<string, Account>()
  let sweepAt = mostIdle
  let month = { from: 0, until: 0, name: '' }

  const account = (name: string, read: () => bigint): Account => {
    let found = accounts.get(name)
    if (!found) {
      found = { spent: read(), held: 0n, open: 0, used: true }
      accounts.set(name, found)
    }
    found.used = true
    return found
  }

  /** Drops accounts that were not used since the last sweep; the tables have all of them. */
  const sweep = () => {
    for (const [name, { open, used }] of accounts) if (open === 0 && !used) accounts.delete(name)
    for (const remaining of accounts.values()) remaining.used = false
    sweepAt = Math.max(mostIdle, 2 * accounts.size)
  }

  return {
    hold({ at, key, group, organization, nanoUsd, assumedTokens }) {
      if (accounts.size >= sweepAt) sweep()
      if (at < month.from || at >= month.until) month = monthAround(at)
      const ofKey = account(`key ${key.id} ${month.name}`, () => tables.ofKey(key.id, at))
      const ofGroup = group && account(`group ${group.id} ${month.name}`, () => tables.ofGroup(group.id, at))
      const ofAll = account(`all ${organization.id}`, () => tables.totalOfOrganization(organization.id))
      const facts = { nanoUsd, resetAt: month.until, assumedTokens }
      if (isTooMuch(nanoUsd, ofKey, key.monthlyLimitNano)) {
        throw limitReached('this API key', key.monthlyLimitNano, { ...ofKey, ...facts })
      }
      if (group && ofGroup && isTooMuch(nanoUsd, ofGroup, group.limitNano)) {
        throw limitReached(`the group '${group.name ?? group.id}' of this API key`, group.limitNano, {
          ...ofGroup,
          ...facts,
        })
      }
      if (isTooMuch(nanoUsd, ofAll, organization.enforcesBalance ? organization.creditNano : null)) {
        throw balanceUsed(organization.creditNano, { ...ofAll, ...facts })
      }
      return holdOf(ofGroup ? [ofKey, ofGroup, ofAll] : [ofKey, ofAll], nanoUsd)
    },
    totals: () => ({
      accounts: accounts.size,
      heldNano: [...accounts.values()].reduce((sum, { held }) => sum + held, 0n),
    }),
  }
}

/** Nano-USD. `open` counts the calls that are running or whose cost is not on disk yet. */
type Account = { spent: bigint; held: bigint; open: number; used: boolean }

type Facts = Pick<Account, 'spent' | 'held'> & { nanoUsd: bigint; resetAt: number; assumedTokens: number | undefined }

function monthAround(at: number): { from: number; until: number; name: string } {
  return { from: monthStart(at), until: monthStart(at, 1), name: monthOf(at) }
}

function isTooMuch(wantedNano: bigint, { spent, held }: Account, limitNano: bigint | null): boolean {
  return limitNano !== null && wantedNano > 0n && spent + held + wantedNano > limitNano
}

function holdOf(accounts: readonly Account[], nanoUsd: bigint): Hold {
  for (const account of accounts) {
    account.held += nanoUsd
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
        account.held -= nanoUsd
        account.spent += costNano
      }
      if (costNano === 0n) close()
    },
    written() {
      if (state === 'settled') close()
    },
  }
}

function limitReached(owner: string, limitNano: bigint | null, facts: Facts): RouterError {
  const reset = formatTime(facts.resetAt)
  const message = `The monthly limit of ${owner} is ${usd(limitNano ?? 0n)}: ${stateText(facts)} It resets at ${reset}.`
  return new RouterError('budget_exhausted', message)
}

function balanceUsed(creditNano: bigint, facts: Facts): RouterError {
  const balance = usd(creditNano - facts.spent)
  const message = `The balance of the organization is ${balance} of ${usd(creditNano)} credit: ${stateText(facts)} It does not reset: add credit.`
  return new RouterError('budget_exhausted', message)
}

function stateText({ spent, held, nanoUsd, assumedTokens }: Facts): string {
  const why =
    assumedTokens === undefined ? '' : ` (it does not bound its output, so ${assumedTokens} tokens are assumed)`
  return `${usd(spent)} are spent, ${usd(held)} are held by running calls, and this call could cost up to ${usd(nanoUsd)}${why}.`
}

function usd(nano: bigint): string {
  return `${usdText(nano)} USD`
}
