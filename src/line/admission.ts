import type { Key } from '../access/keys.ts'
import type { Limited, LimitReservation, Limits } from '../access/limits.ts'
import { RouterError } from '../core/errors.ts'
import type { NeutralRequest } from '../core/request.ts'
import type { Target } from '../manifest/target.ts'
import type { Budget, Reservation } from '../money/budget.ts'
import { type MaxCost, maxCost } from '../money/max-cost.ts'
import type { OrganizationRules } from '../store/rules.ts'

/** Limits, budget and ledger, as far as they decide whether a call may run. */
export type AdmissionServices = {
  limits: Limits
  budget: Budget
  /** Why the ledger cannot be written, as a message for clients; undefined while it can. */
  writeFailure(): string | undefined
  /** How many output tokens are reserved for a call without an output limit. */
  defaultOutputTokens: number
}

/** A call to be admitted. `at` is its arrival in Unix milliseconds: it decides the prices, and the month it counts toward. */
export type AdmissionRequest = {
  key: Pick<Key, 'id' | 'groupId' | 'limits' | 'monthlyLimitNano'>
  rules: Pick<OrganizationRules, 'id' | 'limits' | 'groupLimits' | 'creditNano' | 'enforcesBalance'>
  request: NeutralRequest
  targets: readonly Target[]
  at: number
}

/** The limits and money that are reserved for an admitted call. */
export type Admission = {
  /** Ends the reservation with the call's cost in nano-USD and the tokens that it used. Later calls have no effect. */
  settle(nanoUsd: bigint, tokens: number): void
  /** To be called when the row of the settled call is in the ledger. */
  recorded(): void
  /** Rate-limit headers for the client. */
  headers: Readonly<Record<string, string>>
  /** The estimated size of the prompt. */
  promptTokens: number
}

/**
 * Admits a call, or reserves nothing at all. Throws RouterError: `rate_limited`, `budget_exhausted`, `unavailable` while the
 * current spending cannot be read. Only for calls that have passed `requireLedger`.
 */
export function admit(
  call: AdmissionRequest,
  { limits, budget, defaultOutputTokens }: Omit<AdmissionServices, 'writeFailure'>,
): Admission {
  const cost = maxCost(call.request, call.targets, { defaultOutputTokens, at: call.at })
  const { promptTokens: prompt, outputTokens: output, hasOutputLimit } = cost
  const limitReservation = limits.take(limitScopes(call), { prompt, output, hasOutputLimit })
  const budgetReservation = reserveBudgetOrRollBack(call, cost, { budget, limitReservation })
  return {
    settle(nanoUsd, tokens) {
      budgetReservation.settle(nanoUsd)
      limitReservation.settle(tokens)
    },
    // A failing ledger accepts rows that are not on disk yet: until they are, no call is admitted that would miss them.
    recorded: budgetReservation.written,
    headers: limitReservation.headers,
    promptTokens: prompt,
  }
}

/** Throws RouterError `unavailable` while no call can be written to the ledger. */
export function requireLedger({ writeFailure }: Pick<AdmissionServices, 'writeFailure'>): void {
  const failure = writeFailure()
  if (failure === undefined) return
  throw new RouterError('unavailable', `${failure} New calls are refused until it can.`, { retryAfterMs: 1_000 })
}

/** Counts a request that uses no model: one request and one running call. Throws RouterError `rate_limited`. */
export function admitUncharged(
  call: Pick<AdmissionRequest, 'key' | 'rules'>,
  { limits }: Pick<AdmissionServices, 'limits'>,
): LimitReservation {
  return limits.take(limitScopes(call), { prompt: 0, output: 0, hasOutputLimit: true })
}

function limitScopes({ key, rules }: Pick<AdmissionRequest, 'key' | 'rules'>): Limited[] {
  return [
    { id: key.id, scope: 'key', limits: key.limits },
    { id: rules.id, scope: 'organization', limits: rules.limits },
  ]
}

function reserveBudgetOrRollBack(
  { key, rules, at }: AdmissionRequest,
  { nanoUsd, outputTokens, hasOutputLimit }: MaxCost,
  { budget, limitReservation }: { budget: Budget; limitReservation: LimitReservation },
): Reservation {
  try {
    return budget.reserve({
      at,
      key,
      ...(key.groupId !== null && {
        group: { id: key.groupId, limitNano: null, ...rules.groupLimits.get(key.groupId) },
      }),
      organization: rules,
      nanoUsd,
      ...(!hasOutputLimit && { assumedTokens: outputTokens }),
    })
  } catch (thrown) {
    limitReservation.undo()
    if (thrown instanceof RouterError) throw thrown
    const message = 'The router cannot read the current spending. New calls are refused until it can.'
    throw new RouterError('unavailable', message, { cause: thrown })
  }
}
