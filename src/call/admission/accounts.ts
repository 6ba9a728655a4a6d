import type { Key } from '../../access/keys.ts'
import type { Limited, LimitReservation, TokenRequest } from '../../access/limits.ts'
import { RouterError } from '../../core/errors.ts'
import type { Budget, BudgetRequest, PayingAccounts, Reservation } from '../../money/budget.ts'
import type { MaybePromise } from '../../plugin/contract.ts'
import { andThen } from '../../runtime/maybe-promise.ts'
import type { OrganizationRules } from '../../store/rules.ts'
import type { Admission, AdmissionServices } from '../types.ts'

/** The accounts that pay for a call. `at` is its arrival in Unix milliseconds: it decides the prices, and the month it counts toward. */
export type PayingCall = {
  key: Pick<Key, 'id' | 'groupId' | 'limits' | 'monthlyLimitNano'>
  rules: Pick<OrganizationRules, 'id' | 'limits' | 'groupLimits' | 'creditNano' | 'enforcesBalance'>
  at: number
}

/** Returns the scopes whose limits a call counts against. */
export function limitScopes({ key, rules }: Pick<PayingCall, 'key' | 'rules'>): Limited[] {
  return [
    { id: key.id, organization: rules.id, scope: 'key', limits: key.limits },
    { id: rules.id, organization: rules.id, scope: 'organization', limits: rules.limits },
  ]
}

/** Returns the accounts whose budgets a call is charged to. */
export function accountsOfCall({ key, rules, at }: PayingCall): PayingAccounts {
  const { groupId } = key
  const group = groupId === null ? undefined : { id: groupId, limitNano: null, ...rules.groupLimits.get(groupId) }
  return { at, key, group, organization: rules }
}

/** Returns the least that any account has left, in nano-USD; undefined where nothing limits it. Throws RouterError `unavailable`. */
export function remainingOf(payers: PayingAccounts, budget: Pick<Budget, 'left'>): MaybePromise<bigint | undefined> {
  return orFail(() => budget.left(payers), failReading)
}

/** Reserves money; where that fails, the reservation of the limits is released. Throws RouterError. */
export function reserveBudgetOrRollBack(
  reserve: () => MaybePromise<Reservation>,
  limitReservation: LimitReservation,
): MaybePromise<Reservation> {
  return orFail(reserve, (thrown) => {
    limitReservation.undo()
    return failReading(thrown)
  })
}

function orFail<Result>(read: () => MaybePromise<Result>, fail: (thrown: unknown) => never): MaybePromise<Result> {
  try {
    const result = read()
    return result instanceof Promise ? result.catch(fail) : result
  } catch (thrown) {
    return fail(thrown)
  }
}

function failReading(cause: unknown): never {
  if (cause instanceof RouterError) throw cause
  const message = 'The router cannot read the current spending. New calls are refused until it can.'
  throw new RouterError('unavailable', message, { cause })
}

/** Reservations of a call: its limits and its money. */
export type ReservedAll = { limits: LimitReservation; budget: Reservation }

/** Reserves within the limits and the budgets of a call, or nothing at all. */
export function reserveAll(
  call: PayingCall,
  { tokens, money }: { tokens: TokenRequest; money: BudgetRequest },
  { limits, budget }: Pick<AdmissionServices, 'limits' | 'budget'>,
): MaybePromise<ReservedAll> {
  return andThen(limits.take(limitScopes(call), tokens), (limitReservation) =>
    andThen(
      reserveBudgetOrRollBack(() => budget.reserve(money), limitReservation),
      (reservation) => ({ limits: limitReservation, budget: reservation }),
    ),
  )
}

/** Returns what ends both reservations of a call. */
export function settling(money: Pick<Reservation, 'settle'>, limits: LimitReservation): Admission['settle'] {
  return (nanoUsd, tokens) => {
    money.settle(nanoUsd)
    limits.settle(tokens)
  }
}

/**
 * Throws RouterError `budget_exhausted` for a caller who has no money left: then an upload need not be read.
 */
export async function requireMoney(call: PayingCall, { budget }: Pick<AdmissionServices, 'budget'>): Promise<void> {
  const payers = accountsOfCall(call)
  if ((await remainingOf(payers, budget)) !== 0n) return
  const reservation = await budget.reserve({ ...payers, nanoUsd: 1n })
  reservation.settle(0n)
}

/** Throws RouterError `unavailable` while no call can be written to the ledger. */
export function requireLedger({ writeFailure }: Pick<AdmissionServices, 'writeFailure'>): void {
  const failure = writeFailure()
  if (failure === undefined) return
  throw new RouterError('unavailable', `${failure} New calls are refused until it can.`, { retryAfterMs: 1_000 })
}

/** Counts a request that uses no model: one request and one running call. Throws RouterError `rate_limited`. */
export function admitUncharged(
  call: Pick<PayingCall, 'key' | 'rules'>,
  { limits }: Pick<AdmissionServices, 'limits'>,
): MaybePromise<LimitReservation> {
  return limits.take(limitScopes(call), { prompt: 0, output: 0, hasOutputLimit: true })
}
