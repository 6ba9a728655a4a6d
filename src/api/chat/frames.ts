import { isObject, type Json, type JsonObject } from '../../core/json.ts'

/** Edits the chunks of a provider that speaks this format: the model that served, usage only at the end, the rest as it came. */
export class Frames {
  /** The provider's last word on usage. */
  usage: JsonObject | undefined
  /** The provider's chunk that carried usage alone, or what chunks of this stream share; none before the first. */
  last: JsonObject | undefined
  readonly #model: string
  readonly #includeUsage: boolean
  /** Whether each tool call has said an argument, by choice and call. */
  readonly #calls = new Map<Json, Map<Json, boolean>>()

  constructor({ model, includeUsage }: { model: string; includeUsage: boolean }) {
    this.#model = model
    this.#includeUsage = includeUsage
  }

  /** One chunk as the text of a server-sent event; empty when the client does not get it. */
  edit(payload: JsonObject): string {
    const { usage, ...chunk } = payload
    const choices = Array.isArray(chunk.choices) ? chunk.choices : []
    if (isObject(usage)) {
      this.usage = usage
      if (choices.length === 0) {
        this.last = { object: chunkObject, ...chunk, system_fingerprint: chunk.system_fingerprint ?? undefined }
        return ''
      }
    }
    this.last ??= sharedMembers(chunk)
    chunk.model = this.#model
    chunk.object ||= chunkObject
    chunk.id ??= this.last?.id ?? ''
    chunk.created ??= this.last?.created ?? 0
    // The API leaves it away when there is none.
    if (chunk.system_fingerprint === null) chunk.system_fingerprint = undefined
    const complete = choices.every(isComplete) ? choices : choices.map(completeChoice)
    for (const choice of complete) this.#follow(choice)
    chunk.choices = this.#calls.size > 0 ? complete.map((choice) => this.#withArguments(choice)) : complete
    if (this.#includeUsage) chunk.usage = null
    return `data: ${JSON.stringify(chunk)}\n\n`
  }

  #follow(choice: Json): void {
    if (!isObject(choice) || !isObject(choice.delta) || !Array.isArray(choice.delta.tool_calls)) return
    const { index = 0 } = choice
    const calls = this.#calls.get(index) ?? new Map<Json, boolean>()
    for (const [position, call] of choice.delta.tool_calls.entries()) {
      if (!isObject(call) || !isObject(call.function)) continue
      const at = call.index ?? position
      calls.set(at, calls.get(at) || Boolean(call.function.arguments))
    }
    this.#calls.set(index, calls)
  }

  /** The end of a choice says what its calls never said: clients read arguments as JSON. Those cut off stay cut off. */
  #withArguments(choice: Json): Json {
    if (!isObject(choice) || !choice.finish_reason) return choice
    const { index = 0, finish_reason, delta } = choice
    const silent = [...(this.#calls.get(index) ?? [])].filter(([, spoken]) => !spoken)
    this.#calls.delete(index)
    if (silent.length === 0 || finish_reason === 'length' || !isObject(delta)) return choice
    const said = Array.isArray(delta.tool_calls) ? delta.tool_calls : []
    const none = silent.map(([at]) => ({ index: at, function: { arguments: '{}' } }))
    return { ...choice, delta: { ...delta, tool_calls: [...said, ...none] } }
  }
}

const chunkObject = 'chat.completion.chunk'

function sharedMembers({ id, created, system_fingerprint, service_tier }: JsonObject): JsonObject | undefined {
  // Some providers begin with a chunk about the prompt that has no id yet.
  if (!id) return undefined
  const shared: JsonObject = { id, object: chunkObject, created: created ?? 0 }
  if (system_fingerprint) shared.system_fingerprint = system_fingerprint
  if (service_tier) shared.service_tier = service_tier
  return shared
}

function isComplete(choice: Json): boolean {
  return isObject(choice) && choice.finish_reason !== undefined && choice.index !== undefined && isObject(choice.delta)
}

/** Members that the API promises and the provider left out. */
function completeChoice(choice: Json): Json {
  return isObject(choice) ? { index: 0, delta: {}, finish_reason: null, ...choice } : choice
}
