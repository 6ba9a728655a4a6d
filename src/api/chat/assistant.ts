import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { MediaPart, Part, RefusalPart, ToolCallPart } from '../../core/parts.ts'
import { defined, filledText, listOf, object, optional, required, text } from '../check.ts'
import { withForeignParts } from './foreign-parts.ts'
import { cacheHint, readContent } from './parts.ts'

/** The parts of an assistant message, in their original order as far as the message preserves it. Throws RouterError 400. */
export function readAssistant(message: JsonObject, path: string, index: number): Part[] {
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
