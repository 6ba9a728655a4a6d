import type { CallRecord } from '../core/call.ts'
import type { ProviderEvent } from '../core/events.ts'
import type { Json, JsonObject } from '../core/json.ts'
import type { Operation } from '../core/operation.ts'
import type { Part } from '../core/parts.ts'
import type { Reply } from '../core/reply.ts'
import type { Api, NeutralRequest } from '../core/request.ts'

export type { CallRecord, Json, JsonObject, NeutralRequest, Operation, Part, ProviderEvent, Reply }

/**
 * What a plugin file exports as its default. A plugin is set up once in each thread and for each change of its files or options;
 * calls that are under way keep the one they began with.
 */
export type Plugin<Options = Record<string, never>> = {
  /** What it does, in one line. */
  description?: string
  /** JSON schema of its options in config.yaml. Without one it has no options. */
  options?: JsonObject
  /** How long a hook may take where config.yaml does not say; one second by default. Milliseconds. */
  timeoutMs?: number
  /** What becomes of a call when it fails, where config.yaml does not say; `open` by default. */
  onError?: 'open' | 'closed'
  setup(options: Options, kit: Kit): Hooks | Promise<Hooks>
}

/** Gives a plugin its types: returns what it is given. */
export function definePlugin<Options>(plugin: Plugin<Options>): Plugin<Options> {
  return plugin
}

/**
 * What a plugin does, hook by hook. Whatever a hook gets is frozen: it returns what is to be different, or nothing. A hook that
 * throws, takes too long or returns what it may not has failed: with `on_error: open` the call goes on without it, with `closed` it
 * is refused.
 */
export type Hooks = {
  /** Before a call is routed: changes it, refuses it (throws `Refusal`) or answers it. */
  request?(request: PluginRequest, call: PluginCall): MaybePromise<RequestResult | undefined>
  /** Before the first attempt: the targets in the order in which they are tried, or fewer of them. */
  targets?(targets: readonly PluginTarget[], call: PluginCall): MaybePromise<readonly PluginTarget[] | undefined>
  /** Before each attempt: headers for the provider, beside those of its manifest. */
  send?(target: PluginTarget, call: PluginCall): MaybePromise<Readonly<Record<string, string>> | undefined>
  /**
   * Each event of a streamed answer, at once: what takes its place, nothing (`[]`), or undefined for the event as it is. The last
   * event of every answer that came whole is `{ done: true }`: what a plugin has held back, it returns before that one.
   */
  event?(event: StreamedEvent, call: PluginCall): readonly StreamedEvent[] | undefined
  /**
   * A whole answer: what the client gets in its place. Of a streamed conversation the answer as its events came to the plugin, when
   * it has ended: what is returned is not used.
   */
  reply?(reply: PluginReply, call: PluginCall): MaybePromise<ReplyResult | undefined>
  /** After the end of a call, however it ended: the client does not wait for it. */
  record?(record: CallRecord, call: PluginCall): MaybePromise<void>
  /** Functions for mappings, by the names by which they are called there: `$name(...)`. They are pure and answer at once. */
  functions?: Readonly<Record<string, (...values: Json[]) => Json | undefined>>
  /** Ways to authenticate at providers, by the names that manifests give as `auth.scheme`. */
  auth?: Readonly<Record<string, AuthScheme>>
  /** Ends what the plugin has open, when no call uses it any more. */
  [Symbol.asyncDispose]?(): Promise<void>
}

export type MaybePromise<Value> = Value | Promise<Value>

/**
 * A request for a conversation in the neutral form, or for another operation in the words of its API. `unread` names what the neutral
 * form does not have of the client's body; another one that a plugin returns is not used.
 */
export type PluginRequest =
  | { operation: 'chat'; chat: Omit<NeutralRequest, 'origin'> }
  | { operation: Operation; model: string; fields: JsonObject }

/** A reply to a conversation, or the JSON of another operation. Answers in bytes have none. */
export type PluginReply = { operation: 'chat'; chat: Reply } | { operation: Operation; json: JsonObject }

/** An event of a streamed conversation in the neutral form, or of another operation in the words of its API. */
export type StreamedEvent = ProviderEvent | { operation: Operation; json: JsonObject }

/**
 * What a `request` hook returns. `request` is what is asked in place of it; `reply` answers the call, which costs nothing and asks
 * no provider; `headers` (names that begin with `x-`) are in the response.
 */
export type RequestResult = { request?: PluginRequest; reply?: PluginReply; headers?: Readonly<Record<string, string>> }

/** What a `reply` hook returns: the answer, and `headers` (names that begin with `x-`) for the response. */
export type ReplyResult = PluginReply & { headers?: Readonly<Record<string, string>> }

/** The call that a hook is about. */
export type PluginCall = {
  /** The id of the call, as in the ledger. */
  id: string
  organization: string
  /** The id of the key, not its secret. */
  key: string
  group?: string
  api: Api | string
  /**
   * What is asked for. `compact` and `count`: a conversation that is to be made shorter, or whose tokens are counted; its request is
   * that of a conversation, which no plugin answers.
   */
  operation: 'chat' | 'compact' | 'count' | Operation
  /** The model string of the client. */
  requested: string
  stream: boolean
  user?: string
  metadata?: JsonObject
  /** The client's headers that begin with `x-` or `anthropic-`, in lower case. */
  headers: Readonly<Record<string, string>>
  /** The client's own body, for options that only its API has. */
  body: JsonObject
  /** Aborted when the client leaves, or the time of the hook is over. */
  signal: AbortSignal
  /** What the plugin keeps of this call, from hook to hook: its own, empty at first. */
  state: Record<string, unknown>
}

/** A target as plugins see it. `id` is `provider/model`; prices are in US dollars a token; missing where none is known. */
export type PluginTarget = {
  id: string
  provider: string
  model: string
  input_price?: number
  output_price?: number
  context_window?: number
}

/** A way to authenticate: the headers for a request, of the values that a manifest names under `auth`. */
export type AuthScheme = (
  request: { method: string; url: string; headers: Readonly<Record<string, string>>; body: string | undefined },
  values: Readonly<Record<string, string>>,
) => MaybePromise<Readonly<Record<string, string>>>

/** What the router lends a plugin. */
export type Kit = {
  log: PluginLog
  values: PluginValues
  /** The budgets that calls of a key (its id) are paid from, as they are in the database now: a call counts when its row is written. */
  budgets(key: string): Promise<readonly PluginBudget[]>
  /** As the platform's `fetch`, to public addresses and the hosts that config.yaml allows the plugin. */
  fetch(url: string | URL, init?: RequestInit): Promise<Response>
  /** The secret that the plugin's options name, such as `$WEBHOOK_SECRET`: a variable of the environment. Throws if it is not set. */
  secret(reference: string): string
}

/**
 * A key, its group or their organization: what was spent in this calendar month (UTC), its monthly limit if it has one, and of an
 * organization that was given credit what is left of it. US dollars.
 */
export type PluginBudget = {
  owner: 'key' | 'group' | 'organization'
  id: string
  name: string
  spent_usd: number
  limit_usd?: number
  balance_usd?: number
}

/** Lines of the router's log that name the plugin. */
export type PluginLog = Readonly<
  Record<'debug' | 'info' | 'warn' | 'error', (facts: Record<string, unknown>, message: string) => void>
>

/** Small values of a plugin, which all threads see and which outlive the process. A value is at most 64 KiB of JSON. */
export type PluginValues = {
  get(key: string): Promise<Json | undefined>
  /** `ttlMs`: how long it is kept; at most 90 days, which is the default. */
  set(key: string, value: Json, ttlMs?: number): Promise<void>
  /** Sets a value that is not there, and says whether it did: of all who try at once, one. */
  add(key: string, value: Json, ttlMs?: number): Promise<boolean>
  delete(key: string): Promise<void>
}

/** Refuses a call: thrown by a `request` hook. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly status: RefusalStatus
  /** The field of the request that is at fault. */
  readonly param: string | undefined

  constructor(status: RefusalStatus, message: string, { param }: { param?: string } = {}) {
    super(message)
    this.status = status
    this.param = param
  }
}

/** The statuses that a plugin may refuse with. */
export type RefusalStatus = 400 | 402 | 403 | 404 | 429
