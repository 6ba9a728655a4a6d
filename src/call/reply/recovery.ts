import { RouterError } from '../../core/errors.ts'
import type { ProviderEvent } from '../../core/events.ts'
import type { TextPart } from '../../core/parts.ts'
import type { Reply } from '../../core/reply.ts'
import type { RoutingRules } from '../../core/routing/rules.ts'
import { type Target, targetFacts } from '../../manifest/target.ts'
import { estimateOutputTokens } from '../../money/estimate-tokens.ts'
import { mayTryAgain, tryTargets } from '../../routing/attempts.ts'
import { failureClass } from '../../routing/health/failure-class.ts'
import type { RoutingState, Trial } from '../../routing/types.ts'
import type { StreamedAnswer } from '../../upstream/provider-stream.ts'
import type { StreamFrame } from '../../upstream/stream-frames.ts'
import { otherFormatTranslation } from '../attempt/other-format.ts'
import { callProvider, type ProviderResult } from '../attempt/provider-call.ts'
import type { PreparedCall } from '../attempt/types.ts'
import type { AttemptResult, Serving } from '../call-kind.ts'
import type { AnsweredAttempt } from './answered-attempt.ts'
import { OwnRepetition } from './own-repetition.ts'
import { Repeated } from './repeated.ts'

/** Means to continue, with another target, an answer that broke off after content. */
export type Recovery = {
  /** Checks whether an answer that has been shown so far can be continued after this failure. */
  canFollow(cut: CutAttempt, error: RouterError, shown: Reply): boolean
  /** Asks the remaining targets: returns one that continues, or the number of all attempts when none does. */
  resume(cut: AnsweredAttempt, shown: Reply): Promise<Resumed | NotResumed>
}

type CutAttempt = Pick<AnsweredAttempt, 'attempts' | 'untried'>

/** Result when no other target continued: the number of all attempts. */
export type NotResumed = { answered?: undefined; attempts: number }

/** An answer that continues where another one broke off. `shown` is the part of a frame that the client gets; it throws RouterError. */
export type Resumed = {
  answered: AnsweredAttempt
  answer: StreamedAnswer
  shown(frame: StreamFrame): StreamFrame | undefined
}

export type RecoveryOptions = {
  trial: Omit<Trial<AttemptResult<ProviderResult>>, 'rules'> & { rules: RoutingRules }
  prepared: PreparedCall
  /** Makes the attempts that ask targets in this way. */
  attempts(ask: Serving<ProviderResult>['ask']): Trial<AttemptResult<ProviderResult>>['attempt']
  routing: RoutingState
  /** The time at which the first target was asked, in milliseconds of the monotonic clock. */
  begunMs: number
}

/** Finds out how answers of this call are continued; undefined where the rules make a failure an error. */
export function recoveryFor(options: RecoveryOptions): Recovery | undefined {
  const { trial, prepared, begunMs } = options
  const { onCut } = trial.rules
  const isPossible = prepared.request.stream === true && prepared.admission.choices === 1 && trial.acts !== true
  if (!isPossible || (onCut !== 'continue' && onCut !== 'restart')) return undefined
  const leftMs = () => (trial.rules.totalMs ?? Infinity) - (performance.now() - begunMs)
  return {
    canFollow: ({ attempts, untried }, error, { parts }) =>
      error.provider !== undefined &&
      failureClass(error).next === 'any' &&
      mayTryAgain(attempts, leftMs()) &&
      followers(untried, onCut).length > 0 &&
      parts.length > 0 &&
      parts.every((part) => part.type === 'text' || (onCut === 'restart' && part.type === 'reasoning' && isOpen(part))),
    resume: (cut, shown) => resume(cut, shown, { ...options, leftMs: leftMs() }),
  }
}

/** Checks whether reasoning is text alone: sealed reasoning means something to its signer only. */
function isOpen({ signature, encrypted }: { signature?: string; encrypted?: string }): boolean {
  return signature === undefined && encrypted === undefined
}

async function resume(
  cut: AnsweredAttempt,
  shown: Reply,
  { trial, prepared, attempts, routing, leftMs }: RecoveryOptions & { leftMs: number },
): Promise<Resumed | NotResumed> {
  const { rules } = trial
  const continues = rules.onCut === 'continue'
  const [first, ...others] = followers(cut.untried, rules.onCut)
  if (!first || !mayTryAgain(cut.attempts, leftMs)) return { attempts: cut.attempts }
  const said = textOf(shown, 'text')
  const next = continues ? continuing(prepared, said) : prepared
  const attempted = await tryTargets<AttemptResult<ProviderResult>>(
    {
      ...trial,
      targets: [first, ...others],
      rules: { ...rules, ...(rules.totalMs !== undefined && { totalMs: leftMs }) },
      before: cut.attempts,
      attempt: attempts((target, attempt) =>
        callProvider(target, next, attempt, continues ? { translate: otherFormatTranslation } : {}),
      ),
    },
    routing,
  )
  if (attempted.error) {
    if (!attempted.hasRows) trial.onFailed(attempted)
    return { attempts: attempted.attempts }
  }
  const { answer } = attempted
  if (answer.kind !== 'stream') throw new Error(`an answer in ${answer.kind} to a call that is streamed`)
  const repeated = continues
    ? new Repeated({ text: said.slice(said.trimEnd().length), isSpace: true })
    : new Repeated({ text: said, reasoning: textOf(shown, 'reasoning') })
  const own = new OwnRepetition()
  const served = cut.servedBy(attempted.target, answer.model)
  return {
    answered: { ...cut, ...attempted, served, prepared: { ...cut.prepared, admission: next.admission } },
    answer,
    shown(frame) {
      const said = frame.events.flatMap((event) => own.fresh(event))
      const events = said.flatMap((event) => repeated.rest(withoutHead(event)) ?? [])
      if (repeated.differs) throw different()
      return events.length > 0 ? { events } : undefined
    },
  }
}

/** Returns the call with the text sent so far as the beginning of the answer, which counts towards its length. */
function continuing({ admission, request, ...prepared }: PreparedCall, said: string): PreparedCall {
  const begun: TextPart = { type: 'text', text: said.trimEnd() }
  admission.grow(Buffer.byteLength(begun.text))
  const tokens = estimateOutputTokens([begun])
  const { max_output_tokens: most } = request
  return {
    ...prepared,
    admission: { ...admission, promptTokens: admission.promptTokens + tokens },
    request: {
      ...request,
      messages: [...request.messages, { role: 'assistant', parts: [begun] }],
      ...(most !== undefined && { max_output_tokens: Math.max(1, most - tokens) }),
    },
  }
}

/** Returns the targets that may continue an answer. */
function followers(untried: readonly Target[], onCut: RoutingRules['onCut']): Target[] {
  return untried.filter((target) => onCut !== 'continue' || takesPrefill(target))
}

function takesPrefill(target: Target): boolean {
  return targetFacts(target.provider, target).traits.prefill === true
}

function textOf({ parts }: Reply, kind: 'text' | 'reasoning'): string {
  return parts.map((part) => (part.type === kind && 'text' in part ? (part.text ?? '') : '')).join('')
}

/** Removes the head of an event: the stream keeps its id and its parts; its counts are those of the attempt. */
function withoutHead({ id: _, model: __, created: ___, usage: ____, ...event }: ProviderEvent): ProviderEvent {
  if (event.text === undefined) return event
  const { at: _____, ...text } = event
  return text
}

/** Returns the error for a different answer. The provider that gives it is not at fault. */
function different(): RouterError {
  return new RouterError('provider_cut', 'The provider broke off, and the next one gave a different answer.')
}
