import type { Kind, Need, Standing } from './account.ts'
import type { UseWindow } from './window.ts'

/** What an account has lent to a purse; null is without limit. */
export type Loans = Map<number, bigint | null>

/**
 * An account as the bank knows it. `unwritten` rows are counted in `spent` and not in the tables. `isStale`: purses have been lent more
 * than the limit now is. `admitted`: how far each purse had admitted calls when it was recalled last. `isMoving`: one of them has admitted
 * others since, so that the amounts held were not all held at one time.
 */
export type BankAccount = {
  kind: Kind
  limit: bigint | null
  spent: bigint
  uses: UseWindow
  lent: Loans
  unwritten: number
  isStale: boolean
  admitted: Map<number, number | undefined>
  isMoving: boolean
}

export function isShort(account: BankAccount, need: Need, at: number): boolean {
  const left = leftOf(account, at)
  if (left === null || need.least <= 0n || left >= need.least) return false
  return !(need.passesAlone && spentOf(account, at) <= 0n && lentOf(account) <= 0n)
}

/** What nobody has been lent; null without limit. */
export function leftOf(account: BankAccount, at: number): bigint | null {
  return account.limit === null ? null : account.limit - spentOf(account, at) - lentOf(account)
}

export function spentOf({ kind, spent, uses }: BankAccount, at: number): bigint {
  return kind === 'minute' ? uses.sum(at) : spent
}

export function lentOf({ lent }: BankAccount): bigint {
  let sum = 0n
  for (const amount of lent.values()) sum += amount ?? 0n
  return sum
}

/**
 * Lends to a purse what a call needs of an account, where it `isGranted`, and what `extraOf` gives of the rest. Returns how the account
 * stands then.
 */
export function lendTo(
  purse: number,
  account: BankAccount,
  need: Need,
  { isGranted, extraOf, at }: { isGranted: boolean; extraOf(rest: bigint): bigint; at: number },
): Standing {
  const { account: name, kind, limit } = need
  const isRefused = isShort(account, need, at)
  const free = leftOf(account, at)
  const granted = isGranted && free !== null ? most(least(free, need.wish), need.least) : 0n
  const rest = most((free ?? 0n) - granted, 0n)
  const extra = extraOf(rest)
  lendMore(account.lent, purse, lentBy({ limit, granted, extra }))
  const missing = need.least - (free ?? 0n)
  const waitMs = isRefused && kind === 'minute' ? most(account.uses.freeAt(missing) - at, 0) : 0
  const resetMs = most(account.uses.freeAt(account.uses.sum(at)) - at, 0)
  const spent = spentOf(account, at)
  const isOverdrawn = free !== null && free < 0n
  const facts = { granted, extra, spent, lent: lentOf(account), left: rest - extra, isOverdrawn }
  return { account: name, kind, limit, ...facts, isShort: isRefused, waitMs, resetMs }
}

/** What a purse was lent by an answer; null is without limit. */
export function lentBy({ limit, granted, extra }: Pick<Standing, 'limit' | 'granted' | 'extra'>): bigint | null {
  return limit === null ? null : granted + extra
}

/** Of sums of which null is without limit. */
export function lendMore<Name>(lent: Map<Name, bigint | null>, name: Name, amount: bigint | null): void {
  const before = lent.get(name)
  lent.set(name, amount === null || before === null ? null : (before ?? 0n) + amount)
}

/** Whether there may be enough: what these purses were lent may be idle. */
export function mayHaveEnough(purses: readonly number[], account: BankAccount, need: Need, at: number): boolean {
  const lent = new Map([...account.lent].filter(([purse]) => !purses.includes(purse)))
  return !isShort({ ...account, lent }, need, at)
}

export function take(lent: Loans, purse: number, amount: bigint): void {
  const before = lent.get(purse)
  if (before !== undefined && before !== null) lent.set(purse, before - amount)
}

function least(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}

function most<Amount extends bigint | number>(one: Amount, other: Amount): Amount {
  return one > other ? one : other
}
