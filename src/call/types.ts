import type { Key } from '../access/keys.ts'
import type { Limits } from '../access/limits.ts'
import type { Lookups } from '../access/lookups.ts'
import type { ClientApi } from '../api/client-api.ts'
import type { OperationBody } from '../api/operation-api.ts'
import type { ResourceUse } from '../api/resource-uses.ts'
import type { CallContents, CallRecord, Cost, LogFacts } from '../core/call.ts'
import type { RouterError } from '../core/errors.ts'
import type { Json, JsonObject } from '../core/json.ts'
import type { RetiredNotice } from '../core/models/model.ts'
import type { Operation } from '../core/operation.ts'
import type { Part } from '../core/parts.ts'
import type { RefusedCall } from '../core/refused-call.ts'
import type { Api, NeutralRequest } from '../core/request.ts'
import type { RoutingRequest } from '../core/routing/request.ts'
import type { TraceContext } from '../core/trace.ts'
import type { Usage } from '../core/usage.ts'
import type { Provider } from '../manifest/provider.ts'
import type { NamedTarget, Target } from '../manifest/target.ts'
import type { Budget, Reservation } from '../money/budget.ts'
import type { LedgerQueue } from '../money/ledger.ts'
import type { TokenBounds } from '../money/meter.ts'
import type { CallPlugins, PluginServices } from '../plugin/call-plugins.ts'
import type { CallFacts } from '../plugin/call-view.ts'
import type { MaybePromise } from '../plugin/contract.ts'
import type { LoadedPlugin } from '../plugin/loaded.ts'
import type { Explanation } from '../routing/explanation.ts'
import type { CallPlace, ConcurrencyLimiter } from '../routing/health/concurrency-limiter.ts'
import type { Directory, Route, Targets } from '../routing/names/resolve.ts'
import type { ServedModel } from '../routing/served-model.ts'
import type { SignatureCache } from '../routing/signature-cache.ts'
import type { Attempted, AttemptLimits, Outcome, RoutingState } from '../routing/types.ts'
import type { SentResponse, StoredResponse } from '../store/responses.ts'
import type { OrganizationRules } from '../store/rules.ts'
import type { Tokenizer } from '../tokenizer/tokenizer.ts'
import type { AnswerBounds } from '../upstream/answer-body.ts'
import type { CallMedia, MediaServices } from '../upstream/files/inline.ts'
import type { Overtime } from '../upstream/http/overtime.ts'
import type { HttpClient } from '../upstream/http/types.ts'
import type { ForwardedHeader } from '../upstream/provider-request.ts'

// --- The request of a client, and the response to it ---

/** One client request, of any kind. `signal` is aborted when the client disconnects or the process stops. */
export type Call = {
  id: string
  /** The client's own id of the request. */
  requestId?: string | undefined
  secret: string | undefined
  /** The body is a form, which may be large: a caller who cannot pay for anything is refused before it is read. */
  uploads?: boolean
  readBody(progress: BodyProgress): Promise<OperationBody>
  /** Set to refuse the call, instead of only reporting the loss, when the provider does not support a part of the request. */
  strict: boolean
  /** Set to explain which targets were asked and why. */
  explain?: boolean
  /** The time that a header gives to the whole call, in milliseconds. */
  timeoutMs?: number | undefined
  /** The client's headers for a provider of the same format. */
  forwardedHeaders?: readonly ForwardedHeader[]
  /** All headers of the client, by lower-case name. */
  headers?: CallFacts['headers']
  /** The call's place in a trace: it is passed to providers, and spans are made from it. */
  trace?: TraceContext
  /** The session named in a header: calls of one session may be kept at one target. */
  session?: string | undefined
  /** Tags of the call from its headers, stored with the ledger row. */
  tags?: CallTags
  /** A stream that is silent for this long gets a comment; `early`: before its status is known. */
  keepAlive: { afterMs: number; early: boolean }
  signal: AbortSignal
  /** Aborted when the process stops, even if `signal` was aborted before. */
  stop: AbortSignal
  /** Keeps the call running, with all that it holds, after its response until the work is done, which must not reject. */
  outlive(work: Promise<void>): void
  /** Registers a function to be called when the call has ended, however it ended. */
  atEnd(ended: () => void): void
  /** Called when the call has a place. */
  onAdmitted?(place: CallPlace): void
}

/** Called while a body is read. */
export type BodyProgress = {
  /** Called when the body takes longer than bodies that are sent in one go. */
  onSlow(): void
  /** Called when a field of a form has arrived. Throws RouterError to refuse the rest. */
  onField(name: string, value: string): void
}

/** Description of a client by itself in headers, and the header `x-router-tags`. */
export type CallTags = { origin?: JsonObject | undefined; header?: string | undefined }

/**
 * The response to a call: a text, or pieces that are sent as they are produced. Without a media type a text is JSON, and the pieces are
 * server-sent events.
 */
export type CallResponse = {
  headers: Readonly<Record<string, string>>
  body: string | AsyncGenerator<string | Uint8Array, void>
  mediaType?: string
}

// --- What calls depend on ---

/** The services a call depends on. */
export type Services = {
  authenticate(secret: string | undefined): MaybePromise<Key>
  authenticateById?(id: string): Promise<Key>
  revalidate(key: Key): MaybePromise<Key>
  rulesOf(organization: string): MaybePromise<OrganizationRules>
  directory: Directory
  admission: AdmissionServices
  tokenizer: Tokenizer
  httpClient: HttpClient
  /** Limits how many calls run at once. */
  gate: ConcurrencyLimiter
  /** The known health of targets. */
  routing: RoutingState
  media: MediaServices
  ledger: CallLedger
  signatures: SignatureCache
  conversations: Conversations
  /** Called when a model was asked whose announced retirement has come. */
  onRetired?(notice: RetiredNotice): void
  /** The maximum number of fields of a request that its API does not have. */
  maxUnknownFields: number
  /** The maximum number of values in a request; the arguments of its calls may hold as many again. */
  maxValues: number
  /** Time for which messages of providers about failed attempts are stored; 0 for not at all. Milliseconds. */
  keepErrorsMs: number
  answerBounds: AnswerBounds
  held: HeldState
  resources: AccountResources
  /** Plugins; missing where there are none. */
  plugins?: RouterPlugins
}

/** Limits, budget and ledger, as far as they decide whether a call may run. */
export type AdmissionServices = {
  limits: Limits
  budget: Budget
  /** Returns the reason why the ledger cannot be written, as a message for clients; undefined while it can. */
  writeFailure(): string | undefined
  /** The minimum output, in tokens, that a call without an output limit gets. */
  defaultOutputTokens: number
  /** Part that is charged to a client that leaves before any output. */
  abandoned: 'prompt' | 'nothing'
  /** Time for which an answer is read after its call is over, where its provider may report usage that the client does not see. */
  usageWaitMs: number
  /** Returns the measured speed of a target, in tokens of output per second; undefined where nothing was measured. */
  speedOf?(target: Target): number | undefined
}

/** The part of the ledger that a call writes to. */
export type CallLedger = {
  settle(...call: [...Parameters<LedgerQueue['settle']>, facts?: LogFacts]): Promise<void>
  /** Called when a call was refused before a provider was asked. */
  refused?(call: RefusedCall): void
  /** Called when a call is in flight. Returns a function that reports that it is settled. */
  begin?(call: Pick<CallRecord, 'organization' | 'stream'>): () => void
}

/** The plugins of a snapshot, and the services that they share with those of other snapshots. */
export type RouterPlugins = PluginServices & { loaded: readonly LoadedPlugin[] }

/** State at providers (containers, files, threads) that was made through this router, by the organization that made it. */
export type HeldState = {
  /** Remembers ids. Never throws. */
  remember(organization: string, provider: string, ids: readonly string[]): void
  /** Returns the providers that hold this for an organization. */
  holders(organization: string, id: string): Promise<readonly string[]>
}

/** Resources that the operator's accounts at providers keep, and who may use them. */
export type AccountResources = {
  /** Checks whether the operator lets an organization use something at a provider, by its id. */
  isListed(organization: string, provider: string, id: string): boolean
  /** Checks whether this was made for an organization, or can belong to no other. */
  isOwn(organization: string, id: string): Promise<boolean>
}

/** Conversations that continue by the id of a response, on any model. */
export type Conversations = {
  /** Reads a body, with the turns before it. Throws RouterError 400 for a body that cannot be read or continues an unknown response. */
  open(clientApi: ClientApi, owner: Pick<OrganizationRules, 'id' | 'retention'>, body: unknown): MaybePromise<Turn>
}

/** One turn of a conversation. */
export type Turn = {
  /** Neutral form: its messages begin with those of the earlier turns; its origin is the client's own body. */
  request: NeutralRequest
  /** The model id and the provider that wrote the stored response which it continues. */
  madeBy?: Pick<StoredResponse, 'model' | 'provider'> | undefined
  /** Returns the client's body for a provider of the same format, with the earlier turns unless that provider stored them. */
  bodyFor(provider: Provider): JsonObject
  /** Returns the neutral names of what such a body leaves out of the earlier turns. */
  lostFor?(provider: Provider): string[]
  /**
   * Checks whether a provider failed because it no longer has the stored conversation: from then on `bodyFor` returns the whole
   * conversation. True once for each provider.
   */
  mustResend(error: RouterError, provider: Provider): boolean
  /** Returns a reply or event of a provider of the same format, with the response id that the client continued from. */
  withPrevious(payload: JsonObject): JsonObject
  /** True where the response is to be stored when it is complete. */
  stores: boolean
  /** True where the organization allows anybody to store conversations. */
  mayStore: boolean
  /** Returns a response in its stored form, `text` being its JSON; undefined when it is not to be stored or did not complete. */
  responseToStore(response: JsonObject, text: string, by: Author): MaybePromise<SentResponse | undefined>
}

/** The writer of a response: a target, whether its format is that of the client, and whether it stores the response itself. */
export type Author = { target: NamedTarget; sameFormat: boolean; storesItself: boolean }

// --- The steps of a call, one type for each ---

/** A body that has been read, as far as every kind of call has it. */
export type ReadCall = {
  /** The model string of the client. */
  model: string
  stream: boolean
  /** Routing that the request asks for. */
  routing: RoutingRequest | undefined
  /** The end user, the metadata and the field `requesty` of the body, for the ledger row. */
  described: { user?: string | undefined; metadata?: JsonObject | undefined; requesty?: Json | undefined }
  /** The names of fields that the API does not have. */
  unknownFields: readonly string[]
  /** Returns the body as plugins see it. */
  body(): JsonObject
}

/** The facts of a call before any provider is called. `at` is Unix milliseconds, `monotonicMs` of the monotonic clock. */
export type CallStart = Pick<
  CallRecord,
  | 'id'
  | 'requestId'
  | 'at'
  | 'organization'
  | 'key'
  | 'group'
  | 'api'
  | 'operation'
  | 'requested'
  | 'stream'
  | 'user'
  | 'metadata'
  | 'trace'
> & { monotonicMs: number; keyName?: string }

/** A key and the rules of its organization, as they are at one moment. */
export type KeyWithRules = { key: Key; rules: OrganizationRules }

/** A call whose body has been read. */
export type OpenedCall<Read extends ReadCall = ReadCall> = {
  call: Call
  /** The key as it was before the body was read. */
  authenticated: Key
  /** The key as it was after the body was read, and the rules of its organization. */
  key: Key
  rules: OrganizationRules
  read: Read
  start: CallStart
  explanation: Explanation | undefined
  /** The plugins that see it. */
  plugins: CallPlugins | undefined
  /** A plugin has changed the request: the client's body no longer describes the request. */
  isRewritten?: boolean
  /** True where only targets in the EU may serve the call. */
  inEurope?: boolean
}

/** The targets that a call may go to, by the rules of its name, whose rules those are, and the facts by which they were found. */
export type Found = KeyWithRules & { targets: Targets; route: Route; strict: boolean; lookups: Lookups }

/** The limits and money that are reserved for an admitted call. */
export type Admission = Pick<Reservation, 'charge' | 'maxNano'> & {
  /** Ends the reservation with the call's cost in nano-USD and the tokens that it used. Later calls have no effect. */
  settle(nanoUsd: bigint, tokens: number): void
  /** Returns the output limit that the request to this target must have instead of the client's own; undefined where that stays. */
  lengthAt(target: Target): number | undefined
  /** Reserves what this body can cost at this target, where that is more than is reserved. Throws RouterError `budget_exhausted`. */
  cover(target: Target, body: JsonObject): void | Promise<void>
  /** Admits the call to a further target, and reserves what it can cost there. Throws RouterError `budget_exhausted`. */
  add?(target: Target): void | Promise<void>
  /** Reserves the cost of an answer that is read on while another target answers the call; false where that does not fit. */
  keep(target: Target): MaybePromise<boolean>
  /** Records that the prompt is from now on so many bytes longer than that of the client. */
  grow(bytes: number): void
  /** Returns the maximum tokens that a call to this target can have used; `remote`: its reply shows that tools of the provider ran. */
  mostAt(target: Target, remote: boolean): TokenBounds
  /** Returns the maximum cost of the call at a target, its prompt in the provider's cache or not; undefined where no price is known. */
  costAt(target: Target, isCached: boolean): bigint | undefined
  /** The longest lifetime in a provider's cache that is asked for. */
  caches: '5m' | '1h' | undefined
  /** Rate-limit headers for the client. */
  headers: Readonly<Record<string, string>>
  /** The estimated size of the prompt. */
  promptTokens: number
  /** The number of choices in the reply. */
  choices: number
  /**
   * Returns the milliseconds for which an answer of a target is read after its call is over; undefined where the client sees all that is
   * used, as the model does not think and the provider runs no tools.
   */
  overtimeAt(target: Target): number | undefined
  /**
   * Estimates what an answer has used after so many milliseconds that its provider has not counted: what a model that thinks has likely
   * written, at most what is reserved, and the uses of tools that its parts report.
   */
  hiddenUsage(target: Target, ms: number, parts: readonly Part[]): Usage
  /** Usage charged when the client leaves before any output, besides likely output; undefined where there is none. */
  abandonedUsage: Usage | undefined
}

/** A call as it may be admitted: `counted` are the tokens of its prompt by a tokenizer, where its bytes did not fit. */
export type Applicant<Read extends ReadCall = ReadCall> = Found & {
  read: Read
  at: number
  counted?: number | undefined
}

/** A call that has been admitted to targets. */
export type AdmittedCall<Read extends ReadCall = ReadCall> = Omit<OpenedCall<Read>, keyof KeyWithRules> &
  Found & {
    admission: Admission
    media: CallMedia
    /** Returns the HTTP client of the next attempt. */
    nextClient(): HttpClient
  }

/** A body whose restricted fields decide which targets may serve it. */
export type RestrictedBody = {
  api: Api
  /** Set for anything besides a conversation; the body is then what its API does not know. */
  operation?: Operation
  body: JsonObject
  /** True where providers may keep conversations of the organization. */
  mayStore: boolean
  /** The whole request, and what it names that an account keeps. */
  resources: { body: JsonObject; uses: readonly ResourceUse[] }
}

/** Order in which the targets of a kind of calls are tried. */
export type Ordering = {
  /** The request by which calls belong together: its session, its user, the beginning of its prompt. */
  request: NeutralRequest
  /** Prompts are cached by providers, and replies are written token by token. */
  generates: boolean
  /** Finds the targets that can continue the conversation of the request. */
  continues?(targets: Targets): ((target: Target) => boolean) | undefined
}

// --- Attempts ---

/** Context that every attempt has, whatever it asks for. */
export type AttemptContext = {
  limits: AttemptLimits
  signal: AbortSignal
  bounds: AnswerBounds
  /** Key for providers that recognize requests which are sent again. */
  idempotencyKey: string
  /** The request is not sent twice where it may have been received. */
  once: boolean
  /** Set where the answer is read on after the call is over. */
  overtime: Overtime | undefined
  /** To be called when the provider has the whole request. */
  onSent(): void
  /** Reports the client's names of the fields that the request leaves out. */
  report(dropped: readonly string[]): void
  /** To be called with each body before it is sent: reserves what it can cost, and returns it as plugins have edited it. Throws RouterError. */
  beforeSend(body: JsonObject): MaybePromise<JsonObject>
  /** Returns the HTTP client with the headers of plugins and of the trace. */
  client(): MaybePromise<HttpClient>
}

// --- Settlement ---

/** The target that answered, or whose failure is reported, and the fields that its request left out. */
export type AttemptSummary = Attempted & { dropped: string[] }

/** An attempt that failed. `sent`: the provider has the whole request; `rest`: what its answer used, which is read in overtime. */
export type FailedAttempt = AttemptSummary & Pick<Outcome, 'sent' | 'rest' | 'served'>

/** Usage of a call: as the provider counted it, or `estimated`; and its contents, where spans record them. */
export type MeasuredUsage = { usage: Usage; estimated: boolean; contents?: CallContents }

/** A reply as far as it was received, by its usage. */
export type ReceivedReply = AttemptSummary & {
  measured: MeasuredUsage
  served?: ServedModel | undefined
  firstEventMs?: number
  /** Set where a part could not be read and was skipped. */
  damaged?: boolean
}

/** The usage and the cost of a settled call. */
export type Settled = { usage: Usage; cost: Cost }
