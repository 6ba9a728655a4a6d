import type { Key } from '../access/keys.ts'
import type { Limited, Limits, Taken } from '../access/limits.ts'
import { RouterError } from '../core/errors.ts'
import type { NeutralRequest } from '../core/request.ts'
import type { Target } from '../manifest/target.ts'
import type { Budget, Hold } from '../money/budget.ts'
import { type Worst, worstOf } from '../money/max-cost.ts'
import type { OrganizationRules } from '../store/rules.ts'

/** What decides about calls before they run. */
export type AdmissionRooms = {
  limits: Limits
  budget: Budget
  /** What keeps the ledger from being written, in words fit for callers. */
  trouble(): string | undefined
  /** How many tokens of output are reserved for a call that does not bound them. */
  unstatedOutput: number
}

/** Who asks for what. `at` is when the call came, in Unix milliseconds: it decides about prices, and the month that pays. */
export type Applicant = {
  key: Pick<Key, 'id' | 'groupId' | 'limits' | 'monthlyLimitNano'>
  rules: Pick<OrganizationRules, 'id' | 'limits' | 'groupLimits' | 'creditNano' | 'enforcesBalance'>
  request: NeutralRequest
  targets: readonly Target[]
  at: number
}

/** What an admitted call holds of limits and money. */
export type Admission = {
  /** The call is over: what it cost in nano-USD, and how many tokens it used. Only the first time counts. */
  settle(nanoUsd: bigint, tokens: number): void
  /** The ledger took the row of the settled call. */
  written(): void
  /** What is left of the limits, for the client. */
  headers: Readonly<Record<string, string>>
}

/**
 * Admits a call, or takes nothing at all. Throws RouterError: `unavailable` while no call can be written down,
 * `rate_limited`, `budget_exhausted`.
 */
export function admit(applicant: Applicant, { limits, budget, trouble, unstatedOutput }: AdmissionRooms): Admission {
  requireLedger({ trouble })
  const worst = worstOf(applicant.request, applicant.targets, { unstatedOutput, at: applicant.at })
  const { promptTokens: prompt, outputTokens: output, stated } = worst
  const taken = limits.take(limitedOf(applicant), { prompt, output, stated })
  const hold = holdOrUndo(applicant, worst, { budget, taken })
  return {
    settle(nanoUsd, tokens) {
      hold.settle(nanoUsd)
      taken.settle(tokens)
    },
    // A ledger in trouble takes rows that are not on disk yet: until they are, nothing is admitted that would miss them.
    written: hold.written,
    headers: taken.headers,
  }
}

/** Throws RouterError `unavailable` while no call can be written down. */
export function requireLedger({ trouble }: Pick<AdmissionRooms, 'trouble'>): void {
  const broken = trouble()
  if (broken === undefined) return
  throw new RouterError('unavailable', `${broken} No call is taken until it can.`, { retryAfterMs: 1_000 })
}

/** Takes a request and a place among the running calls, for what uses no model. Throws RouterError `rate_limited`. */
export function admitUnpaid(applicant: Pick<Applicant, 'key' | 'rules'>, { limits }: AdmissionRooms): Taken {
  return limits.take(limitedOf(applicant), { prompt: 0, output: 0, stated: true })
}

function limitedOf({ key, rules }: Pick<Applicant, 'key' | 'rules'>): Limited[] {
  return [
    { id: key.id, scope: 'key', limits: key.limits },
    { id: rules.id, scope: 'organization', limits: rules.limits },
  ]
}

function holdOrUndo(
  { key, rules, at }: Applicant,
  { nanoUsd, outputTokens, stated }: Worst,
  { budget, taken }: { budget: Budget; taken: Taken },
): Hold {
  try {
    return budget.hold({
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
    const message = 'The router cannot read what was spent. No call is taken until it can.'
    throw new RouterError('unavailable', message, { cause: thrown })
  }
}
