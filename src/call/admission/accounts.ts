import type { Key } from '../../access/keys.ts'
import type { Limited, LimitReservation } from '../../access/limits.ts'
import { RouterError } from '../../core/errors.ts'
import type { Budget, PayingAccounts, Reservation } from '../../money/budget.ts'
import type { OrganizationRules } from '../../store/rules.ts'

/** The accounts that pay for a call. `at` is its arrival in Unix milliseconds: it decides the prices, and the month it counts toward. */
export type PayingCall = {
  key: Pick<Key, 'id' | 'groupId' | 'limits' | 'monthlyLimitNano'>
  rules: Pick<OrganizationRules, 'id' | 'limits' | 'groupLimits' | 'creditNano' | 'enforcesBalance'>
  at: number
}

/** Returns the scopes whose limits a call counts against. */
export function limitScopes({ key, rules }: Pick<PayingCall, 'key' | 'rules'>): Limited[] {
  return [
    { id: key.id, scope: 'key', limits: key.limits },
    { id: rules.id, scope: 'organization', limits: rules.limits },
  ]
}

/** Returns the accounts whose budgets a call is charged to. */
export function accountsOfCall({ key, rules, at }: PayingCall): PayingAccounts {
  const { groupId } = key
  const group = groupId === null ? undefined : { id: groupId, limitNano: null, ...rules.groupLimits.get(groupId) }
  return { at, key, group, organization: rules }
}

/** Returns the least that any account has left, in nano-USD; undefined where nothing limits it. Throws RouterError `unavailable`. */
export function remainingOf(payers: PayingAccounts, budget: Budget): bigint | undefined {
  try {
    return budget.left(payers)
  } catch (thrown) {
    throw thrown instanceof RouterError ? thrown : spendingUnknown(thrown)
  }
}

/** Reserves money; where that fails, the reservation of the limits is released. Throws RouterError. */
export function reserveBudgetOrRollBack(reserve: () => Reservation, limitReservation: LimitReservation): Reservation {
  try {
    return reserve()
  } catch (thrown) {
    limitReservation.undo()
    throw thrown instanceof RouterError ? thrown : spendingUnknown(thrown)
  }
}

function spendingUnknown(cause: unknown): RouterError {
  const message = 'The router cannot read the current spending. New calls are refused until it can.'
  return new RouterError('unavailable', message, { cause })
}
