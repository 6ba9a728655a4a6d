import type { Need, Standing } from '../lending/account.ts'
import { Borrowing, freeIn, type Purse, type PurseAccount } from '../lending/purse.ts'
import {
  type Budget,
  exhausted,
  isLimited,
  type Month,
  monthAround,
  type PayingAccounts,
  type RequestedFunds,
  reserveOn,
} from './budget.ts'

/** An account that pays, and its limit. */
type PayingAccount = Named & { owner?: string; month?: Month }
type Named = { account: string; kind: 'money'; limit: bigint | null }

/**
 * Opens the budget of one event loop of several: the share of the accounts that is allocated to its local quota. It throws Borrowing
 * where that is too little.
 */
export function openQuotaBudget(purse: Purse): Budget {
  let month: Month = { from: 0, until: 0, name: '' }

  /** The accounts with their limits, the key's first. */
  const accountsOfCall = ({ at, key, group, organization }: PayingAccounts): PayingAccount[] => {
    if (at < month.from || at >= month.until) month = monthAround(at)
    const { name } = month
    const { creditNano, enforcesBalance } = organization
    const monthly = { kind: 'money', month } as const
    const ofKey = { ...monthly, account: `key ${key.id} ${name}`, limit: key.monthlyLimitNano, owner: 'this API key' }
    const ofOrganization = { account: `organization ${organization.id}`, kind: 'money' } as const
    const balance = { ...ofOrganization, limit: enforcesBalance ? creditNano : null }
    if (!group) return [ofKey, balance]
    const owner = `the group '${group.name ?? group.id}' of this API key`
    return [ofKey, { ...monthly, account: `group ${group.id} ${name}`, limit: group.limitNano, owner }, balance]
  }

  const borrowing = (payers: readonly PayingAccount[], asked: RequestedFunds): Borrowing => {
    const needs: Need[] = payers.map(({ account, kind, limit }) => {
      const least = limit === null ? 0n : asked.moreNano
      return { account, kind, limit, least, wish: least }
    })
    return new Borrowing(purse, needs, (standings) => refusalOf(payers, { standings, asked }))
  }

  /** Returns the accounts, if the local quota has an allocation from each of them. */
  const found = (payers: readonly PayingAccount[]): PurseAccount[] | undefined => {
    const accounts = payers.flatMap((payer) => purse.find(payer) ?? [])
    return accounts.length === payers.length ? accounts : undefined
  }

  return {
    left(given) {
      if (!isLimited(given)) return undefined
      const payers = accountsOfCall(given)
      const accounts = found(payers)
      if (!accounts) throw borrowing(payers, nothingRequested)
      const lefts = accounts.flatMap((account) => (account.limit === null ? [] : leftFor(account)))
      return lefts.reduce((least, left) => (left < least ? left : least))
    },
    reserve(request) {
      const { nanoUsd, assumedTokens, assumedUses } = request
      const payers = accountsOfCall(request)
      const asked = { nanoUsd, moreNano: nanoUsd, assumedTokens, assumedUses }
      const accounts = found(payers)
      if (!accounts?.every((account) => covers(account, nanoUsd))) throw borrowing(payers, asked)
      const reservation = reserveOn(accounts, {
        nanoUsd,
        headroom(mostNano, moreNano) {
          if (accounts.every((account) => covers(account, moreNano))) return undefined
          return borrowed(borrowing(payers, { ...asked, nanoUsd: mostNano, moreNano }))
        },
        onSpent() {
          for (const account of accounts) purse.cover(account)
        },
      })
      for (const account of accounts) purse.refill(account)
      return reservation
    },
    totals() {
      const { accounts, reserved } = purse.totals()
      return { accounts, reservedNano: reserved }
    },
  }
}

const nothingRequested: RequestedFunds = { nanoUsd: 0n, moreNano: 0n, assumedTokens: undefined, assumedUses: undefined }

/** A call that costs nothing needs no room. */
function covers(account: PurseAccount, nano: bigint): boolean {
  return account.limit === null || nano <= 0n || nano <= freeIn(account)
}

function leftFor(account: PurseAccount): bigint {
  const left = freeIn(account) + account.left
  return left > 0n ? left : 0n
}

async function borrowed(borrowing: Borrowing): Promise<() => void> {
  const { use, refused } = await borrowing.lent()
  if (refused) throw borrowing.refusal(refused)
  return () => use(() => {})
}

function refusalOf(
  payers: readonly PayingAccount[],
  { standings, asked: requested }: { standings: readonly Standing[]; asked: RequestedFunds },
) {
  const short = standings.find(({ isShort }) => isShort) as Standing
  const payer = payers.find(({ account }) => account === short.account) as PayingAccount
  return exhausted({ ...payer, account: { spent: short.spent, reserved: short.lent } }, short.limit ?? 0n, requested)
}
