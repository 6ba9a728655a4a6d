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
  /** Why the ledger cannot be written, in words fit for callers; undefined while it can. */
  writeFailure(): string | undefined
  /** How many output tokens are reserved for a call that does not limit them. */
  unstatedOutput: number
}

/** A call that asks to run. `at` is when it came, in Unix milliseconds: it decides the prices, and the month that pays. */
export type Applicant = {
  key: Pick<Key, 'id' | 'groupId' | 'limits' | 'monthlyLimitNano'>
  rules: Pick<OrganizationRules, 'id' | 'limits' | 'groupLimits' | 'creditNano' | 'enforcesBalance'>
  request: NeutralRequest
  targets: readonly Target[]
  at: number
}

/** The limits and money that an admitted call holds. */
export type Admission = {
  /** The call is over: what it cost in nano-USD, and how many tokens it used. Only the first time counts. */
  settle(nanoUsd: bigint, tokens: number): void
  /** The ledger took the row of the settled call. */
  written(): void
  /** Rate-limit headers for the client. */
  headers: Readonly<Record<string, string>>
  /** The estimated size of the prompt. */
  promptTokens: number
}

/**
 * Admits a call, or takes nothing at all. Throws RouterError: `rate_limited`, `budget_exhausted`, `unavailable` while the
 * spending so far cannot be read. Only for calls that have passed `requireLedger`.
 */
export function admit(
  applicant: Applicant,
  { limits, budget, unstatedOutput }: Omit<AdmissionServices, 'writeFailure'>,
): Admission {
  const worst = maxCost(applicant.request, applicant.targets, { unstatedOutput, at: applicant.at })
  const { promptTokens: prompt, outputTokens: output, stated } = worst
  const taken = limits.take(limitedOf(applicant), { prompt, output, stated })
  const hold = reserveOrUndo(applicant, worst, { budget, taken })
  return {
    settle(nanoUsd, tokens) {
      hold.settle(nanoUsd)
      taken.settle(tokens)
    },
    // A failing ledger accepts rows that are not on disk yet: until they are, no call is admitted that would miss them.
    written: hold.written,
    headers: taken.headers,
    promptTokens: prompt,
  }
}

/** Throws RouterError `unavailable` while no call can be written to the ledger. */
export function requireLedger({ writeFailure }: Pick<AdmissionServices, 'writeFailure'>): void {
  const failure = writeFailure()
  if (failure === undefined) return
  throw new RouterError('unavailable', `${failure} No calls are accepted until it can.`, { retryAfterMs: 1_000 })
}

/** Counts a request that uses no model: one request and one running call. Throws RouterError `rate_limited`. */
export function admitUnpaid(
  applicant: Pick<Applicant, 'key' | 'rules'>,
  { limits }: Pick<AdmissionServices, 'limits'>,
): LimitReservation {
  return limits.take(limitedOf(applicant), { prompt: 0, output: 0, stated: true })
}

function limitedOf({ key, rules }: Pick<Applicant, 'key' | 'rules'>): Limited[] {
  return [
    { id: key.id, scope: 'key', limits: key.limits },
    { id: rules.id, scope: 'organization', limits: rules.limits },
  ]
}

function reserveOrUndo(
  { key, rules, at }: Applicant,
  { nanoUsd, outputTokens, stated }: MaxCost,
  { budget, taken }: { budget: Budget; taken: LimitReservation },
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
      ...(!stated && { assumedTokens: outputTokens }),
    })
  } catch (thrown) {
    taken.undo()
    if (thrown instanceof RouterError) throw thrown
    const message = 'The router cannot read its spend tables. No calls are accepted until it can.'
    throw new RouterError('unavailable', message, { cause: thrown })
  }
}
