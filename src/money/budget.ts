import { RouterError } from '../core/errors.ts'
import { formatTime, monthStart } from '../core/time.ts'
import { monthOf, type Spend } from '../store/spend.ts'
import { usdText } from './usd.ts'

/** Who pays for a call, and what it could cost at most. Limits and credit in nano-USD; null does not limit. */
export type Wanted = {
  /** Unix milliseconds: it is booked in the month of this moment. */
  at: number
  key: { id: string; monthlyLimitNano: bigint | null }
  group?: { id: string; name?: string; limitNano: bigint | null }
  organization: { id: string; creditNano: bigint; enforcesBalance: boolean }
  nanoUsd: bigint
  /** How many tokens of output that assumes, where the call does not bound them itself. */
  assumedTokens?: number
}

/** What a running call holds of the limits. */
export type Hold = {
  /**
   * The call is over and cost this much, which may be more than was held: it is spent at once, and nothing is held any
   * longer. Only the first time counts. 0 releases.
   */
  settle(nanoUsd: bigint): void
  /** What was settled is in the tables of spend. Never said when that is not known. */
  written(): void
}

/** What may be spent. It lives in memory: after a crash nothing is held. */
export type Budget = {
  /**
   * Holds money of the key, its group and the organization: of all or of none. What costs nothing is always admitted.
   * Throws RouterError `budget_exhausted`, and what the tables throw when they cannot be read.
   */
  hold(wanted: Wanted): Hold
  /** How many accounts are cached, and the sum of what running calls hold of them, in nano-USD. */
  totals(): { accounts: number; heldNano: bigint }
}

/** Sums of the tables at the first use of an account. */
export type SpendTables = Pick<Spend, 'ofKey' | 'ofGroup' | 'totalOfOrganization'>

/**
 * Opens the budget on the tables of spend. Only this process may add to them: an account is read once, then kept, as long
 * as anything of it is held or on its way to the disk. `mostIdle` bounds how many others are kept.
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

  /** Forgets what was not used since the last time: all that is known of it is in the tables. */
  const sweep = () => {
    for (const [name, { open, used }] of accounts) if (open === 0 && !used) accounts.delete(name)
    for (const kept of accounts.values()) kept.used = false
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

/** Nano-USD. `open` counts the calls that run or whose cost is not on disk yet, those that hold nothing as well. */
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

function limitReached(whose: string, limitNano: bigint | null, facts: Facts): RouterError {
  const reset = formatTime(facts.resetAt)
  const message = `The monthly limit of ${whose} is ${usd(limitNano ?? 0n)}: ${standing(facts)} It resets at ${reset}.`
  return new RouterError('budget_exhausted', message)
}

function balanceUsed(creditNano: bigint, facts: Facts): RouterError {
  const balance = usd(creditNano - facts.spent)
  const message = `The balance of the organization is ${balance} of ${usd(creditNano)} credit: ${standing(facts)} It does not reset: add credit.`
  return new RouterError('budget_exhausted', message)
}

function standing({ spent, held, nanoUsd, assumedTokens }: Facts): string {
  const why =
    assumedTokens === undefined ? '' : ` (it does not bound its output, so ${assumedTokens} tokens are assumed)`
  return `${usd(spent)} are spent, ${usd(held)} are held by running calls, and this call could cost up to ${usd(nanoUsd)}${why}.`
}

function usd(nano: bigint): string {
  return `${usdText(nano)} USD`
}
