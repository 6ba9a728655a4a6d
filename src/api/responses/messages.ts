import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { NativeItem, Part, ReasoningPart, ToolCallPart, ToolResultPart } from '../../core/parts.ts'
import type { Message } from '../../core/request.ts'
import { defined, filledText, object, oneOf, optional, refuse, required, text } from '../check.ts'
import { type ForeignSignature, readForeignSignature } from '../foreign-signature.ts'
import type { FunctionNames } from './function-names.ts'
import { type NativeTool, nativeToolOf } from './native-tools.ts'
import { readContent } from './parts.ts'

/** An input as messages in order, and the instructions that precede them. */
export type ReadInput = { system: Part[]; messages: Message[] }

/** Reads an input, a text or items. Consecutive items of an assistant are one turn. Throws RouterError 400. */
export function readInput(input: Json | undefined, names: FunctionNames): ReadInput {
  const given = required(input, 'input', 'a string or an array of input items', (value) => value)
  if (typeof given === 'string')
    return { system: [], messages: [{ role: 'user', parts: [{ type: 'text', text: given }] }] }
  if (!Array.isArray(given)) refuse('input', 'a string or an array of input items', given)
  const turns = new Turns(names)
  for (const [index, item] of given.entries()) {
    if (takesPlain(item, turns)) continue
    const path = `input[${index}]`
    readItem(object(item, path), path, turns)
  }
  return turns.end()
}

/** Collects items into turns. */
class Turns {
  readonly names: FunctionNames
  readonly #system: Part[] = []
  readonly #messages: Message[] = []
  /** Names of calls, and the messages that they are in, by the id of the call. */
  readonly #calls = new Map<string, { name: string; message: Message }>()
  /** Ids of calls by the ids of the items that they are in. */
  readonly #ids = new Map<string, string>()
  /** The first signature for each call. */
  readonly #signatures = new Map<string, ForeignSignature>()
  /** Position in its turn at which the last item of an assistant begins. */
  #lastItem = 0

  constructor(names: FunctionNames) {
    this.names = names
  }

  assistant(...parts: Part[]): void {
    const last = this.#messages.at(-1)
    this.#lastItem = last?.role === 'assistant' ? last.parts.length : 0
    const message = this.#join('assistant', parts)
    for (const part of parts) if (part.type === 'tool_call') this.#calls.set(part.id, { name: part.name, message })
  }

  /** Adds a call; `otherId` is another id by which its result may refer to it. */
  call(call: ToolCallPart, otherId: Json | undefined): void {
    this.assistant(call)
    if (typeof otherId === 'string' && !this.#calls.has(otherId)) this.#ids.set(otherId, call.id)
  }

  /** Results of calls are grouped, apart from other user content. */
  result(given: string, parts: Part[], about: Pick<ToolResultPart, 'is_error' | 'native'> = {}): void {
    const id = this.#calls.has(given) ? given : (this.#ids.get(given) ?? given)
    const { name, message } = this.#calls.get(id) ?? {}
    const result: Part = { type: 'tool_result', id, ...(name !== undefined && { name }), parts, ...about }
    // Directly after its call, regardless of what the client put between them.
    const at = message ? this.#messages.lastIndexOf(message) + 1 : this.#messages.length
    const next = this.#messages[at]
    if (next?.parts[0]?.type === 'tool_result') next.parts.push(result)
    else this.#messages.splice(at, 0, { role: 'user', parts: [result] })
  }

  add(role: 'user' | 'system', parts: Part[]): void {
    if (role === 'system' && this.#messages.length === 0) this.#system.push(...parts)
    else this.#messages.push({ role, parts })
  }

  /** A signature directly follows the item that it belongs to; the signature of a call may also be elsewhere. */
  sign(foreign: ForeignSignature): void {
    const { call } = foreign
    if (call !== undefined && !this.#signatures.has(call)) this.#signatures.set(call, foreign)
    const parts = this.#messages.at(-1)?.parts ?? []
    const { by, signature, text: position } = foreign
    if (position !== undefined) {
      const part = position < 0 ? undefined : parts[this.#lastItem + position]
      if (part?.type === 'text') Object.assign(part, defined({ signature, by }))
    } else if (foreign.search !== undefined) {
      const part = parts.findLast(({ type }) => type === 'search')
      if (part) Object.assign(part, foreign.search && { id: foreign.search }, defined({ results: foreign.body, by }))
    }
  }

  end(): ReadInput {
    for (const { parts } of this.#messages) {
      for (const part of parts) {
        const found = part.type === 'tool_call' && this.#signatures.get(part.id)
        if (found) Object.assign(part, defined({ signature: found.signature, by: found.by }))
      }
    }
    return { system: this.#system, messages: this.#messages }
  }

  #join(role: Message['role'], parts: Part[]): Message {
    const last = this.#messages.at(-1)
    if (last?.role === role) {
      last.parts.push(...parts)
      return last
    }
    const message: Message = { role, parts: [...parts] }
    this.#messages.push(message)
    return message
  }
}

type ItemReader = (item: JsonObject, path: string, turns: Turns) => void

const readers: { readonly [type: string]: ItemReader } = {
  message: readMessage,
  function_call: (item, path, turns) => turns.assistant(readCall(item, path, turns.names)),
  custom_tool_call: (item, path, turns) => turns.assistant(readCall(item, path, turns.names)),
  function_call_output: readOutput,
  custom_tool_call_output: readOutput,
  reasoning: readReasoning,
  agent_message: readAgentMessage,
  // Read with the tools of the body.
  additional_tools: () => {},
  web_search_call: (item, _path, turns) => turns.assistant(readSearch(item)),
  image_generation_call: (item, _path, turns) => turns.assistant(readMade(item)),
}

/** Checks whether an input item is passed on unread. */
export function isOpaqueItem(item: JsonObject): boolean {
  const { type } = item
  return typeof type === 'string' && !Object.hasOwn(readers, type) && !nativeToolOf(item)
}

function readItem(item: JsonObject, path: string, turns: Turns): void {
  const type = optional(item.type, `${path}.type`, text) ?? 'message'
  const reader = Object.hasOwn(readers, type) ? readers[type] : undefined
  const native = nativeToolOf(item)
  if (reader) reader(item, path, turns)
  else if (native) readNative(item, path, { native, turns })
  else turns.assistant({ type: 'opaque', body: item })
}

/** Checks whether an item is a message whose content is a text: it is read without the names that errors need. */
function takesPlain(item: Json, turns: Turns): boolean {
  if (!isObject(item) || typeof item.content !== 'string') return false
  const { type = 'message', role, content } = item
  if (type !== 'message') return false
  const part: Part = { type: 'text', text: content }
  if (role === 'assistant') turns.assistant(part)
  else if (role === 'user') turns.add(role, [part])
  else if (role === 'system' || role === 'developer') turns.add('system', [part])
  else return false
  return true
}

const roles = oneOf(['user', 'assistant', 'system', 'developer'])

function readMessage(item: JsonObject, path: string, turns: Turns): void {
  const role = required(item.role, `${path}.role`, "'user', 'assistant', 'system' or 'developer'", roles)
  const parts = readContent(item.content, `${path}.content`)
  if (role === 'assistant') turns.assistant(...parts)
  else turns.add(role === 'user' ? 'user' : 'system', parts)
}

/**
 * Reads what one agent of the client says to another: the task of a sub-agent, or its result. Clients write the text under
 * `encrypted_content` where the model did not encrypt it.
 */
function readAgentMessage(item: JsonObject, _path: string, turns: Turns): void {
  const content = Array.isArray(item.content) ? item.content : []
  const parts = content.flatMap((part): Part[] => {
    const words = isObject(part) ? (part.text ?? part.encrypted_content) : undefined
    return typeof words === 'string' && words !== '' && !sealed.test(words) ? [{ type: 'text', text: words }] : []
  })
  if (parts.length > 0) turns.add('user', parts)
  else turns.assistant({ type: 'opaque', body: item })
}

/** The beginning of what OpenAI's models encrypt. */
const sealed = /^gAAAA[\w-]+/

function readCall(item: JsonObject, path: string, names: FunctionNames): ToolCallPart {
  const kind = item.type === 'custom_tool_call' ? 'custom' : 'function'
  const input = kind === 'custom' ? item.input : item.arguments
  const name = required(item.name, `${path}.name`, 'the name of a tool', filledText)
  const joined = names.ofForm(item)
  return {
    type: 'tool_call',
    id: required(item.call_id, `${path}.call_id`, 'the id of the call', filledText),
    name: joined ?? name,
    arguments: required(input, `${path}.${kind === 'custom' ? 'input' : 'arguments'}`, 'a string', text),
    ...(kind === 'custom' && { kind }),
    ...(joined !== undefined && { native: nativeItem('namespace', item) }),
  }
}

/** Reads a call of a tool with items of its own types, or its output. */
function readNative(item: JsonObject, path: string, { native, turns }: { native: NativeTool; turns: Turns }): void {
  const { kind, call, argumentsOf, partsOf } = native
  const id = required(item.call_id ?? item.id, `${path}.call_id`, 'the id of the call', filledText)
  const own = nativeItem(kind, item)
  if (item.type === call) {
    const name = turns.names.of({ kind: call, name: kind })
    const input = JSON.stringify(argumentsOf(item) ?? {})
    turns.call({ type: 'tool_call', id, name, arguments: input, native: own }, item.id)
  } else turns.result(id, partsOf(item), { ...(item.status === 'failed' && { is_error: true }), native: own })
}

function nativeItem(kind: string, body: JsonObject): NativeItem {
  return { by: 'responses', kind, body }
}

function readOutput(item: JsonObject, path: string, turns: Turns): void {
  const id = required(item.call_id, `${path}.call_id`, 'the id of a call', filledText)
  turns.result(id, readContent(item.output ?? '', `${path}.output`))
}

function readReasoning(item: JsonObject, _path: string, turns: Turns): void {
  const foreign = readForeignSignature(item.encrypted_content)
  const { call, text: position, search, body, ...members } = foreign ?? {}
  if (foreign && (call ?? position ?? search) !== undefined) turns.sign(foreign)
  else if (body !== undefined) turns.assistant({ type: 'opaque', body, ...defined({ by: members.by }) })
  else {
    const own = typeof item.encrypted_content === 'string' && !foreign ? { encrypted: item.encrypted_content } : {}
    const id = !foreign && typeof item.id === 'string' ? { id: item.id } : {}
    turns.assistant({ type: 'reasoning', ...readableOf(item, foreign), ...own, ...id, ...members } as ReasoningPart)
  }
}

/** Text and summary. In an item that this router wrote, only the text that the signature repeats is the summary. */
function readableOf(item: JsonObject, foreign: ForeignSignature | undefined): Partial<ReasoningPart> {
  const summaries = textsOf(item.summary)
  const texts = foreign ? summaries.filter((summary) => summary !== foreign.summary) : []
  const text = [...textsOf(item.content), ...texts].join('\n\n')
  const summary = foreign ? (foreign.summary ?? '') : summaries.join('\n\n')
  return { ...(text && { text }), ...(summary && { summary }) }
}

function textsOf(value: Json | undefined): string[] {
  const parts = Array.isArray(value) ? value : []
  return parts.flatMap((part) => (isObject(part) && typeof part.text === 'string' ? [part.text] : []))
}

function readMade(item: JsonObject): Part {
  const { result: data, output_format: format } = item
  if (typeof data !== 'string' || data === '') return { type: 'opaque', body: item }
  return { type: 'image', data, media_type: `image/${typeof format === 'string' ? format : 'png'}` }
}

function readSearch(item: JsonObject): Part {
  const action = isObject(item.action) ? item.action : {}
  return {
    type: 'search',
    ...(typeof item.id === 'string' && { id: item.id }),
    ...(typeof action.query === 'string' && { query: action.query }),
    ...(typeof item.status === 'string' && { status: item.status }),
  }
}
