import type { LimitReservation } from '../../access/limits.ts'
import { RouterError } from '../../core/errors.ts'
import type { NeutralRequest } from '../../core/request.ts'
import { completionTokens, promptClasses, type Usage } from '../../core/usage.ts'
import { sentLength } from '../../manifest/run/translate.ts'
import type { Target } from '../../manifest/target.ts'
import { type Budget, isLimited } from '../../money/budget.ts'
import { maxReportedUsd } from '../../money/charge.ts'
import { promptTexts, sizeOfTexts } from '../../money/estimate-tokens.ts'
import {
  type Allowance,
  type BoundedCall,
  boundedCall,
  choicesOf,
  costBound,
  declinesThinking,
  hidesUsage,
  isPriced,
  leavesUsesOpen,
  promptBound,
  type RequestedLength,
  requestedLength,
  thinks,
  usesIn,
} from '../../money/max-cost.ts'
import { operationBounds, PricedTokenBounds, type TokenBounds } from '../../money/meter.ts'
import { usesUnstated } from '../../money/remote-tools.ts'
import type { MaybePromise } from '../../plugin/contract.ts'
import { andThen } from '../../runtime/maybe-promise.ts'
import type { Admission, AdmissionServices } from '../types.ts'
import {
  accountsOfCall,
  admitUncharged,
  type PayingCall,
  type ReservedAll,
  remainingOf,
  reserveAll,
  settling,
} from './accounts.ts'

/** A conversation to be admitted; `counted` are the tokens of its prompt by a tokenizer, where its bytes did not fit. */
export type ConversationToAdmit = PayingCall & {
  request: NeutralRequest
  targets: readonly Target[]
  counted?: number | undefined
}

/**
 * Admits a call, or reserves nothing at all. Throws RouterError: `rate_limited` (429, decided in `access/limits.ts`),
 * `budget_exhausted` (402, decided in `money/budget.ts`; the other 402, of models without a price, is that of
 * `refuse-unpriced.ts`), `unavailable` while the current spending cannot be read. Only for calls that have passed `requireLedger`.
 */
export function admit(
  call: ConversationToAdmit,
  services: Omit<AdmissionServices, 'writeFailure'>,
): MaybePromise<Admission> {
  const payers = accountsOfCall(call)
  return andThen(remainingOf(payers, services.budget), (leftNano) => {
    const allowance = { leftNano, defaultLength: services.defaultOutputTokens }
    const bounded = boundedCall(call.request, call.at, call.counted)
    const holds = call.targets.map((target) => holdAt(target, bounded, allowance))
    const { nanoUsd, expected, output } = mostOf(holds)
    const hasOutputLimit = call.request.max_output_tokens !== undefined
    const { tokens: prompt } = bounded.size
    const tokens = { prompt, output: expected, hasOutputLimit }
    const assumedUses = leftNano === undefined ? undefined : usesAssumed(call.targets, bounded)
    const money = { ...payers, nanoUsd, assumedTokens: hasOutputLimit ? undefined : output, assumedUses }
    return andThen(reserveAll(call, { tokens, money }, services), (reserved) =>
      admissionOf(call, { bounded, allowance, holds, reserved }, services),
    )
  })
}

function admissionOf(
  call: ConversationToAdmit,
  {
    bounded: asked,
    allowance,
    holds,
    reserved,
  }: { bounded: BoundedCall; allowance: Allowance; holds: Hold[]; reserved: ReservedAll },
  { abandoned, usageWaitMs, speedOf }: Pick<AdmissionServices, 'abandoned' | 'usageWaitMs' | 'speedOf'>,
): Admission {
  const { limits: limitReservation, budget: budgetReservation } = reserved
  let [bounded, keptNano] = [asked, 0n]
  const targets: Target[] = [...call.targets]
  const holdOf = (target: Target) => holds[targets.indexOf(target)]
  const { tokens: prompt } = asked.size
  return {
    lengthAt: (target) => holdOf(target)?.length,
    cover(target, body) {
      const hold = holdOf(target)
      if (!hold || allowance.leftNano === undefined) return
      const sent = sentLength(target, body)
      const output = sent === undefined ? hold.output : sent * choicesOf(call.request)
      if (output <= hold.output) return budgetReservation.raise(keptNano + hold.nanoUsd)
      const raised = budgetReservation.raise(keptNano + costBound(bounded, target, output))
      const allow = () => {
        hold.maxTokens = output
      }
      return raised ? raised.then(allow) : allow()
    },
    add(target) {
      targets.push(target)
      holds.push(holdAt(target, bounded, allowance))
      return budgetReservation.raise(keptNano + mostOf(holds).nanoUsd)
    },
    async keep(target) {
      const own = holdOf(target)?.nanoUsd ?? 0n
      const isKept = await isRaised(() => budgetReservation.raise(keptNano + own + mostOf(holds).nanoUsd))
      if (isKept) keptNano += own
      return isKept
    },
    grow(bytes) {
      const { size } = asked
      // Not as text: where that has been counted, this has not.
      bounded = { ...asked, size: { ...size, bytes: size.bytes + bytes } }
      targets.forEach((target, index) => {
        const hold = holds[index]
        if (hold) hold.nanoUsd = costBound(bounded, target, hold.output)
      })
    },
    mostAt: (target, remote) => mostAt(target, { bounded, hold: holdOf(target), remote }),
    costAt: (target, isCached) => costAt(target, isCached, { bounded, hold: holdOf(target) }),
    caches: bounded.size.caches,
    maxNano: budgetReservation.maxNano,
    charge: budgetReservation.charge,
    settle: settling(budgetReservation, limitReservation),
    headers: limitReservation.headers,
    promptTokens: prompt,
    choices: choicesOf(call.request),
    overtimeAt: (target) => (hidesUsage(asked, target) ? usageWaitMs : undefined),
    hiddenUsage: (target, ms, parts) => ({
      ...likelyOutput(ms, { speed: speedOf?.(target), most: maxThought(call.request, target, holdOf(target)) }),
      ...usesIn(parts, bounded, target),
    }),
    abandonedUsage: abandoned === 'prompt' ? { input: prompt } : undefined,
  }
}

/** Returns the most tokens that a model may have thought, as far as it thinks. */
function maxThought(request: NeutralRequest, target: Target, hold: Hold | undefined): number {
  return thinks(request, target) && !declinesThinking(request) ? (hold?.output ?? 0) : 0
}

function usesAssumed(targets: readonly Target[], bounded: BoundedCall): number | undefined {
  return targets.some((target) => leavesUsesOpen(bounded, target)) ? usesUnstated : undefined
}

async function isRaised(raise: () => void | Promise<void>): Promise<boolean> {
  try {
    await raise()
    return true
  } catch {
    return false
  }
}

/** Estimates the cost that a conversation would be reserved if it were admitted now: nothing is reserved or counted. */
export function foreseen(
  call: ConversationToAdmit,
  { budget, defaultOutputTokens }: Pick<AdmissionServices, 'defaultOutputTokens'> & { budget: Pick<Budget, 'left'> },
): MaybePromise<Foreseen> {
  const bounded = boundedCall(call.request, call.at)
  const { caches, tokens: promptTokens } = bounded.size
  return andThen(remainingOf(accountsOfCall(call), budget), (leftNano) => {
    const allowance = { leftNano, defaultLength: defaultOutputTokens }
    const holdOf = (target: Target) => holdAt(target, bounded, allowance)
    return {
      costAt: (target, isCached) => costAt(target, isCached, { bounded, hold: holdOf(target) }),
      caches,
      promptTokens,
    }
  })
}

/** The cost of a conversation as far as it is known without a reservation. */
export type Foreseen = Pick<Admission, 'costAt' | 'caches' | 'promptTokens'>

/**
 * Checks that a conversation would fit into the budgets if it were admitted now, by its bytes or by its tokens: nothing stays reserved.
 * Throws RouterError `budget_exhausted`.
 */
export async function requireBudget(
  call: ConversationToAdmit,
  services: Pick<AdmissionServices, 'budget' | 'defaultOutputTokens'>,
): Promise<void> {
  const { budget, defaultOutputTokens } = services
  const bounded = boundedCall(call.request, call.at)
  const payers = accountsOfCall(call)
  const allowance = { leftNano: await remainingOf(payers, budget), defaultLength: defaultOutputTokens }
  const { nanoUsd } = mostOf(call.targets.map((target) => holdAt(target, bounded, allowance)))
  try {
    const reservation = await budget.reserve({ ...payers, nanoUsd })
    reservation.settle(0n)
  } catch (thrown) {
    const isExhausted = thrown instanceof RouterError && thrown.code === 'budget_exhausted'
    if (!isExhausted || !(await countableTexts(call, countableConversation(call, services), services))) throw thrown
  }
}

/** Default speed of models whose speed was not measured. Tokens per second. */
const usualSpeed = 100

function likelyOutput(ms: number, { speed = usualSpeed, most }: { speed: number | undefined; most: number }): Usage {
  const output = Math.min(Math.round((ms / 1_000) * speed), most)
  return output > 0 ? { output } : {}
}

/**
 * The most that a call can use at a target, what that can cost, and how much more is believed where nothing limits the caller. `thinks`: a
 * model that thinks is asked for it.
 */
export type MostUsed = { usage: Usage; nanoUsd: bigint; plausible?: Usage; thinks?: boolean }

/** A call for an operation to be admitted; `promptTokens` is an estimate. */
export type OperationToAdmit = PayingCall & {
  targets: readonly Target[]
  most(target: Target): MostUsed
  promptTokens: number
  /** Usage charged to a client that leaves before the answer. */
  abandoned: Usage
}

/** Admits a call for an operation, as `admit` does one for a conversation. Throws RouterError. */
export function admitOperation(
  call: OperationToAdmit,
  services: Omit<AdmissionServices, 'writeFailure' | 'defaultOutputTokens'>,
): MaybePromise<Admission> {
  const most = call.targets.map((target) => call.most(target))
  const nanoUsd = most.reduce((highest, one) => (one.nanoUsd > highest ? one.nanoUsd : highest), 0n)
  const output = Math.max(...most.map(({ usage }) => completionTokens(usage)))
  const tokens = { prompt: call.promptTokens, output, hasOutputLimit: true }
  const reserving = reserveAll(call, { tokens, money: { ...accountsOfCall(call), nanoUsd } }, services)
  return andThen(reserving, (reserved) => operationAdmission(call, most, reserved, services))
}

function operationAdmission(
  call: OperationToAdmit,
  most: MostUsed[],
  { limits: limitReservation, budget: budgetReservation }: ReservedAll,
  { abandoned, usageWaitMs, speedOf }: Pick<AdmissionServices, 'abandoned' | 'usageWaitMs' | 'speedOf'>,
): Admission {
  const targets: Target[] = [...call.targets]
  const mostOfTarget = (target: Target) => most[targets.indexOf(target)]
  const isStrict = isLimited(accountsOfCall(call))
  return {
    lengthAt: () => undefined,
    grow() {},
    keep: () => false,
    add(target) {
      const own = call.most(target)
      targets.push(target)
      most.push(own)
      return budgetReservation.raise(own.nanoUsd)
    },
    cover: (target) => budgetReservation.raise(mostOfTarget(target)?.nanoUsd ?? 0n),
    mostAt(target) {
      const { usage = {}, nanoUsd: cost = 0n, plausible } = mostOfTarget(target) ?? {}
      return { ...operationBounds(usage, isStrict, plausible), reportedUsd: maxReportedUsd(cost) }
    },
    costAt: (target) => (isPriced(call, target) ? mostOfTarget(target)?.nanoUsd : undefined),
    caches: undefined,
    maxNano: budgetReservation.maxNano,
    charge: budgetReservation.charge,
    settle: settling(budgetReservation, limitReservation),
    headers: limitReservation.headers,
    promptTokens: call.promptTokens,
    choices: 1,
    overtimeAt: (target) => (mostOfTarget(target)?.thinks ? usageWaitMs : undefined),
    hiddenUsage(target, ms) {
      const { thinks, usage } = mostOfTarget(target) ?? {}
      return likelyOutput(ms, { speed: speedOf?.(target), most: thinks && usage ? completionTokens(usage) : 0 })
    },
    abandonedUsage: abandoned === 'prompt' ? promptOf(call.abandoned) : undefined,
  }
}

/** Returns the part of a usage that belongs to the request, without that of the answer. */
function promptOf(usage: Usage): Usage {
  const classes = askedClasses.filter((name) => usage[name] !== undefined)
  return Object.fromEntries(classes.map((name) => [name, usage[name]]))
}

/** Usage classes that a client sends; `seconds` are of a file. */
const askedClasses = [...promptClasses, 'characters', 'queries', 'input_images', 'seconds'] as const

/** A prompt whose bytes bound its tokens until they are counted. */
export type CountablePrompt = {
  texts: readonly string[]
  /** Returns the maximum cost of the call at a target, in nano-USD, if its texts have so many tokens. */
  costAt(target: Target, counted: number, leftNano: bigint): bigint
}

/**
 * Returns the texts of a prompt that does not fit into the budgets by its bytes, but would if it had few tokens for them: to be counted as
 * tokens. Undefined where that would not help.
 */
export function countableTexts(
  call: PayingCall & { targets: readonly Target[]; counted?: number | undefined },
  { texts, costAt }: CountablePrompt,
  { budget }: Pick<AdmissionServices, 'budget'>,
): MaybePromise<readonly string[] | undefined> {
  return andThen(remainingOf(accountsOfCall(call), budget), (leftNano) => {
    if (call.counted !== undefined || leftNano === undefined) return undefined
    const least = sizeOfTexts(texts).text / maxBytesPerToken
    return call.targets.every((target) => costAt(target, least, leftNano) <= leftNano) ? texts : undefined
  })
}

/** Returns a conversation as `countableTexts` takes it. */
export function countableConversation(
  { request, at }: ConversationToAdmit,
  { defaultOutputTokens: defaultLength }: Pick<AdmissionServices, 'defaultOutputTokens'>,
): CountablePrompt {
  const bounded = boundedCall(request, at)
  return {
    texts: promptTexts(request),
    costAt: (target, counted, leftNano) => holdAt(target, { ...bounded, counted }, { leftNano, defaultLength }).nanoUsd,
  }
}

/** Maximum bytes of a token: few texts have longer ones on average. */
const maxBytesPerToken = 8

/** Admits a call that generates nothing: limits count it, and nothing is reserved. Throws RouterError `rate_limited`. */
export function admitFree(
  call: Pick<PayingCall, 'key' | 'rules'> & { promptTokens: number },
  services: Pick<AdmissionServices, 'limits'>,
): MaybePromise<Admission> {
  return andThen(admitUncharged(call, services), (reservation) => freeAdmission(reservation, call.promptTokens))
}

function freeAdmission({ headers, settle }: LimitReservation, promptTokens: number): Admission {
  return {
    lengthAt: () => undefined,
    cover() {},
    keep: () => false,
    grow() {},
    mostAt: () => operationBounds({}, false),
    costAt: () => undefined,
    caches: undefined,
    maxNano: () => 0n,
    charge() {},
    settle: () => settle(0),
    headers,
    promptTokens,
    choices: 1,
    overtimeAt: () => undefined,
    hiddenUsage: () => ({}),
    abandonedUsage: undefined,
  }
}

/** Reservation of a call to one target. */
type Hold = RequestedLength & { nanoUsd: bigint }

function holdAt(target: Target, bounded: BoundedCall, allowance: Allowance): Hold {
  const asked = requestedLength(bounded, target, allowance)
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

/** Returns the most that one of the targets holds. */
function mostOf(holds: readonly Hold[]): Pick<Hold, 'nanoUsd' | 'expected' | 'output'> {
  const most = { nanoUsd: 0n, expected: 0, output: 0 }
  for (const { nanoUsd, expected, output } of holds) {
    if (nanoUsd > most.nanoUsd) most.nanoUsd = nanoUsd
    most.expected = Math.max(most.expected, expected)
    most.output = Math.max(most.output, output)
  }
  return most
}

/**
 * Returns the maximum usage at a target. The catalog may know less about a model than its provider: the size of the prompt by its text is
 * always accepted.
 */
function mostAt(
  target: Target,
  { bounded, hold, remote }: { bounded: BoundedCall; hold: Hold | undefined; remote: boolean },
): TokenBounds {
  const context = target.entry?.context_window ?? Infinity
  return new PricedTokenBounds(
    Math.max(promptBound(bounded, target), context * (remote ? 1 + usesUnstated : 1)),
    Math.max(hold?.maxTokens ?? 0, context * choicesOf(bounded.request)),
    () => maxReportedUsd(costBound(bounded, target, hold?.maxTokens ?? 0)),
  )
}
