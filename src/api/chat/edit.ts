import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { finishedArguments } from '../../core/tool-arguments.ts'
import { onlyString } from '../check.ts'
import type { EditFacts, ReplyFacts } from '../client-api.ts'
import { mapItems, withEditedNodes, withoutNulls } from '../edit-nodes.ts'
import { type FetchedFiles, fileDataUrl, linkOrData, textOfDataUrl } from '../media-address.ts'
import { bodyWithoutFields } from '../remove-fields.ts'
import { withoutRouterFields } from '../router-fields.ts'
import { cannotCarryMark, withMark, withProviderFields } from './alternative-names.ts'
import { ownFields, ownMembers } from './fields.ts'
import { isForeignDetail } from './foreign-parts.ts'
import { removals } from './removals.ts'
import {
  choosesFreely,
  type Ending,
  editEnding,
  readsReasoning,
  shownUsage,
  withReasoningNames,
  writeUsage,
} from './reply-members.ts'

/**
 * The client's body for a provider of this format: its model id, what this API has several words for in those of the
 * provider, usage in streams, and without the dropped fields.
 */
export function editRequest(body: JsonObject, facts: EditFacts): JsonObject {
  const { model, stream, dropped, providerFields, length } = facts
  const own = withoutNulls(withoutRouterFields(body, ownFields), ownMembers)
  const left = bodyWithoutFields(inProviderNames(own, facts), dropped, removals)
  const edited: JsonObject = {
    ...(providerFields ? withProviderFields(left, providerFields) : left),
    model,
    ...lengthFields(body, length),
  }
  if (Array.isArray(edited.messages)) {
    edited.messages = mapItems(edited.messages, (item) => {
      return isObject(item) ? withPlainCalls(withoutForeignParts(item)) : item
    })
  }
  return withStreaming(edited, stream)
}

/** Files, cache hints and refusals in the words that the provider knows. */
function inProviderNames(
  body: JsonObject,
  { files, providerFields, textRefusals = false, textFiles }: EditFacts,
): JsonObject {
  return withEditedNodes(body, removals.lists, (node) => {
    const standard = standardPart(node, files, textFiles)
    const marked = providerFields ? withMark(standard, providerFields.mark) : standard
    return textRefusals ? withTextRefusals(marked) : marked
  })
}

/** The limit under the names that the client uses, where they allow more; without one, under the name that all providers know. */
function lengthFields(body: JsonObject, length: number | undefined): JsonObject {
  if (length === undefined) return {}
  const used = ['max_completion_tokens', 'max_tokens'].flatMap((name): [string, number][] => {
    const stated = body[name]
    return typeof stated === 'number' ? [[name, Math.min(stated, length)]] : []
  })
  return used.length > 0 ? Object.fromEntries(used) : { max_tokens: length }
}

/** The provider's own body with the model that served, the cost, and the members that the API requires. */
export function editReply(body: JsonObject, { model, usage, costUsd, finishOf, request }: ReplyFacts): JsonObject {
  const context = { finishOf, free: choosesFreely(request), reads: readsReasoning(request) }
  const counted = isObject(body.usage) ? shownUsage(body.usage, usage) : writeUsage(usage, undefined)
  const shown = costUsd === undefined ? counted : { ...counted, cost: costUsd }
  const edited: JsonObject = { object: 'chat.completion', ...body, model, usage: shown }
  if (edited.system_fingerprint === null) delete edited.system_fingerprint
  if (Array.isArray(body.choices)) {
    edited.choices = body.choices.map((choice, index) => completeChoice(choice, index, context))
  }
  return edited
}

/** The provider must report the usage of a stream whether or not the client asked for it. */
function withStreaming(edited: JsonObject, stream: boolean): JsonObject {
  if (!stream) {
    if ('stream_options' in edited) delete edited.stream_options
    if (edited.stream) edited.stream = false
    return edited
  }
  const options = isObject(edited.stream_options) ? edited.stream_options : {}
  return { ...edited, stream: true, stream_options: { ...options, include_usage: true } }
}

/** Calls without what official SDKs add to them when they gather a stream or parse arguments: servers refuse it. */
function withPlainCalls(message: JsonObject): JsonObject {
  const { tool_calls: calls } = message
  if (!Array.isArray(calls)) return message
  const plain = mapItems(calls, (call) => {
    if (!isObject(call)) return call
    const own = 'index' in call ? without(call, ['index']) : call
    const { function: called } = own
    if (!isObject(called) || !('parsed_arguments' in called)) return own
    return { ...own, function: without(called, ['parsed_arguments']) }
  })
  return plain === calls ? message : { ...message, tool_calls: plain }
}

/** The provider would take signatures of other providers for its own, or refuse fields that it does not know. */
function withoutForeignParts(message: JsonObject): JsonObject {
  if (message.replay_parts === undefined && message.reasoning_details === undefined) return message
  const details = Array.isArray(message.reasoning_details) ? message.reasoning_details : []
  if (message.replay_parts === undefined && !details.some(isForeignDetail)) return message
  const own = details.filter((detail) => !isForeignDetail(detail))
  const others = without(message, ['replay_parts', 'reasoning_details'])
  return own.length > 0 ? { ...others, reasoning_details: own } : others
}

/**
 * Returns the dropped fields of an edited body: reasoning of other providers that is not repeated as text, and cache hints where there is
 * no content part for them.
 */
export function droppedByEdit({ messages }: JsonObject): string[] {
  if (!Array.isArray(messages)) return []
  const loses = (what: (message: JsonObject) => boolean) => messages.some((item) => isObject(item) && what(item))
  return [...(loses(dropsReasoning) ? ['parts.reasoning'] : []), ...(loses(cannotCarryMark) ? ['parts.cache'] : [])]
}

function dropsReasoning(message: JsonObject): boolean {
  const left = withoutForeignParts(message)
  if (left === message || !Array.isArray(message.reasoning_details)) return false
  return ![left.reasoning_details, message.reasoning_content, message.reasoning].some(Boolean)
}

function without(members: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([name]) => !names.includes(name)))
}

/** The endings of choices, and whether the client reads `reasoning`. */
type ChoiceContext = Ending & { reads: boolean }

/** A choice with the members that the API requires, and without those that it omits instead of setting them to null. */
function completeChoice(choice: Json, index: number, { reads, ...ending }: ChoiceContext): Json {
  if (!isObject(choice)) return choice
  const given = withReasoningNames(isObject(choice.message) ? choice.message : {}, reads)
  const message: JsonObject = { role: 'assistant', content: null, refusal: null, ...given }
  for (const name of ['tool_calls', 'function_call', 'annotations']) if (message[name] === null) delete message[name]
  const called = isFilled(message.tool_calls) ? 'tool_calls' : message.function_call ? 'function_call' : undefined
  const complete: JsonObject = {
    index,
    logprobs: null,
    ...choice,
    ...editEnding(choice.finish_reason, called, ending),
  }
  if (Array.isArray(message.tool_calls)) {
    const isCut = complete.finish_reason === 'length'
    message.tool_calls = message.tool_calls.map((call) => completeCall(call, isCut))
  }
  complete.message = message
  return complete
}

function isFilled(value: Json | undefined): boolean {
  return Array.isArray(value) && value.length > 0
}

function completeCall(call: Json, isCut: boolean): Json {
  if (!isObject(call) || !isObject(call.function)) return call
  const { arguments: given } = call.function
  const finished = given ? given : finishedArguments('', isCut)
  return { ...call, type: call.type ?? 'function', function: { ...call.function, arguments: finished } }
}

/** Files in the words of the described service and of gateways; a file of this API is `{type: file, file: {…}}`. */
const fileTypes: ReadonlySet<Json | undefined> = new Set(['file', 'input_file', 'file_input'])
const linkTypes: ReadonlySet<Json | undefined> = new Set(['image_url', 'video_url', 'document_url'])

/** A content part in this API's own words, with the files that were fetched for it in the place of their addresses. */
function standardPart(given: JsonObject, files?: FetchedFiles, textFiles?: EditFacts['textFiles']): JsonObject {
  const part = withAddressObject(given)
  const { type } = part
  if (fileTypes.has(type))
    return textFiles === 'all' ? asTextPart(standardFile(part, files)) : standardFile(part, files)
  return files && typeof type === 'string' && linkTypes.has(type) ? withFetched(part, type, files) : part
}

/** An address alone, as Mistral writes it, in the object that this API has it in. */
function withAddressObject(part: JsonObject): JsonObject {
  const { type } = part
  if ((type !== 'image_url' && type !== 'video_url') || typeof part[type] !== 'string') return part
  return { ...part, [type]: { url: part[type] } }
}

/** A file of text as text, for servers that take no such files. */
function asTextPart(part: JsonObject): JsonObject {
  const { file, type: _type, ...others } = part
  if (!isObject(file) || typeof file.file_data !== 'string') return part
  const text = textOfDataUrl(file.file_data, onlyString(file.filename))
  return text === undefined ? part : { type: 'text', text, ...others }
}

function standardFile(part: JsonObject, files: FetchedFiles | undefined): JsonObject {
  const { type, file, filename, file_data, file_url, file_id, ...others } = part
  const given = type === 'file' ? file : { filename, file_data, file_url, file_id }
  if (!isObject(given)) return part
  const { file_url: link, ...members } = given
  const data = onlyString(given.file_data) ?? onlyString(link)
  const whole = data === undefined ? undefined : linkOrData(fileDataUrl(data, onlyString(given.filename)), files)
  if (type === 'file' && whole === given.file_data && link === undefined) return part
  const kept = Object.entries({ ...members, file_data: whole }).filter(
    ([, value]) => value !== undefined && value !== null,
  )
  return { ...others, type: 'file', file: Object.fromEntries(kept) as JsonObject }
}

function withFetched(part: JsonObject, name: string, files: FetchedFiles): JsonObject {
  const link = part[name]
  const url = isObject(link) ? link.url : link
  if (typeof url !== 'string' || !files.has(url)) return part
  const data = linkOrData(url, files)
  return { ...part, [name]: isObject(link) ? { ...link, url: data } : data }
}

/** A message of the assistant whose refusals are text, for servers that know no others. */
function withTextRefusals(message: JsonObject): JsonObject {
  if (message.role !== 'assistant') return message
  const { refusal, content, ...others } = message
  const parts = Array.isArray(content) && content.some(isRefusal) ? content.map(asText) : content
  if (typeof refusal !== 'string' || refusal === '')
    return parts === content ? message : { ...message, content: parts as Json }
  return {
    ...others,
    content: Array.isArray(parts) ? [...parts, { type: 'text', text: refusal }] : textOf(parts) + refusal,
  }
}

function isRefusal(part: Json): part is JsonObject & { refusal: string } {
  return isObject(part) && part.type === 'refusal' && typeof part.refusal === 'string'
}

function asText(part: Json): Json {
  return isRefusal(part) ? { type: 'text', text: part.refusal } : part
}

function textOf(content: Json | undefined): string {
  return typeof content === 'string' ? content : ''
}
