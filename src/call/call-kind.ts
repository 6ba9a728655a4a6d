import type { ClientApi } from '../api/client-api.ts'
import type { FormBounds, OperationBody } from '../api/operation-api.ts'
import type { CallRecord } from '../core/call.ts'
import type { RouterError } from '../core/errors.ts'
import type { Target } from '../manifest/target.ts'
import type { CallPlugins, RequestOutcome } from '../plugin/call-plugins.ts'
import type { MaybePromise, PluginRequest } from '../plugin/contract.ts'
import type { Explanation } from '../routing/explanation.ts'
import type { AttemptHandle } from '../routing/health/health.ts'
import type { Directory, Purpose, Targets } from '../routing/names/resolve.ts'
import type { ServedModel } from '../routing/served-model.ts'
import type { Trial } from '../routing/types.ts'
import type { SentResponse } from '../store/responses.ts'
import type { Overtime } from '../upstream/http/overtime.ts'
import type { Settlement } from './admission/settlement.ts'
import type {
  Admission,
  AdmissionServices,
  AdmittedCall,
  Applicant,
  AttemptContext,
  AttemptSummary,
  CallResponse,
  FailedAttempt,
  KeyWithRules,
  MeasuredUsage,
  OpenedCall,
  Ordering,
  ReadCall,
  ReceivedReply,
  RestrictedBody,
  Services,
} from './types.ts'

/**
 * One kind of call: only what differs. `handleCall` contains the steps that all kinds take, in their order. `Read` is a body of this
 * kind that has been read, `Answer` what one target answers. Methods throw, or reject with, RouterError where the call is refused.
 */
export type CallKind<Read extends ReadCall = ReadCall, Answer extends object = object> = {
  /** The name of the API in the ledger. */
  api: CallRecord['api']
  /** The name of the operation in the ledger. */
  operation: CallRecord['operation']
  /** Set where nothing is generated: the call needs no price and no money, and has no ledger row. Rate limits count it. */
  isFree?: true
  /** The client API whose errors, headers and keep-alive text this kind has; those of OpenAI where it is missing. */
  clientApi?: ClientApi
  /** The bounds of forms, where they are accepted; `json` is false where nothing else is. */
  form?: FormBounds | undefined
  json?: boolean
  /** The field that errors about files name. */
  mediaParam: string
  read(body: OperationBody, context: ReadingContext): MaybePromise<Read>
  /** Refuses a request that is too large in a way that only this kind knows. */
  requireBounds?(read: Read, services: Pick<Services, 'maxValues'>): void
  /** Returns the abilities that targets must have; `read` is missing while only the model of a form is known. */
  purpose(read: Read | undefined, explanation: Explanation | undefined): Purpose
  promptTokens(read: Read): number
  /** Returns the request with everything that a provider may repeat in an error. */
  content(read: Read): unknown
  restricted(read: Read): RestrictedBody
  /** Leaves out the targets that cannot take the request. */
  able?(targets: Targets, read: Read, context: AbleContext): Targets
  /** Reserves limits and money for a call, or nothing at all. */
  reserve(applicant: Applicant<Read>, services: AdmissionServices): MaybePromise<Admission>
  /** Returns the texts of a prompt to be counted as tokens because its bytes do not fit; undefined where that would not help. */
  countable?(applicant: Applicant<Read>, services: AdmissionServices): MaybePromise<readonly string[] | undefined>
  ordering(read: Read): Ordering
  serve(admitted: AdmittedCall<Read>, services: Services): Serving<Answer>
  plugins: PluginSide<Read>
}

/** The caller of a request, and the services by which its body is read. */
export type ReadingContext = KeyWithRules & { services: ReadingServices; signal: AbortSignal }

/** The services by which bodies are read. */
export type ReadingServices = {
  conversations: Services['conversations']
  signatures: Pick<Services['signatures'], 'restore'>
}

export type AbleContext = {
  strict: boolean
  directory: Directory
  explanation: Explanation | undefined
}

/** Steps that ask targets for one admitted call and turn the answer of one into the response. */
export type Serving<Answer extends object = object> = {
  /** Asks one target. An error that it rejects with is the failure of that target. */
  ask(target: Target, attempt: AttemptContext): Promise<TargetAnswer<Answer>>
  /** Returns the model that served, in the words of the provider. */
  reportedModel(answer: Answer): string | undefined
  /** Measures an answer that no client receives, of an attempt that began at that time; a stream is read to its end. */
  measure(answer: Answer, target: Target, begunMs: number): MaybePromise<MeasuredUsage>
  /** True where providers may act for the caller: they are asked again only where they cannot have begun to. */
  acts?: boolean
  canTake?: NonNullable<Trial<unknown>['canTake']>
  /** Makes the response and settles the call; or returns what `giveUp` does. */
  reply(answered: AnsweredCall<Answer>): Promise<CallResponse | GoOn>
  /** Writes the event of an error in a stream that has begun before its status was known. */
  failEvent?(error: RouterError): string
}

/** Asks the remaining targets. */
export type GoOn = () => Promise<CallResponse>

/** The answer of a target; for `exhaustedMs` it gives no more than this one. */
export type TargetAnswer<Answer> = Answer & { exhaustedMs?: number | undefined }

/**
 * The result of an attempt. `overtime`: the answer may be read on after the call; `sent`: the provider has the whole request; `rest`: what
 * an answer used that is read in overtime.
 */
export type AttemptResult<Answer> = { dropped: string[] } & (
  | (TargetAnswer<Answer> & { error?: undefined; overtime: Overtime | undefined })
  | ({ error: RouterError; sent: boolean } & Pick<FailedAttempt, 'rest' | 'served'>)
)

/** A call that a target has answered. */
export type AnsweredCall<Answer extends object = object> = AttemptSummary & {
  answer: Answer
  handle: AttemptHandle
  /** Set where the answer is read on after the call is over. */
  overtime: Overtime | undefined
  /** The targets that have not been asked. */
  untried: readonly Target[]
  /** Model that served, where the provider's answer names another one than the target's. */
  served: ServedModel | undefined
  servedBy(target: Target, reported: string | undefined): ServedModel | undefined
  /** The headers of the response. */
  headers: CallResponse['headers']
  settlement: Settlement
  trial: Trial<AttemptResult<Answer>>
  /** The time at which the first of its targets was asked, in milliseconds of the monotonic clock. */
  begunMs: number
  /** Checks whether another answer may be asked for in place of this one. */
  mayRetry?(): boolean
  /**
   * Gives up an answer of which no reply can be made, before anything of it was sent: it is charged. Returns what asks the remaining
   * targets where they may be asked after this error, which is thrown otherwise.
   */
  giveUp(received: ReceivedReply, thrown: unknown): Promise<GoOn>
}

/** The requests and replies of a kind of call as plugins see them. */
export type PluginSide<Read extends ReadCall = ReadCall> = {
  /** Operation reported to plugins, where it is not that of the ledger. */
  operation?: 'count'
  /** Returns the request as the first plugin sees it. */
  given(read: Read): PluginRequest
  /** Checks the results of plugins. */
  accept?(opened: OpenedCall<Read>): NonNullable<Parameters<CallPlugins['request']>[1]>
  /** Returns the request as plugins changed it; the caller's permissions, and the way in which it wants to be answered, stay. */
  changed(read: Read, request: PluginRequest): Read
  /** Returns the response to a call that a plugin answers. Missing where plugins cannot answer. */
  answer?(answer: PluginAnswer, opened: SeenCall<Read>, end: AnswerEnd): Promise<CallResponse>
}

/** A call that plugins see. */
export type SeenCall<Read extends ReadCall = ReadCall> = OpenedCall<Read> & { plugins: CallPlugins }

export type PluginAnswer = NonNullable<RequestOutcome['answer']>

/** Writes the row of a call that a plugin answers, and releases its limits, once: later calls have no effect. */
export type AnswerEnd = (
  end: Pick<CallRecord, 'outcome' | 'status'> & Partial<Pick<CallRecord, 'error'>>,
  response?: SentResponse,
) => Promise<void>
