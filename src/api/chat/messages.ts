import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { MediaPart, Part, RefusalPart, ToolCallPart, ToolResultPart } from '../../core/parts.ts'
import type { Message, NeutralRequest } from '../../core/request.ts'
import { defined, filledText, list, listOf, object, oneOf, optional, refuse, required, text } from '../check.ts'
import { withForeignParts } from './foreign-parts.ts'
import { cacheHint, readContent } from './parts.ts'

const role = oneOf(['system', 'developer', 'user', 'assistant', 'tool', 'function'])
const roleExpected = "'system', 'developer', 'user', 'assistant' or 'tool'"
const contentExpected = 'a string or an array of content parts'

/** The conversation: leading instructions apart, tool results collected in user messages. Throws RouterError 400. */
export function readMessages(value: Json | undefined): Pick<NeutralRequest, 'system' | 'messages'> {
  const items = required(value, 'messages', 'an array of messages', list)
  if (items.length === 0) refuse('messages', 'at least one message', items)
  const system: Part[] = []
  const messages: Message[] = []
  const calls: Calls = { byId: new Map(), byName: new Map() }
  let results: Message | undefined
  for (let index = 0; index < items.length; index++) {
    const item = items[index] as Json
    const plain = plainMessage(item)
    if (plain) {
      results = undefined
      if (plain.role === 'system' && messages.length === 0) system.push(...plain.parts)
      else messages.push(plain)
      continue
    }
    const path = `messages[${index}]`
    const message = object(item, path)
    const speaker = required(message.role, `${path}.role`, roleExpected, role)
    if (speaker === 'tool' || speaker === 'function') {
      if (!results) {
        results = { role: 'user', parts: [] }
        messages.push(results)
      }
      results.parts.push(speaker === 'tool' ? toolResult(message, path, calls) : functionResult(message, path, calls))
      continue
    }
    results = undefined
    if (speaker === 'user' || speaker === 'assistant') {
      const said = speaker === 'user' ? contentOf(message, path, 'user') : readAssistant(message, path, index)
      const parts = withHint(said, message, path)
      for (const part of parts) if (part.type === 'tool_call') remember(part, calls)
      messages.push({ role: speaker, parts, ...nameOf(message, path) })
    } else if (messages.length === 0) system.push(...withHint(contentOf(message, path, 'system'), message, path))
    else {
      const parts = withHint(contentOf(message, path, 'system'), message, path)
      messages.push({ role: 'system', parts, ...nameOf(message, path) })
    }
  }
  return { ...(system.length > 0 && { system }), messages }
}

/** A message that is a text and nothing else, as most are: read without the names that errors need. */
function plainMessage(item: Json): Message | undefined {
  if (!isObject(item) || typeof item.content !== 'string') return undefined
  for (const name in item) if (name !== 'role' && name !== 'content') return undefined
  const speaker = typeof item.role === 'string' ? plainRoles[item.role] : undefined
  return speaker && { role: speaker, parts: [{ type: 'text', text: item.content }] }
}

const plainRoles: { readonly [role: string]: Message['role'] | undefined } = Object.assign(Object.create(null), {
  user: 'user',
  assistant: 'assistant',
  system: 'system',
  developer: 'system',
})

/** The last call so far of each id, and of each function. */
type Calls = { byId: Map<string, ToolCallPart>; byName: Map<string, ToolCallPart> }

function remember(call: ToolCallPart, { byId, byName }: Calls): void {
  byId.set(call.id, call)
  byName.set(call.name, call)
}

function contentOf(message: JsonObject, path: string, speaker: 'system' | 'user' | 'tool'): Part[] {
  const at = `${path}.content`
  return required(message.content, at, contentExpected, (content) => readContent(content, at, speaker))
}

/** Moves a hint on a whole message to its last part that can have one. */
function withHint(parts: Part[], message: JsonObject, path: string): Part[] {
  const cache = cacheHint(message, path)
  const last = cache ? parts.findLastIndex(({ type }) => hintable.has(type)) : -1
  const part = parts[last]
  return part && !('cache' in part) ? parts.with(last, { ...part, cache } as Part) : parts
}

const hintable: ReadonlySet<Part['type']> = new Set(['text', 'image', 'audio', 'file', 'video', 'tool_call'])

function nameOf(message: JsonObject, path: string): { name?: string } {
  return defined({ name: optional(message.name, `${path}.name`, text) })
}

/** A tool's result; its name is that of the call that it answers. */
function toolResult(message: JsonObject, path: string, calls: Calls): ToolResultPart {
  const id = required(message.tool_call_id, `${path}.tool_call_id`, 'the id of a tool call', text)
  const call = calls.byId.get(id)
  const name = call?.name ?? optional(message.name, `${path}.name`, text)
  const cache = cacheHint(message, path)
  return { type: 'tool_result', id, ...defined({ name, cache }), parts: contentOf(message, path, 'tool') }
}

/** Reads a result in the deprecated form, which names its function: it answers the last call of that function. */
function functionResult(message: JsonObject, path: string, calls: Calls): ToolResultPart {
  const name = required(message.name, `${path}.name`, 'the name of the function', filledText)
  const call = calls.byName.get(name)
  const parts = optional(message.content, `${path}.content`, (content, at) => readContent(content, at, 'tool')) ?? []
  return { type: 'tool_result', id: call?.id ?? `call_${name}`, name, parts }
}

/** The parts of an assistant message, in their original order as far as the message preserves it. Throws RouterError 400. */
function readAssistant(message: JsonObject, path: string, index: number): Part[] {
  const content = optional(message.content, `${path}.content`, (value, at) => readContent(value, at, 'assistant')) ?? []
  const spoken = [
    ...content.filter((part) => part.type !== 'text' || part.text !== ''),
    ...refusal(message, path),
    ...audio(message, path),
    ...(optional(message.images, `${path}.images`, (images, at) => readContent(images, at, 'assistant')) ?? []),
  ]
  const calls = [
    ...(optional(message.tool_calls, `${path}.tool_calls`, listOf(toolCall)) ?? []),
    ...legacyCall(message, path, index),
  ]
  const parts = withForeignParts({ spoken, calls }, message, path)
  return parts.length > 0 ? parts : [{ type: 'text', text: '' }]
}

function refusal(message: JsonObject, path: string): RefusalPart[] {
  const declined = optional(message.refusal, `${path}.refusal`, text)
  return declined ? [{ type: 'refusal', text: declined }] : []
}

/** Audio of an earlier reply is referred to by its id; the transcript is for providers that do not know the id. */
function audio(message: JsonObject, path: string): MediaPart[] {
  const made = optional(message.audio, `${path}.audio`, object)
  if (!made) return []
  const id = required(made.id, `${path}.audio.id`, 'the id of an earlier audio reply', filledText)
  const transcript = optional(made.transcript, `${path}.audio.transcript`, text)
  return [{ type: 'audio', id, ...defined({ transcript }) }]
}

function toolCall(value: Json, path: string): ToolCallPart {
  const call = object(value, path)
  const id = required(call.id, `${path}.id`, 'the id of the tool call', text)
  const cache = cacheHint(call, path)
  return { type: 'tool_call', id, ...called(call, path), ...signatureOf(call), ...(cache && { cache }) }
}

function called(call: JsonObject, path: string): Pick<ToolCallPart, 'name' | 'arguments' | 'kind'> {
  if (call.type === 'custom') {
    const { name, input } = required(call.custom, `${path}.custom`, 'an object with name and input', object)
    return {
      kind: 'custom',
      name: required(name, `${path}.custom.name`, 'the name of the tool', filledText),
      arguments: required(input, `${path}.custom.input`, 'a string', text),
    }
  }
  return functionCalled(call.function, `${path}.function`)
}

function functionCalled(value: Json | undefined, path: string): Pick<ToolCallPart, 'name' | 'arguments'> {
  const called = required(value, path, 'an object with name and arguments', object)
  // Clients that have parsed the arguments often send them as an object.
  const given = isObject(called.arguments) ? JSON.stringify(called.arguments) : called.arguments
  return {
    name: required(called.name, `${path}.name`, 'the name of the function', filledText),
    arguments: optional(given, `${path}.arguments`, text) ?? '',
  }
}

/** `extra_content: {<maker>: {thought_signature}}`: the signature of the call's provider. */
function signatureOf(call: JsonObject): { signature?: string; by?: string } {
  const makers = isObject(call.extra_content) ? Object.entries(call.extra_content) : []
  for (const [by, extra] of makers) {
    const signature = isObject(extra) ? extra.thought_signature : undefined
    if (typeof signature === 'string' && signature) return { signature, by }
  }
  return {}
}

/** The deprecated `function_call` has no id: it gets a stable one from its place in the conversation. */
function legacyCall(message: JsonObject, path: string, index: number): ToolCallPart[] {
  const call = optional(message.function_call, `${path}.function_call`, object)
  return call ? [{ type: 'tool_call', id: `call_${index}`, ...functionCalled(call, `${path}.function_call`) }] : []
}
