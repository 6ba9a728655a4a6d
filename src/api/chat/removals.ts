import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { isNoSearch, type Removals } from '../remove-fields.ts'
import { cacheMarks } from './alternative-names.ts'
import { fieldNames } from './fields.ts'

const isType = (...types: readonly string[]) => {
  return (node: JsonObject) => typeof node.type === 'string' && types.includes(node.type)
}

/** Rules for removing fields that are not simply paths from a body of this API. */
export const removals: Removals = {
  ...fieldNames,
  lists: ['messages'],
  removals: {
    system: { isDropped: ({ role }) => role === 'system' || role === 'developer' },
    'messages.name': { edit: withoutName },
    'parts.cache': { messages: cacheMarks, parts: cacheMarks },
    'parts.detail': { parts: ['detail', 'image_url.detail'] },
    'parts.filename': { parts: ['file.filename'] },
    'parts.file_id': {
      isDropped: ({ file }) => isObject(file) && isPresent(file.file_id) && !isPresent(file.file_data),
      parts: ['file.file_id'],
    },
    'parts.url': { isDropped: hasAddress },
    'parts.signature': {
      parts: ['extra_content', 'signature'],
      messages: ['reasoning_details.signature'],
    },
    'parts.id': { edit: withoutAudioId },
    'parts.audio.id': { edit: withoutAudioId },
    'parts.citations': { messages: ['annotations'] },
    'parts.refusal': { isDropped: isType('refusal'), messages: ['refusal'] },
    'parts.reasoning': {
      isDropped: isType('thinking'),
      messages: ['reasoning_content', 'reasoning', 'reasoning_details'],
    },
    'parts.image': { isDropped: isType('image_url'), messages: ['images'] },
    'parts.audio': { isDropped: isType('input_audio'), messages: ['audio'] },
    'parts.video': { isDropped: isType('video_url') },
    'parts.file': { isDropped: isType('file', 'document_url') },
    'parts.search': { messages: ['replay_parts'] },
    'parts.opaque': { messages: ['replay_parts'] },
    'parts.tool_call': { isDropped: isCall, messages: ['tool_calls', 'function_call'] },
    'parts.text': { isDropped: isType('text') },
    'parts.reasoning.signature': { edit: withoutThoughtSignature, messages: ['reasoning_details.signature'] },
    'parts.tool_call.signature': { parts: ['extra_content'] },
    'parts.reasoning.id': { messages: ['reasoning_details.id'] },
    'parts.summary': { edit: withoutSummaries },
    'parts.reasoning.summary': { edit: withoutSummaries },
    'parts.tool_result': { isDropped: ({ role }) => role === 'tool' || role === 'function' },
    tools: { tools: isNoSearch, paths: ['functions'] },
    'tools.function': {
      tools: (tool) => tool.type === 'function' || (tool.type === undefined && isObject(tool.function)),
      paths: ['functions'],
    },
    'tools.custom': { tools: isType('custom'), edit: asFunctionCall },
    'tools.cache': { toolMembers: cacheMarks },
    ...Object.fromEntries(
      ['description', 'parameters', 'strict', 'format'].map((member) => [
        `tools.${member}`,
        { toolMembers: [`function.${member}`, `custom.${member}`], paths: [`functions.${member}`] },
      ]),
    ),
    'reasoning.effort': { paths: ['reasoning_effort', 'reasoning.effort', 'reasoning.enabled'], body: withoutSwitch },
  },
}

function isPresent(value: Json | undefined): boolean {
  return value !== undefined && value !== null
}

/** The name of a function result identifies the call that it answers. */
function withoutName(node: JsonObject): JsonObject {
  const { name: _name, ...rest } = node
  return node.role === undefined || node.role === 'function' ? node : rest
}

function isCall({ role, function: called, custom }: JsonObject): boolean {
  return role === undefined && (isObject(called) || isObject(custom))
}

function withoutThoughtSignature(part: JsonObject): JsonObject {
  const { signature: _signature, ...others } = part
  return part.type === 'thinking' ? others : part
}

function withoutSummaries(message: JsonObject): JsonObject {
  const { reasoning_details: details, ...others } = message
  if (!Array.isArray(details)) return message
  const left = details.filter((detail) => !isObject(detail) || detail.type !== 'reasoning.summary')
  return left.length > 0 ? { ...others, reasoning_details: left } : others
}

/** Audio of an earlier reply is known by its id where it was made; elsewhere its words are text. */
function withoutAudioId(message: JsonObject): JsonObject {
  const { audio, ...others } = message
  if (message.role !== 'assistant' || !isObject(audio)) return message
  const { transcript } = audio
  const { content } = message
  if (typeof transcript !== 'string' || transcript === '') return others
  return {
    ...others,
    content: Array.isArray(content) ? [...content, { type: 'text', text: transcript }] : (content ?? '') + transcript,
  }
}

/** Media at an address of its own, not inside of the body. */
function hasAddress(part: JsonObject): boolean {
  const { file, image_url, video_url, document_url } = part
  const given = [image_url, video_url, document_url].map((at) => (isObject(at) ? at.url : at))
  return [...given, isObject(file) ? file.file_data : undefined].some((address) => {
    return typeof address === 'string' && /^(?!data:)[a-z][a-z0-9+.-]*:\/\//i.test(address.slice(0, 64))
  })
}

/** An earlier call of a custom tool, for a provider that only knows functions. */
function asFunctionCall(node: JsonObject): JsonObject {
  const { custom, ...call } = node
  if (node.type !== 'custom' || !isObject(custom) || typeof custom.input !== 'string') return node
  return {
    ...call,
    type: 'function',
    function: { name: custom.name ?? '', arguments: JSON.stringify({ input: custom.input }) },
  }
}

/** Thinking that is only switched on or off is an effort. */
function withoutSwitch(body: JsonObject): JsonObject {
  const { thinking, ...rest } = body
  return isObject(thinking) && !isPresent(thinking.budget_tokens) ? rest : body
}
