import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { finishedArguments } from '../../core/tool-arguments.ts'
import { idsOfMessage } from '../returned-ids.ts'
import { type Called, type Ending, editEnding, inferredReason, withReasoningNames } from './reply-members.ts'

/** The model that serves, how its choices end, and whether the client reads `reasoning`. */
type ChunkEditorOptions = { model: string; readsReasoning: boolean; ending: Ending }

/** State of a choice: the form in which it calls tools, its calls once there are any, and whether it has ended. */
type Choice = { called: Called; calls: StreamedCalls | undefined; ended: boolean }

/** Edits the chunks of a provider that speaks this format: the model that served, usage only at the end; the rest is untouched. */
export class ChunkEditor {
  /** The usage that the provider reported last. */
  usage: JsonObject | undefined
  /** The provider's chunk with usage alone, else the members that all chunks share; undefined before the first chunk. */
  last: JsonObject | undefined
  /** The ids of what the provider keeps of the reply. */
  readonly held = new Set<string>()
  readonly #model: string
  readonly #readsReasoning: boolean
  readonly #ending: Ending
  /** The choices that have started, by their index. */
  readonly #choices = new Map<Json, Choice>()

  constructor({ model, readsReasoning, ending }: ChunkEditorOptions) {
    this.#model = model
    this.#readsReasoning = readsReasoning
    this.#ending = ending
  }

  /** Edits one chunk; returns the text of a server-sent event, empty when the client does not get it. */
  edit(payload: JsonObject): string {
    const { usage } = payload
    const chunk: JsonObject = { ...payload, usage: undefined }
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
    for (const choice of complete) this.#begin(choice)
    chunk.choices = complete.every(isText) ? complete : complete.flatMap((choice) => this.#edit(choice))
    if (choices.length > 0 && chunk.choices.length === 0) return ''
    return `data: ${JSON.stringify(chunk)}\n\n`
  }

  /** Returns a last chunk for choices that never got a `finish_reason`, although the stream is complete; empty without any. */
  end(): string {
    const open = [...this.#choices].filter(([, { ended }]) => !ended)
    if (open.length === 0) return ''
    const choices = open.flatMap(([index, known]) => {
      return this.#ended({ index, delta: {}, finish_reason: inferredReason('stop', known.called) }, known)
    })
    const shared = sharedMembers(this.last ?? {}) ?? { id: '', object: chunkObject, created: 0 }
    return `data: ${JSON.stringify({ ...shared, model: this.#model, choices })}\n\n`
  }

  #begin(choice: Json): void {
    if (!isObject(choice)) return
    const { index = 0, delta } = choice
    if (isObject(delta)) for (const id of idsOfMessage(delta)) this.held.add(id)
    if (!this.#choices.has(index)) {
      this.#choices.set(index, { called: undefined, calls: undefined, ended: false })
    }
  }

  /** A choice with its calls and its reasoning as clients read them, and its end; none when it repeats its end only. */
  #edit(choice: Json): Json[] {
    if (!isObject(choice) || !isObject(choice.delta)) return [choice]
    const known = this.#choices.get(choice.index ?? 0)
    if (!known) return [choice]
    const delta = withReasoningNames(choice.delta, this.#readsReasoning)
    if (delta.function_call) known.called = 'function_call'
    if (!Array.isArray(delta.tool_calls) || delta.tool_calls.length === 0)
      return this.#ended({ ...choice, delta }, known)
    known.called = 'tool_calls'
    known.calls ??= new StreamedCalls()
    const tool_calls = known.calls.take(delta.tool_calls)
    return this.#ended({ ...choice, delta: { ...delta, tool_calls } }, known)
  }

  /** Returns the end of a choice: sent once, with a finish reason that the API defines, and arguments for calls that have none. */
  #ended(choice: JsonObject, known: Choice): Json[] {
    if (!choice.finish_reason) return [choice]
    if (known.ended) return isHollow(choice.delta) ? [] : [{ ...choice, finish_reason: null }]
    known.ended = true
    const ending = { ...choice, ...editEnding(choice.finish_reason, known.called, this.#ending) }
    const silent = known.calls?.silent ?? []
    return [silent.length > 0 ? withArguments(ending, silent) : ending]
  }
}

/** The end of a choice, with empty arguments for calls that have none. */
function withArguments(choice: JsonObject, silent: readonly number[]): JsonObject {
  const { finish_reason, delta } = choice
  const finished = finishedArguments('', finish_reason === 'length')
  if (finished === '' || !isObject(delta)) return choice
  const calls = Array.isArray(delta.tool_calls) ? delta.tool_calls : []
  const missing = silent.map((index) => ({ index, function: { arguments: finished } }))
  return { ...choice, delta: { ...delta, tool_calls: [...calls, ...missing] } }
}

/** Checks for a choice like nearly all: it goes on, and holds neither calls nor reasoning. */
function isText(choice: Json): boolean {
  if (!isObject(choice) || choice.finish_reason || !isObject(choice.delta)) return false
  const { tool_calls, function_call, reasoning, reasoning_content } = choice.delta
  return !tool_calls && !function_call && !reasoning && !reasoning_content
}

/** Checks whether a delta contains nothing besides the role. */
function isHollow(delta: Json | undefined): boolean {
  const { role: _role, ...said } = isObject(delta) ? delta : {}
  return Object.values(said).every((value) => value === null || value === '' || (Array.isArray(value) && !value.length))
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

/** The calls of one choice, as they come piece by piece: each has its own number, and every piece has arguments. */
class StreamedCalls {
  /** The calls by their number: the id of each, and whether it has arguments so far. */
  readonly #calls = new Map<number, { id: Json | undefined; hasArguments: boolean }>()
  /** The number of the call that each index of the provider means. */
  readonly #numbers = new Map<number, number>()
  /** The first number after all that are taken. */
  #next = 0

  /** The pieces of one delta, completed. */
  take(pieces: readonly Json[]): Json[] {
    return pieces.map((piece, position) => (isObject(piece) ? this.#complete(piece, position) : piece))
  }

  /** The numbers of the calls that got no arguments. */
  get silent(): number[] {
    return [...this.#calls].filter(([, { hasArguments }]) => !hasArguments).map(([number]) => number)
  }

  #complete(piece: JsonObject, position: number): JsonObject {
    const index = this.#numberOf(piece, typeof piece.index === 'number' ? piece.index : position)
    const members = present({ ...piece, index })
    const call = this.#calls.get(index)
    if (isObject(piece.custom)) {
      if (call) call.hasArguments = true
      return members
    }
    const called = isObject(piece.function) ? present(piece.function) : {}
    const text = called.arguments ?? ''
    if (call && text !== '') call.hasArguments = true
    return { ...members, function: { ...called, arguments: text } }
  }

  /** Returns the number of a call. Some providers give several calls the same index: another id with a name is another call. */
  #numberOf({ id, function: called, custom }: JsonObject, at: number): number {
    const known = this.#numbers.get(at)
    const call = known === undefined ? undefined : this.#calls.get(known)
    const isNamed = (isObject(called) && Boolean(called.name)) || isObject(custom)
    const isOther = call !== undefined && isNamed && Boolean(id) && Boolean(call.id) && call.id !== id
    if (known !== undefined && !isOther) {
      if (call && id) call.id ??= id
      return known
    }
    const number = this.#calls.has(at) ? this.#next : at
    this.#next = Math.max(this.#next, number + 1)
    this.#numbers.set(at, number)
    this.#calls.set(number, { id: id || undefined, hasArguments: false })
    return number
  }
}

/** Pieces repeat what a call is named as null, which not every client takes for nothing. */
function present(members: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null))
}
