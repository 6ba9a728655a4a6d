import type { LimitReservation, Limits } from '../access/limits.ts'
import { RouterError } from '../core/errors.ts'
import type { JsonObject } from '../core/json.ts'
import type { NeutralRequest } from '../core/request.ts'
import { completionTokens, promptClasses, type Usage } from '../core/usage.ts'
import { sentLength } from '../manifest/sent-length.ts'
import type { Target } from '../manifest/target.ts'
import { type Budget, isLimited, type Reservation } from '../money/budget.ts'
import { mostReported } from '../money/charge.ts'
import {
  type BoundedCall,
  boundedCall,
  choicesOf,
  costBound,
  isPriced,
  leavesUsesOpen,
  promptBound,
} from '../money/max-cost.ts'
import type { TokenBounds } from '../money/meter.ts'
import { operationBounds } from '../money/operation-bounds.ts'
import { type Allowance, type AskedLength, askedLength } from '../money/output-length.ts'
import { usesUnstated } from '../money/remote-tools.ts'
import { PricedTokenBounds } from '../money/token-bounds.ts'
import { leftOf, limitScopes, type PayingCall, payersOf, reserveBudgetOrRollBack } from './payers.ts'

/** Limits, budget and ledger, as far as they decide whether a call may run. */
export type AdmissionServices = {
  limits: Limits
  budget: Budget
  /** Why the ledger cannot be written, as a message for clients; undefined while it can. */
  writeFailure(): string | undefined
  /** How many output tokens a call without an output limit gets at least. */
  defaultOutputTokens: number
  /** What a client pays that leaves before any output. */
  abandoned: 'prompt' | 'nothing'
}

/** A call to be admitted. */
export type AdmissionRequest = PayingCall & {
  request: NeutralRequest
  targets: readonly Target[]
  /** The tokens of the prompt by a tokenizer, where its bytes did not fit. */
  counted?: number | undefined
}

/** The limits and money that are reserved for an admitted call. */
export type Admission = Pick<Reservation, 'charge' | 'mostNano'> & {
  /** Ends the reservation with the call's cost in nano-USD and the tokens that it used. Later calls have no effect. */
  settle(nanoUsd: bigint, tokens: number): void
  /** To be called when the row of the settled call is in the ledger. */
  recorded(): void
  /** The output limit that the request to this target must have instead of the client's own; undefined where that stays. */
  lengthAt(target: Target): number | undefined
  /**
   * Reserves what a call to this target can cost with this body, where that is more than is reserved. Throws RouterError
   * `budget_exhausted`.
   */
  cover(target: Target, body: JsonObject): void | Promise<void>
  /** From now on the prompt is longer than that of the client by so many bytes. */
  grow(bytes: number): void
  /** The most tokens that a call to this target can have used; `remote`: its reply shows that tools of the provider ran. */
  mostAt(target: Target, remote: boolean): TokenBounds
  /** The most that the call can cost at a target, its prompt in the provider's cache or not; undefined where no price is known. */
  costAt(target: Target, isCached: boolean): bigint | undefined
  /** The longest lifetime in a provider's cache that is asked for. */
  caches: '5m' | '1h' | undefined
  /** Rate-limit headers for the client. */
  headers: Readonly<Record<string, string>>
  /** The estimated size of the prompt. */
  promptTokens: number
  /** How many choices the reply has. */
  choices: number
  /** What is paid when the client leaves before any output; undefined where that is nothing. */
  abandonedUsage: Usage | undefined
}

/**
 * Admits a call, or reserves nothing at all. Throws RouterError: `rate_limited` (429, decided in `access/limits.ts`),
 * `budget_exhausted` (402, decided in `money/budget.ts`; the other 402, of models without a price, is that of
 * `refuse-unpriced.ts`), `unavailable` while the current spending cannot be read. Only for calls that have passed `requireLedger`.
 */
export function admit(
  call: AdmissionRequest,
  { limits, budget, defaultOutputTokens, abandoned }: Omit<AdmissionServices, 'writeFailure'>,
): Admission {
  const asked = boundedCall(call.request, call.at, call.counted)
  let bounded = asked
  const payers = payersOf(call)
  const allowance = { leftNano: leftOf(payers, budget), defaultLength: defaultOutputTokens }
  const holds = call.targets.map((target) => holdAt(target, bounded, allowance))
  const holdOf = (target: Target) => holds[call.targets.indexOf(target)]
  const hasOutputLimit = call.request.max_output_tokens !== undefined
  const { nanoUsd, expected, output } = mostOf(holds)
  const { tokens: prompt } = bounded.size
  const limitReservation = limits.take(limitScopes(call), { prompt, output: expected, hasOutputLimit })
  const isOpen = allowance.leftNano !== undefined && call.targets.some((target) => leavesUsesOpen(bounded, target))
  const assumedTokens = hasOutputLimit ? undefined : output
  const assumedUses = isOpen ? usesUnstated : undefined
  const { at, key, group, organization } = payers
  const budgetReservation = reserveBudgetOrRollBack(
    () => budget.reserve({ at, key, group, organization, nanoUsd, assumedTokens, assumedUses }),
    limitReservation,
  )
  return {
    lengthAt: (target) => holdOf(target)?.length,
    cover(target, body) {
      const hold = holdOf(target)
      if (!hold || allowance.leftNano === undefined) return
      const sent = sentLength(target, body)
      const output = sent === undefined ? hold.output : sent * choicesOf(call.request)
      if (output <= hold.output) return budgetReservation.raise(hold.nanoUsd)
      const raised = budgetReservation.raise(costBound(bounded, target, output))
      const allow = () => {
        hold.most = output
      }
      return raised ? raised.then(allow) : allow()
    },
    grow(bytes) {
      const { size } = asked
      // Not as text: where that has been counted, this has not.
      bounded = { ...asked, size: { ...size, bytes: size.bytes + bytes } }
      call.targets.forEach((target, index) => {
        const hold = holds[index]
        if (hold) hold.nanoUsd = costBound(bounded, target, hold.output)
      })
    },
    mostAt: (target, remote) => mostAt(target, { bounded, hold: holdOf(target), remote }),
    costAt: (target, isCached) => costAt(target, isCached, { bounded, hold: holdOf(target) }),
    caches: bounded.size.caches,
    mostNano: budgetReservation.mostNano,
    charge: budgetReservation.charge,
    settle(nanoUsd, tokens) {
      budgetReservation.settle(nanoUsd)
      limitReservation.settle(tokens)
    },
    // A failing ledger accepts rows that are not on disk yet: until they are, no call is admitted that would miss them.
    recorded: budgetReservation.written,
    headers: limitReservation.headers,
    promptTokens: prompt,
    choices: choicesOf(call.request),
    abandonedUsage: abandoned === 'prompt' ? { input: prompt } : undefined,
  }
}

/** What a conversation would be held to cost if it were admitted now: nothing is reserved or counted. */
export function foreseen(
  call: AdmissionRequest,
  { budget, defaultOutputTokens }: Pick<AdmissionServices, 'budget' | 'defaultOutputTokens'>,
): Pick<Admission, 'costAt' | 'caches' | 'promptTokens'> {
  const bounded = boundedCall(call.request, call.at)
  const allowance = { leftNano: leftOf(payersOf(call), budget), defaultLength: defaultOutputTokens }
  const { caches, tokens: promptTokens } = bounded.size
  return {
    costAt: (target, isCached) => costAt(target, isCached, { bounded, hold: holdAt(target, bounded, allowance) }),
    caches,
    promptTokens,
  }
}

/** The most that a call can use at a target, and what that can cost. */
export type MostUsed = { usage: Usage; nanoUsd: bigint }

/** A call for an operation to be admitted; `promptTokens` is an estimate. */
export type OperationAdmissionRequest = Omit<AdmissionRequest, 'request' | 'counted'> & {
  most(target: Target): MostUsed
  promptTokens: number
  /** What a client pays that leaves before the answer. */
  abandoned: Usage
}

/** Admits a call for an operation, as `admit` does one for a conversation. Throws RouterError. */
export function admitOperation(
  call: OperationAdmissionRequest,
  { limits, budget, abandoned }: Pick<AdmissionServices, 'limits' | 'budget' | 'abandoned'>,
): Admission {
  const { targets, promptTokens: prompt } = call
  const most = targets.map((target) => call.most(target))
  const nanoUsd = most.reduce((dearest, one) => (one.nanoUsd > dearest ? one.nanoUsd : dearest), 0n)
  const output = Math.max(...most.map(({ usage }) => completionTokens(usage)))
  const isStrict = isLimited(payersOf(call))
  const limitReservation = limits.take(limitScopes(call), { prompt, output, hasOutputLimit: true })
  const reserve = () => budget.reserve({ ...payersOf(call), nanoUsd })
  const budgetReservation = reserveBudgetOrRollBack(reserve, limitReservation)
  return {
    lengthAt: () => undefined,
    grow() {},
    cover: (target) => budgetReservation.raise(most[targets.indexOf(target)]?.nanoUsd ?? 0n),
    mostAt(target) {
      const { usage = {}, nanoUsd: cost = 0n } = most[targets.indexOf(target)] ?? {}
      return { ...operationBounds(usage, isStrict), reportedUsd: mostReported(cost) }
    },
    costAt: (target) => (isPriced(call, target) ? most[targets.indexOf(target)]?.nanoUsd : undefined),
    caches: undefined,
    mostNano: budgetReservation.mostNano,
    charge: budgetReservation.charge,
    settle(cost, tokens) {
      budgetReservation.settle(cost)
      limitReservation.settle(tokens)
    },
    recorded: budgetReservation.written,
    headers: limitReservation.headers,
    promptTokens: prompt,
    choices: 1,
    abandonedUsage: abandoned === 'prompt' ? promptOf(call.abandoned) : undefined,
  }
}

/** What a request has of a usage, without what an answer has. */
function promptOf(usage: Usage): Usage {
  const classes = askedClasses.filter((name) => usage[name] !== undefined)
  return Object.fromEntries(classes.map((name) => [name, usage[name]]))
}

/** What a client sends; `seconds` are of a file. */
const askedClasses = [...promptClasses, 'characters', 'queries', 'input_images', 'seconds'] as const

/**
 * Throws RouterError `budget_exhausted` for a caller who can pay nothing any more: then an upload need not be read.
 */
export function requireMoney(
  call: Omit<AdmissionRequest, 'request' | 'targets' | 'counted'>,
  { budget }: Pick<AdmissionServices, 'budget'>,
): void {
  const payers = payersOf(call)
  if (leftOf(payers, budget) === 0n) budget.reserve({ ...payers, nanoUsd: 1n }).settle(0n)
}

/** Whether a call that does not fit would if its text had few tokens for its bytes. */
export function fitsIfShort(
  call: AdmissionRequest,
  { budget, defaultOutputTokens }: Pick<AdmissionServices, 'budget' | 'defaultOutputTokens'>,
): boolean {
  const bounded = boundedCall(call.request, call.at)
  const leftNano = leftOf(payersOf(call), budget)
  if (call.counted !== undefined || leftNano === undefined) return false
  const short = { ...bounded, counted: bounded.size.text / mostBytesPerToken }
  const allowance = { leftNano, defaultLength: defaultOutputTokens }
  return call.targets.every((target) => holdAt(target, short, allowance).nanoUsd <= leftNano)
}

/** Few texts have longer tokens on average. */
const mostBytesPerToken = 8

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

/** What a call to one target holds. */
type Hold = AskedLength & { nanoUsd: bigint }

function holdAt(target: Target, bounded: BoundedCall, allowance: Allowance): Hold {
  const asked = askedLength(bounded, target, allowance)
  return { ...asked, nanoUsd: costBound(bounded, target, asked.output) }
}

function costAt(
  target: Target,
  isCached: boolean,
  { bounded, hold }: { bounded: BoundedCall; hold: Hold | undefined },
): bigint | undefined {
  if (!hold || !isPriced(bounded, target)) return undefined
  return isCached ? costBound(bounded, target, hold.output, true) : hold.nanoUsd
}

/** The most that one of the targets holds. */
function mostOf(holds: readonly Hold[]): Pick<Hold, 'nanoUsd' | 'expected' | 'output'> {
  const most = { nanoUsd: 0n, expected: 0, output: 0 }
  for (const { nanoUsd, expected, output } of holds) {
    if (nanoUsd > most.nanoUsd) most.nanoUsd = nanoUsd
    most.expected = Math.max(most.expected, expected)
    most.output = Math.max(most.output, output)
  }
  return most
}

/** The catalog may know less of a model than its provider: what the prompt can be by its text is never too much. */
function mostAt(
  target: Target,
  { bounded, hold, remote }: { bounded: BoundedCall; hold: Hold | undefined; remote: boolean },
): TokenBounds {
  const context = target.entry?.context_window ?? Infinity
  return new PricedTokenBounds(
    Math.max(promptBound(bounded, target), context * (remote ? 1 + usesUnstated : 1)),
    Math.max(hold?.most ?? 0, context * choicesOf(bounded.request)),
    () => mostReported(costBound(bounded, target, hold?.most ?? 0)),
  )
}
