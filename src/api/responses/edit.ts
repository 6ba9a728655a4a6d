import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { onlyString } from '../check.ts'
import type { ClientApi, ReplyFacts } from '../client-api.ts'
import { withEditedNodes, withoutNulls } from '../edit-nodes.ts'
import { droppedWith, isForeignSignature } from '../foreign-signature.ts'
import { type FetchedFiles, fileDataUrl, isAddress, linkOrData, textOfDataUrl } from '../media-address.ts'
import { bodyWithoutFields } from '../remove-fields.ts'
import { withoutRouterFields } from '../router-fields.ts'
import { ownMembers } from './fields.ts'
import { removals } from './removals.ts'
import { editEnding, writeUsage } from './reply-members.ts'
import { completeResponse } from './write.ts'

/**
 * The client's body for a provider of this format: its model id, without dropped fields, and without items that this
 * router wrote into it for other providers. Everything else, known or not, stays unchanged.
 */
export const editRequest: ClientApi['editRequest'] = (body, { model, stream, dropped, files, textFiles, length }) => {
  const standard = withEditedNodes(withoutNulls(withoutRouterFields(body), ownMembers), removals.lists, (node) => {
    const part = standardPart(node, files)
    return textFiles === 'all' ? asTextPart(part) : part
  })
  const edited: JsonObject = { ...bodyWithoutFields(standard, dropped, removals), model }
  const limit = length ?? edited.max_output_tokens
  if (typeof limit === 'number') edited.max_output_tokens = Math.max(limit, minLimit)
  if (stream) edited.stream = true
  else if (edited.stream) Object.assign(edited, { stream: false, stream_options: undefined })
  if (Array.isArray(edited.input)) edited.input = edited.input.filter((item) => !isForeign(item))
  return edited
}

/** The provider's response, complete, with the model that served, the cost, and an ending that the API defines. */
export function editReply(body: JsonObject, { model, usage, costUsd, finishOf, request }: ReplyFacts): JsonObject {
  const ended: JsonObject = { status: 'completed', ...body, ...editEnding(body, finishOf) }
  const edited: JsonObject = { ...completeResponse(ended, request?.origin.body ?? {}), model }
  if (usage.corrected) return { ...edited, usage: writeUsage(usage, costUsd) }
  return isObject(body.usage) && costUsd !== undefined ? { ...edited, usage: { ...body.usage, cost: costUsd } } : edited
}

/** Minimum output limit that servers of this format accept, although the API counts from one. */
const minLimit = 16

/** Reasoning and blocks of other providers, and a limit that is raised. */
export function droppedByEdit({ input, max_output_tokens: limit }: JsonObject): string[] {
  const foreign = (Array.isArray(input) ? input : []).filter(isForeign)
  return [
    ...foreign.flatMap((item) => droppedWith(item.encrypted_content)),
    ...(typeof limit === 'number' && limit < minLimit ? ['max_output_tokens'] : []),
  ]
}

function isForeign(item: Json): item is JsonObject {
  return isObject(item) && isForeignSignature(item.encrypted_content)
}

/** A content part as its provider reads it: addresses under their own name, and fetched files in the place of theirs. */
function standardPart(part: JsonObject, files?: FetchedFiles): JsonObject {
  if (part.type === 'input_file') return standardFile(part, files)
  if (part.type !== 'input_image' || typeof part.image_url !== 'string' || !files?.has(part.image_url)) return part
  return { ...part, image_url: linkOrData(part.image_url, files) }
}

/** A file of text as text, for servers that take no such files. */
function asTextPart(part: JsonObject): JsonObject {
  const { type, file_data, filename, prompt_cache_breakpoint: mark } = part
  if (type !== 'input_file' || typeof file_data !== 'string') return part
  const text = textOfDataUrl(file_data, onlyString(filename))
  if (text === undefined) return part
  return { type: 'input_text', text, ...(mark !== undefined && { prompt_cache_breakpoint: mark }) }
}

/** A link excludes a name; data need one. */
function standardFile(part: JsonObject, files: FetchedFiles | undefined): JsonObject {
  const { file_data, file_url, filename, ...others } = part
  const given = onlyString(file_data) ?? onlyString(file_url)
  if (given === undefined) return part
  const whole = fileDataUrl(linkOrData(given, files), onlyString(filename))
  if (isAddress(whole)) return whole === file_url ? part : { ...others, file_url: whole }
  return whole === file_data ? part : { ...others, filename: filename ?? nameOf(given), file_data: whole }
}

/** Returns the last step of an address, as a file name. */
function nameOf(given: string): string {
  return (isAddress(given) && /([^/?#]+)\/?(?:[?#].*)?$/.exec(given)?.[1]) || 'document.pdf'
}

/** A body as it is counted: nothing of what only generating needs. */
export function countedBody(body: JsonObject): JsonObject {
  return without(body, onlyGenerating)
}

/** Returns a body as it is compacted: the whole answer comes at once, and is stored nowhere. */
export function compactedBody(body: JsonObject): JsonObject {
  return without(body, ['store', 'stream', 'stream_options'])
}

const onlyGenerating = [
  ...['store', 'stream', 'stream_options', 'background', 'include', 'metadata', 'moderation'],
  ...['max_output_tokens', 'max_tool_calls', 'temperature', 'top_p', 'top_logprobs', 'service_tier'],
  ...['user', 'safety_identifier', 'prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention'],
  'context_management',
]

function without(body: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)))
}
