import { accountName, type Named, type Need, type Part, type QuotaStatus, type Reserved } from '../accounts/account.ts'
import type { Accounts } from '../accounts/accounts.ts'
import { RouterError } from '../core/errors.ts'
import { formatTime, monthStart } from '../core/time.ts'
import { monthOf } from '../store/ledger/sums.ts'
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
}

/**
 * Enforces limits and balances. Reservations are in memory only: a crash releases them. The results are promises where an account is used for
 * the first time and the tables of spend answer later, or where another instance of the router has been granted what is missing.
 */
export type Budget = {
  /** Returns what the accounts can still pay, in nano-USD: the lowest of their balances, not below 0; undefined where none has a limit. */
  left(payers: PayingAccounts): bigint | undefined | Promise<bigint | undefined>
  /**
   * Reserves money of the key, its group and the organization, of all or none. A call that costs nothing is always admitted.
   * Throws RouterError `budget_exhausted`, and the errors of the tables when they cannot be read.
   */
  reserve(request: BudgetRequest): Reservation | Promise<Reservation>
}

/** An account that pays, and its limit; a monthly one has an owner, and resets at the end of its month. */
type Payer = Named & { owner?: string; month?: Month }

/** The names of the accounts of a call, and the facts on which they depend. */
type Names = {
  month: string
  organization: string
  groupId: string | undefined
  key: string
  group: string | undefined
  all: string
}

/** The month of a time, by its name in the tables. Unix milliseconds. */
type Month = { from: number; until: number; name: string }

/** The maximum cost of a call, and what the accounts have to hold of it beyond what they hold already. */
type RequestedFunds = Pick<BudgetRequest, 'nanoUsd' | 'assumedTokens' | 'assumedUses'> & { moreNano: bigint }

/** Opens the budget on the accounts of this thread. */
export function openBudget(accounts: Accounts): Budget {
  let month: Month = { from: 0, until: 0, name: '' }
  /** Names by the key of the last call with them: to look up a new string takes as long as all the rest. */
  const known = new WeakMap<object, Names>()

  const namesOf = ({ key, group, organization: { id } }: PayingAccounts): Names => {
    const found = known.get(key)
    if (found?.month === month.name && found.organization === id && found.groupId === group?.id) return found
    const all = accountName(id, 'organization')
    const names = { month: month.name, organization: id, groupId: group?.id, all }
    const ofKey = accountName(id, `key ${key.id} ${month.name}`)
    const ofGroup = group && accountName(id, `group ${group.id} ${month.name}`)
    const made = { ...names, key: ofKey, group: ofGroup }
    known.set(key, made)
    return made
  }

  /** Returns the accounts with their limits, the key's first. */
  const payersOf = (payers: PayingAccounts): Payer[] => {
    const { at, key, group, organization } = payers
    if (at < month.from || at >= month.until)
      month = { from: monthStart(at), until: monthStart(at, 1), name: monthOf(at) }
    const names = namesOf(payers)
    const monthly = { kind: 'money', month } as const
    const ofKey = { ...monthly, account: names.key, limit: key.monthlyLimitNano, owner: 'this API key' }
    const { creditNano, enforcesBalance } = organization
    const ofAll = { kind: 'money', account: names.all, limit: enforcesBalance ? creditNano : null } as const
    if (!group || names.group === undefined) return [ofKey, ofAll]
    const owner = `the group '${group.name ?? group.id}' of this API key`
    return [ofKey, { ...monthly, account: names.group, limit: group.limitNano, owner }, ofAll]
  }

  return {
    left(given) {
      if (!isLimited(given)) return undefined
      const statuses = accounts.statuses(needsOf(payersOf(given), 0n))
      return statuses instanceof Promise ? statuses.then(leastLeft) : leastLeft(statuses)
    },
    reserve(request) {
      const { nanoUsd } = request
      const payers = payersOf(request)
      const reserve = (mostNano: bigint, moreNano: bigint) => {
        const requested = { ...request, nanoUsd: mostNano, moreNano }
        const reserved = accounts.reserve(needsOf(payers, moreNano))
        if (reserved instanceof Promise) return reserved.then((one) => partsOf(one, payers, requested))
        return partsOf(reserved, payers, requested)
      }
      const parts = reserve(nanoUsd, nanoUsd)
      if (parts instanceof Promise) return parts.then((own) => reservationOf(accounts, own, { nanoUsd, reserve }))
      return reservationOf(accounts, parts, { nanoUsd, reserve })
    },
  }
}

/** Checks whether any of the accounts has a limit. */
export function isLimited({ key, group, organization }: PayingAccounts): boolean {
  return key.monthlyLimitNano !== null || (group?.limitNano ?? null) !== null || organization.enforcesBalance
}

function needsOf(payers: readonly Payer[], nano: bigint): Need[] {
  return payers.map(({ account, kind, limit }) => ({ account, kind, limit, least: nano, wish: nano }))
}

function leastLeft(statuses: readonly QuotaStatus[]): bigint | undefined {
  let least: bigint | undefined
  for (const { limit, left } of statuses) if (limit !== null && (least === undefined || left < least)) least = left
  return least !== undefined && least < 0n ? 0n : least
}

/** Throws RouterError `budget_exhausted` where nothing was reserved. */
function partsOf(reserved: Reserved, payers: readonly Payer[], requested: RequestedFunds): readonly Part[] {
  if (reserved.isReserved) return reserved.parts
  const index = reserved.statuses.findIndex(({ isShort }) => isShort)
  throw exhausted(payers[index] as Payer, reserved.statuses[index] as QuotaStatus, requested)
}

/** Way for a reservation to grow: returns the additional parts. */
type Reserving = {
  nanoUsd: bigint
  reserve(mostNano: bigint, moreNano: bigint): readonly Part[] | Promise<readonly Part[]>
}

function reservationOf(accounts: Accounts, parts: readonly Part[], { nanoUsd, reserve }: Reserving): Reservation {
  let reserved = nanoUsd
  let mostNano = nanoUsd
  let isRunning = true
  let reservations = 1n
  const raised = (more: bigint) => {
    if (!isRunning) return accounts.spend(parts, { cost: 0n, released: more, ends: 1n })
    reservations++
    reserved += more
    if (reserved > mostNano) mostNano = reserved
  }
  const spend = (cost: bigint, released: bigint, ends: bigint) => {
    reserved -= released
    accounts.spend(parts, { cost, released, ends })
  }
  return {
    raise(most) {
      if (!isRunning || most <= reserved) return
      const more = most - reserved
      const waiting = reserve(most, more)
      if (!(waiting instanceof Promise)) return raised(more)
      return waiting.then(() => raised(more))
    },
    maxNano: () => mostNano,
    charge: (cost) => spend(cost, cost < reserved ? cost : reserved, 0n),
    settle(cost) {
      if (!isRunning) return
      isRunning = false
      spend(cost, reserved, reservations)
    },
  }
}

/** Returns the error of an account that cannot hold what is requested. */
function exhausted({ owner, month }: Payer, status: QuotaStatus, requested: RequestedFunds): RouterError {
  const limitNano = status.limit ?? 0n
  const summary = spendingSummary(status, requested)
  const message =
    owner === undefined
      ? `The balance of the organization is ${usd(limitNano - status.spent)} of ${usd(limitNano)} credit: ${summary} It does not reset: add credit.`
      : `The monthly limit of ${owner} is ${usd(limitNano)}: ${summary} It resets at ${formatTime(month?.until ?? 0)}.`
  return new RouterError('budget_exhausted', message)
}

/** A call that is raised holds something already: it is not counted among the others. */
function spendingSummary(
  { spent, reserved }: QuotaStatus,
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
