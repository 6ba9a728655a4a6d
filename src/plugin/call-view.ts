import type { JsonObject } from '../core/json.ts'
import type { PluginCall } from './contract.ts'

/** A call as its worker knows it. `headers` are all of the client's, by lower-case name; `signal` is aborted when it leaves. */
export type CallFacts = Omit<PluginCall, 'headers' | 'state' | 'body'> & {
  headers: { readonly [name: string]: string | string[] | undefined }
  body(): JsonObject
}

/** A call as one plugin sees it. What few hooks ask for is made when they do. */
export class CallView implements PluginCall {
  readonly id: PluginCall['id']
  readonly organization: PluginCall['organization']
  readonly key: PluginCall['key']
  declare readonly group?: string
  readonly names: PluginCall['names']
  readonly labels: PluginCall['labels']
  readonly api: PluginCall['api']
  readonly operation: PluginCall['operation']
  readonly requested: PluginCall['requested']
  readonly stream: PluginCall['stream']
  declare readonly user?: string
  declare readonly metadata?: JsonObject
  readonly state: PluginCall['state'] = {}
  readonly #facts: CallFacts
  #goesOn = false
  #hook: HookTime | undefined

  constructor(facts: CallFacts) {
    this.#facts = facts
    this.id = facts.id
    this.organization = facts.organization
    this.key = facts.key
    if (facts.group !== undefined) this.group = facts.group
    this.names = freezeData(facts.names)
    this.labels = freezeData(facts.labels)
    this.api = facts.api
    this.operation = facts.operation
    this.requested = facts.requested
    this.stream = facts.stream
    if (facts.user !== undefined) this.user = facts.user
    if (facts.metadata !== undefined) this.metadata = freezeData(facts.metadata)
    Object.freeze(this)
  }

  get headers(): PluginCall['headers'] {
    return shownHeaders(this.#facts)
  }

  get body(): JsonObject {
    return freezeData(this.#facts.body())
  }

  get signal(): AbortSignal {
    return this.time.signal
  }

  /** Begins a hook; `goesOn`: whether the client has left does not matter to it. */
  begin(goesOn = false): void {
    this.#goesOn = goesOn
    this.#hook = undefined
  }

  /** Returns the time of the hook that began last. */
  get time(): HookTime {
    this.#hook ??= new HookTime(this.#goesOn ? undefined : this.#facts.signal)
    return this.#hook
  }
}

/** The time of one hook, whose signal is made when it is asked for. */
export class HookTime {
  readonly #client: AbortSignal | undefined
  #signal: AbortSignal | undefined
  #own: AbortController | undefined

  constructor(client: AbortSignal | undefined) {
    this.#client = client
  }

  get signal(): AbortSignal {
    this.#own ??= new AbortController()
    this.#signal ??= this.#client ? AbortSignal.any([this.#client, this.#own.signal]) : this.#own.signal
    return this.#signal
  }

  /** Ends the call for the plugins. */
  end(reason: Error): void {
    this.#own ??= new AbortController()
    this.#own.abort(reason)
  }
}

const known = new WeakMap<CallFacts, PluginCall['headers']>()

/** Returns the headers that begin with `x-` or `anthropic-`, but for the client's own key. */
function shownHeaders(facts: CallFacts): PluginCall['headers'] {
  let shown = known.get(facts)
  if (!shown) {
    const own: Record<string, string> = {}
    for (const name in facts.headers) if (isShown(name)) own[name] = String(facts.headers[name] ?? '')
    shown = Object.freeze(own)
    known.set(facts, shown)
  }
  return shown
}

function isShown(name: string): boolean {
  return (name.startsWith('x-') || name.startsWith('anthropic-')) && name !== 'x-api-key'
}

/** A conversation, or the reply to one, for plugins: it is read and frozen when the first of them looks at it. */
export class SeenChat<Chat> {
  readonly operation = 'chat'
  declare readonly chat: Chat
  readonly #read: () => Chat
  #isRead = false
  #whole: Chat | undefined

  constructor(read: () => Chat) {
    this.#read = read
    Object.defineProperty(this, 'chat', SeenChat.#chat)
    Object.freeze(this)
  }

  /** A member of its own, so that plugins may spread it. */
  static readonly #chat: PropertyDescriptor & ThisType<SeenChat<unknown>> = {
    enumerable: true,
    get() {
      if (!this.#isRead) this.#whole = freezeData(this.#read())
      this.#isRead = true
      return this.#whole
    },
  }
}

/** The body of a request to a provider, frozen when a plugin looks at it. */
export class OutgoingBody {
  readonly #body: () => JsonObject

  constructor(body: () => JsonObject) {
    this.#body = body
    Object.freeze(this)
  }

  get body(): JsonObject {
    return freezeData(this.#body())
  }
}

/** Freezes plain data: an object, its members and theirs. Frozen objects stay as they are. */
export function freezeData<Data>(data: Data): Data {
  if (typeof data !== 'object' || data === null || Object.isFrozen(data)) return data
  Object.freeze(data)
  if (Array.isArray(data)) for (const item of data) freezeData(item)
  else for (const name in data) freezeData(data[name])
  return data
}
