import type { CallRecord } from '../core/call.ts'
import type { ProviderEvent } from '../core/events.ts'
import type { Json, JsonObject } from '../core/json.ts'
import type { Operation } from '../core/operation.ts'
import type { Part } from '../core/parts.ts'
import type { Reply } from '../core/reply.ts'
import type { Api, NeutralRequest } from '../core/request.ts'

export type { CallRecord, Json, JsonObject, NeutralRequest, Operation, Part, ProviderEvent, Reply }

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
  setup(options: Options, kit: Kit): Hooks | Promise<Hooks>
}

/** Returns the plugin as it is, with its types inferred. */
export function definePlugin<Options>(plugin: Plugin<Options>): Plugin<Options> {
  return plugin
}

/**
 * Hooks of a plugin. Everything a hook receives is frozen: it returns what should change, or nothing. A hook that throws, takes too long
 * or returns something invalid has failed: with `on_error: open` the call continues without it, with `closed` it is refused.
 */
export type Hooks = {
  /** Called before a call is routed: changes it, refuses it (throws `Refusal`) or answers it. */
  request?(request: PluginRequest, call: PluginCall): MaybePromise<RequestResult | undefined>
  /** Called before the first attempt: returns the targets in the order in which they are tried, or fewer of them. */
  targets?(targets: readonly PluginTarget[], call: PluginCall): MaybePromise<readonly PluginTarget[] | undefined>
  /** Called before each attempt: returns headers for the provider, in addition to those of its manifest. */
  send?(target: PluginTarget, call: PluginCall): MaybePromise<Readonly<Record<string, string>> | undefined>
  /**
   * Called for each event of a streamed answer, synchronously: returns the events that replace it, none (`[]`), or undefined to leave it
   * as it is. The last event of every complete answer is `{ done: true }`: a plugin that has buffered events returns them before it.
   */
  event?(event: StreamedEvent, call: PluginCall): readonly StreamedEvent[] | undefined
  /**
   * Called with a whole answer: returns the answer that the client gets in its place. For a streamed conversation it is called at the end,
   * with the answer as the plugin received its events; then the result is ignored.
   */
  reply?(reply: PluginReply, call: PluginCall): MaybePromise<ReplyResult | undefined>
  /** Called after the end of a call, however it ended; the client does not wait for it. */
  record?(record: CallRecord, call: PluginCall): MaybePromise<void>
  /** Functions that mappings can call, by name: `$name(...)`. They are pure and synchronous. */
  functions?: Readonly<Record<string, (...values: Json[]) => Json | undefined>>
  /** Authentication schemes for providers, by the names that manifests give as `auth.scheme`. */
  auth?: Readonly<Record<string, AuthScheme>>
  /** Called when no call uses the plugin any more: closes its resources. */
  [Symbol.asyncDispose]?(): Promise<void>
}

export type MaybePromise<Value> = Value | Promise<Value>

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
 * The result of a `request` hook. `request` replaces the client's request; `reply` answers the call without asking a provider, at no
 * cost; `headers` (names that begin with `x-`) are added to the response.
 */
export type RequestResult = { request?: PluginRequest; reply?: PluginReply; headers?: Readonly<Record<string, string>> }

/** The result of a `reply` hook: the answer, and `headers` (names that begin with `x-`) for the response. */
export type ReplyResult = PluginReply & { headers?: Readonly<Record<string, string>> }

/** The call that a hook is called for. */
export type PluginCall = {
  /** The id of the call, as in the ledger. */
  id: string
  organization: string
  /** The id of the key, not its secret. */
  key: string
  group?: string
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

/** An error that a `request` hook throws to refuse a call. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly status: RefusalStatus
  /** The field of the request that caused the refusal. */
  readonly param: string | undefined

  constructor(status: RefusalStatus, message: string, { param }: { param?: string } = {}) {
    super(message)
    this.status = status
    this.param = param
  }
}

/** The HTTP statuses that a plugin may refuse with. */
export type RefusalStatus = 400 | 402 | 403 | 404 | 429
