import { isObject, type Json, type JsonObject } from '../../core/json.ts'

/** Edits the chunks of a provider that speaks this format: the model that served, usage only at the end, the rest as it came. */
export class Frames {
  /** The provider's last word on usage. */
  usage: JsonObject | undefined
  /** The provider's chunk that carried usage alone, or what chunks of this stream share; none before the first. */
  last: JsonObject | undefined
  readonly #model: string
  readonly #includeUsage: boolean

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
    // The API leaves it away when there is none.
    if (chunk.system_fingerprint === null) chunk.system_fingerprint = undefined
    chunk.choices = choices.every(isComplete) ? choices : choices.map(completeChoice)
    if (this.#includeUsage) chunk.usage = null
    return `data: ${JSON.stringify(chunk)}\n\n`
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
