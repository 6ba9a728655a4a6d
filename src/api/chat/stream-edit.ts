import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { finishedArguments } from '../../core/tool-arguments.ts'
import type { FinishOf } from '../client-api.ts'
import { type Called, editEnding, inferredReason } from './finish.ts'

export type ChunkEditorOptions = { model: string; includeUsage: boolean; finishOf?: FinishOf | undefined }

/** How a choice calls tools, which of its calls have arguments so far, and whether it has ended. */
type Choice = { called: Called; calls: Map<Json, boolean>; ended: boolean }

/** Edits the chunks of a provider that speaks this format: the model that served, usage only at the end; the rest is untouched. */
export class ChunkEditor {
  /** The usage that the provider reported last. */
  usage: JsonObject | undefined
  /** The provider's chunk with usage alone, else the members that all chunks share; undefined before the first chunk. */
  last: JsonObject | undefined
  readonly #model: string
  readonly #includeUsage: boolean
  readonly #finishOf: FinishOf | undefined
  /** The choices that have begun, by their index. */
  readonly #choices = new Map<Json, Choice>()

  constructor({ model, includeUsage, finishOf }: ChunkEditorOptions) {
    this.#model = model
    this.#includeUsage = includeUsage
    this.#finishOf = finishOf
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
    // The API omits it when there is none.
    if (chunk.system_fingerprint === null) chunk.system_fingerprint = undefined
    const complete = choices.every(isComplete) ? choices : choices.map(completeChoice)
    for (const choice of complete) this.#follow(choice)
    chunk.choices = complete.some(isEnd) ? complete.map((choice) => this.#ended(choice)) : complete
    if (this.#includeUsage) chunk.usage = null
    return `data: ${JSON.stringify(chunk)}\n\n`
  }

  /** A last chunk for choices that never got a `finish_reason`, although the stream is complete; empty without any. */
  end(): string {
    const open = [...this.#choices].filter(([, { ended }]) => !ended)
    if (open.length === 0) return ''
    const choices = open.map(([index, { called }]) => {
      return this.#ended({ index, delta: {}, finish_reason: inferredReason('stop', called) })
    })
    const shared = sharedMembers(this.last ?? {}) ?? { id: '', object: chunkObject, created: 0 }
    const chunk = { ...shared, model: this.#model, choices, ...(this.#includeUsage && { usage: null }) }
    return `data: ${JSON.stringify(chunk)}\n\n`
  }

  /** Records how a choice calls tools, and which of its calls have arguments. */
  #follow(choice: Json): void {
    if (!isObject(choice) || !isObject(choice.delta)) return
    const { index = 0, delta } = choice
    const known = this.#choices.get(index) ?? this.#begin(index)
    if (delta.function_call) known.called = 'function_call'
    if (!Array.isArray(delta.tool_calls)) return
    for (const [position, call] of delta.tool_calls.entries()) {
      known.called = 'tool_calls'
      if (!isObject(call) || !isObject(call.function)) continue
      const at = call.index ?? position
      known.calls.set(at, known.calls.get(at) || Boolean(call.function.arguments))
    }
  }

  #begin(index: Json): Choice {
    const choice: Choice = { called: undefined, calls: new Map(), ended: false }
    this.#choices.set(index, choice)
    return choice
  }

  /** The end of a choice: with a finish reason that the API defines, and arguments for calls that have none. */
  #ended(choice: Json): Json {
    if (!isEnd(choice)) return choice
    const { index = 0 } = choice
    const known = this.#choices.get(index)
    if (!known) return choice
    known.ended = true
    const ending = { ...choice, ...editEnding(choice.finish_reason, known.called, this.#finishOf) }
    const silent = [...known.calls].filter(([, hasArguments]) => !hasArguments).map(([at]) => at)
    known.calls.clear()
    return silent.length > 0 ? withArguments(ending, silent) : ending
  }
}

/** The end of a choice, with empty arguments for calls that have none. */
function withArguments(choice: JsonObject, silent: readonly Json[]): JsonObject {
  const { finish_reason, delta } = choice
  const finished = finishedArguments('', finish_reason === 'length')
  if (finished === '' || !isObject(delta)) return choice
  const calls = Array.isArray(delta.tool_calls) ? delta.tool_calls : []
  const missing = silent.map((index) => ({ index, function: { arguments: finished } }))
  return { ...choice, delta: { ...delta, tool_calls: [...calls, ...missing] } }
}

function isEnd(choice: Json): choice is JsonObject {
  return isObject(choice) && Boolean(choice.finish_reason)
}

const chunkObject = 'chat.completion.chunk'

function sharedMembers({ id, created, system_fingerprint, service_tier }: JsonObject): JsonObject | undefined {
  // Some providers start with a chunk about the prompt, which has no id yet.
  if (!id) return undefined
  const shared: JsonObject = { id, object: chunkObject, created: created ?? 0 }
  if (system_fingerprint) shared.system_fingerprint = system_fingerprint
  if (service_tier) shared.service_tier = service_tier
  return shared
}

function isComplete(choice: Json): boolean {
  if (!isObject(choice) || choice.finish_reason === undefined || choice.finish_reason === '') return false
  return choice.index !== undefined && isObject(choice.delta)
}

/** A choice with the members that the API requires. */
function completeChoice(choice: Json): Json {
  if (!isObject(choice)) return choice
  return { index: 0, delta: {}, ...choice, finish_reason: choice.finish_reason || null }
}
