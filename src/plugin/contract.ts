import type { CallRecord } from '../core/call.ts'
import type { ProviderEvent } from '../core/events.ts'
import type { Json, JsonObject } from '../core/json.ts'
import type { Operation } from '../core/operation.ts'
import type { Part } from '../core/parts.ts'
import type { Reply } from '../core/reply.ts'
import type { Api, NeutralRequest } from '../core/request.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'

export type { CallRecord, Json, JsonObject, MaybePromise, NeutralRequest, Operation, Part, ProviderEvent, Reply }

/**
 * The default export of a plugin file. A plugin is set up once in each thread, and again whenever its files or options change; calls in
 * flight keep the one they started with.
 */
export type Plugin<Options = Record<string, never>> = {
  /** One line about what the plugin does. */
  description?: string
  /** JSON schema of the plugin's options in config.yaml. Without a schema it has no options. */
  options?: JsonObject
  /** New names of options by their former ones, which config.yaml may still use, with a warning. */
  renamedOptions?: Readonly<Record<string, string>>
  /** Time limit of a hook in milliseconds, unless config.yaml sets one; one second by default. */
  timeoutMs?: number
  /** Effect on a call when the plugin fails, unless config.yaml sets another; `open` by default. */
  onError?: 'open' | 'closed'
  /**
   * Set for a plugin that protects something: it must declare `onError: 'closed'`, and clients get only what it has seen of an answer, never
   * a member that the neutral form does not have.
   */
  guards?: boolean
  setup(options: Options, kit: Kit): Hooks | Promise<Hooks>
}

/** Returns the plugin as it is, with its types inferred. */
export function definePlugin<Options>(plugin: Plugin<Options>): Plugin<Options> {
  return plugin
}

/**
 * Hooks of a plugin. Everything a hook receives is frozen: it returns what should change, or nothing. A hook that throws, takes too long
 * or returns something invalid has failed: with `on_error: open` the call continues without it, with `closed` it is refused. Every hook
 * before `record` may refuse the call, whatever `on_error` says: it throws or returns a `Refusal`.
 */
export type Hooks = OperationHooks & {
  /**
   * Called before the key of a call is looked up: returns who calls, or nothing, so that the next plugin and then the keys decide. It gets
   * whatever a client sent as its key, unless that has the form of this router's own keys.
   */
  authenticate?(
    credentials: Credentials,
    call: Pick<PluginCall, 'id' | 'headers' | 'signal'>,
  ): MaybePromise<Caller | Refusal | undefined>
  /** Called before a call of any operation is routed: changes it, refuses it or answers it. */
  request?(request: PluginRequest, call: PluginCall): MaybePromise<RequestResult | Refusal | undefined>
  /**
   * Called before the first attempt: returns the targets in the order in which they are tried, fewer of them, or others by their ids, if the
   * caller may use them for this call. Without any, the call ends.
   */
  targets?(
    targets: readonly PluginTarget[],
    call: PluginCall,
  ): MaybePromise<readonly Pick<PluginTarget, 'id'>[] | Refusal | undefined>
  /**
   * Called before each attempt, and for each request of one in pieces: returns headers for the provider, in addition to those of its manifest,
   * or `{ headers, body }`, where `body` replaces the JSON that the provider gets. `outgoing` is missing where no JSON is sent.
   */
  send?(
    target: PluginTarget,
    call: PluginCall,
    outgoing?: Outgoing,
  ): MaybePromise<Readonly<Record<string, string>> | SendResult | Refusal | undefined>
  /**
   * Called for each event of a streamed answer, synchronously: returns the events that replace it, none (`[]`), or undefined to leave it
   * as it is. The last event of every complete answer is `{ done: true }`: a plugin that has buffered events returns them before it.
   */
  event?(event: StreamedEvent, call: PluginCall): readonly StreamedEvent[] | Refusal | undefined
  /**
   * Called with a whole answer: returns the answer that the client gets in its place. For a streamed conversation it is called before its
   * last event, with the answer as the plugin received its events; then only a refusal counts.
   */
  reply?(reply: PluginReply, call: PluginCall): MaybePromise<ReplyResult | Retry | Refusal | undefined>
  /**
   * Called with the texts of an answer before the client gets them, as `event` and `reply` of this plugin have left them: all of a whole
   * answer at once, those of a stream piece by piece, as `hold` says.
   */
  check?(answer: CheckedAnswer, call: PluginCall): MaybePromise<Refusal | undefined>
  /** Part of a stream that is kept back until the plugin has seen more of it: 200 characters for a plugin with `check`, else nothing. */
  hold?: Hold
  /** Called after the end of a call, however it ended; the client does not wait for it. */
  record?(record: CallRecord, call: PluginCall): MaybePromise<void>
  /** Reads and deletes what the plugin has stored of calls, for those who may read it through the management API. */
  content?: ContentHooks
  /** Functions that mappings can call, by name: `$name(...)`. They are pure and synchronous. */
  functions?: Readonly<Record<string, (...values: Json[]) => Json | undefined>>
  /** Authentication schemes for providers, by the names that manifests give as `auth.scheme`. */
  auth?: Readonly<Record<string, AuthScheme>>
  /** Called when no call uses the plugin any more: closes its resources. */
  [Symbol.asyncDispose]?(): Promise<void>
}

/**
 * Hooks for the requests of one operation, called after `request`. `chat` is also that of conversations which are compacted, or whose tokens
 * are counted.
 */
export type OperationHooks = {
  [Name in 'chat' | Operation]?: (
    request: RequestOf<Name>,
    call: PluginCall,
  ) => MaybePromise<RequestResult | Refusal | undefined>
}

/**
 * Functions that read and delete what a plugin has stored of calls. Both are called outside of calls, by the thread that serves the management API, whichever thread has
 * stored it.
 */
export type ContentHooks = {
  /** Returns what is stored of a call; undefined where nothing is. It has ten seconds. */
  find(call: StoredCall): MaybePromise<StoredContent | undefined>
  /** Deletes everything stored of the calls of one end user, and returns the number of calls. It has a minute. */
  deleteOf(user: EndUser): MaybePromise<number>
}

/** A call whose content is read. `at` is its start in Unix milliseconds. */
export type StoredCall = { id: string; organization: string; at: number; durationMs: number }

/** An end user of an organization, as its requests name it (`user`). */
export type EndUser = { organization: string; user: string }

/**
 * The stored request and reply, as the hooks `request` and `reply` see them: a conversation in the neutral form, or the fields of another
 * operation. `omittedBytes` is the size of what was too long to be stored.
 */
export type StoredContent = { request?: JsonObject; reply?: JsonObject; omittedBytes?: number }

/** The request of one operation. */
export type RequestOf<Name extends 'chat' | Operation> = Name extends 'chat'
  ? Extract<PluginRequest, { chat: unknown }>
  : Omit<Extract<PluginRequest, { fields: unknown }>, 'operation'> & { operation: Name }

/**
 * A request for a conversation in the neutral form, or for another operation in the fields of its API. `unread` names the fields of the
 * client's body that the neutral form does not have; a plugin cannot change it.
 */
export type PluginRequest =
  | { operation: 'chat'; chat: Omit<NeutralRequest, 'origin'> }
  | { operation: Operation; model: string; fields: JsonObject }

/** A reply to a conversation, or the JSON of another operation. Binary answers are not passed to plugins. */
export type PluginReply = { operation: 'chat'; chat: Reply } | { operation: Operation; json: JsonObject }

/** An event of a streamed conversation in the neutral form, or of another operation in the fields of its API. */
export type StreamedEvent = ProviderEvent | { operation: Operation; json: JsonObject }

/**
 * Part of a stream that is kept back. `characters`: a text is sent when so many characters of it follow, or when it has ended; a text that is
 * not longer is seen whole before any of it is sent. `sentences`: a text is sent sentence by sentence. Nothing is kept back for longer than
 * `maxMs` (ten seconds by default): then what there is goes through `check` and is sent.
 */
export type Hold = ({ characters: number } | { sentences: true }) & { maxMs?: number }

/** The texts of an answer that the client does not have yet, and whether the answer ends with them. */
export type CheckedAnswer = { texts: readonly CheckedText[]; isLast: boolean }

/**
 * One text of an answer. `before` is the end of what the client already has of it, at most 1,000 characters. The last characters that
 * `hold` keeps back are passed again with what follows them. `other`: JSON texts of what has no neutral form, and of other operations.
 */
export type CheckedText = { kind: CheckedKind; text: string; before: string }

/** The kinds of texts in an answer. */
export type CheckedKind =
  | 'text'
  | 'reasoning'
  | 'refusal'
  | 'tool_name'
  | 'tool_arguments'
  | 'transcript'
  | 'citation'
  | 'search'
  | 'other'

/**
 * The result of a `request` hook. `request` replaces the client's request; `reply` answers the call without asking a provider, at no
 * cost; `headers` (names that begin with `x-`) are added to the response.
 */
export type RequestResult = { request?: PluginRequest; reply?: PluginReply; headers?: Readonly<Record<string, string>> }

/** The JSON body of a request to a provider, in its own format. */
export type Outgoing = { readonly body: JsonObject }

/**
 * The result of a `send` hook. An edited body has the same values as before in all fields that decide who serves the call, what it costs or
 * what is stored (`model`, `stream`, `n`, `tools`, limits of the length …).
 */
export type SendResult = { headers?: Readonly<Record<string, string>>; body?: JsonObject }

/** The result of a `reply` hook: the answer, and `headers` (names that begin with `x-`) for the response. */
export type ReplyResult = PluginReply & { headers?: Readonly<Record<string, string>> }

/** The secret that a client sent as its key. */
export type Credentials = { readonly secret: string | undefined }

/**
 * The caller of a call: an existing key by its id, or an account without a key. The latter has an organization, and a group of it, that
 * exist, whose limits hold; its own `limits` and the `models` that it may call are in addition to theirs. What it spends is that of the key
 * `<plugin>:<organization>:<id>`.
 */
export type Caller =
  | { key: string }
  | {
      organization: string
      group?: string
      /** The id of the caller within the plugin: letters, digits and `._@-`, at most 100. */
      id: string
      name?: string
      labels?: Readonly<Record<string, string>>
      limits?: {
        monthly_usd?: number
        requests_per_minute?: number
        tokens_per_minute?: number
        concurrent_calls?: number
      }
      models?: readonly string[]
    }

/** The call that a hook is called for. */
export type PluginCall = {
  /** The id of the call, as in the ledger. */
  id: string
  organization: string
  /** The id of the key, not its secret. */
  key: string
  group?: string
  /** The names of the key, its group and the organization, which may change. */
  names: Readonly<{ key: string; group?: string; organization: string }>
  /** The labels of the key. */
  labels: Readonly<Record<string, string>>
  api: Api | string
  /**
   * The operation. `compact` and `count`: a conversation that is compacted, or whose tokens are counted; its request is that of a
   * conversation, and plugins cannot answer it.
   */
  operation: 'chat' | 'compact' | 'count' | Operation
  /** The model string as the client sent it. */
  requested: string
  stream: boolean
  user?: string
  metadata?: JsonObject
  /** The client's headers that begin with `x-` or `anthropic-`, in lower case. */
  headers: Readonly<Record<string, string>>
  /** The client's original body, for options that only its API has. */
  body: JsonObject
  /** Aborted when the client disconnects or the hook's time limit is reached. */
  signal: AbortSignal
  /** The plugin's own state for this call, shared by its hooks; empty at first. */
  state: Record<string, unknown>
}

/** A target as plugins see it. `id` is `provider/model`; prices are in US dollars per token, and absent where none is known. */
export type PluginTarget = {
  id: string
  provider: string
  model: string
  input_price?: number
  output_price?: number
  context_window?: number
}

/** An authentication scheme: returns the headers for a request, from the values that a manifest has under `auth`. */
export type AuthScheme = (
  request: { method: string; url: string; headers: Readonly<Record<string, string>>; body: string | undefined },
  values: Readonly<Record<string, string>>,
) => MaybePromise<Readonly<Record<string, string>>>

/** Services that the router gives a plugin. */
export type Kit = {
  log: PluginLog
  values: PluginValues
  /** Returns the budgets that calls of a key (its id) are charged to, as the database has them now: a call counts once its row is written. */
  budgets(key: string): Promise<readonly PluginBudget[]>
  /** Works like the platform's `fetch`, for public addresses and the hosts that config.yaml allows the plugin. */
  fetch(url: string | URL, init?: RequestInit): Promise<Response>
  /** Returns the secret that an option names, such as `$WEBHOOK_SECRET`: an environment variable. Throws if it is not set. */
  secret(reference: string): string
}

/**
 * The budget of a key, its group or their organization: the spend of this calendar month (UTC), the monthly limit if there is one, and the
 * remaining credit of an organization that was given credit. US dollars.
 */
export type PluginBudget = {
  owner: 'key' | 'group' | 'organization'
  id: string
  name: string
  spent_usd: number
  limit_usd?: number
  balance_usd?: number
}

/** Writes to the router's log, with the name of the plugin. */
export type PluginLog = Readonly<
  Record<'debug' | 'info' | 'warn' | 'error', (facts: Record<string, unknown>, message: string) => void>
>

/** Small values of a plugin, shared by all threads and kept across restarts. A value is at most 64 KiB of JSON. */
export type PluginValues = {
  get(key: string): Promise<Json | undefined>
  /** Sets a value. `ttlMs` is how long it is kept: at most 90 days, which is the default. */
  set(key: string, value: Json, ttlMs?: number): Promise<void>
  /** Sets a value unless there is one, and returns whether it did: only one of several concurrent callers succeeds. */
  add(key: string, value: Json, ttlMs?: number): Promise<boolean>
  delete(key: string): Promise<void>
}

/**
 * A refusal of a call, which a hook throws or returns: the client gets its status, message and code, and nothing of the answer that it was
 * about. What a provider has done for the call by then is charged.
 */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly status: RefusalStatus
  /** The code of the error, for programs; by default that of the router for this status, else `plugin_refused`. */
  readonly code: string | undefined
  /** The field of the request that caused the refusal. */
  readonly param: string | undefined

  constructor(status: RefusalStatus, message: string, { code, param }: { code?: string; param?: string } = {}) {
    super(message)
    this.status = status
    this.code = code
    this.param = param
  }
}

/**
 * Asks for another answer in place of a whole one, as the result of `reply`: the next target is asked, or the same one where no other is
 * left. The answer is charged nevertheless. A call is repeated twice at most, and never where its provider may have acted for the caller or
 * its time is up: then the answer stays as it is.
 */
export class Retry {
  /** The reason, for the log. */
  readonly reason: string

  constructor(reason: string) {
    this.reason = reason
  }
}

/** The HTTP status of a refusal: 400 to 599. */
export type RefusalStatus = number
