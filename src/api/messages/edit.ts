import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { isTextType, textOfFile } from '../../core/text-files.ts'
import { onlyString } from '../check.ts'
import type { ClientApi, ReplyFacts } from '../client-api.ts'
import { withEditedNodes, withoutNulls } from '../edit-nodes.ts'
import { droppedWith, isForeignSignature } from '../foreign-signature.ts'
import type { FetchedFiles } from '../media-address.ts'
import { bodyWithoutFields } from '../remove-fields.ts'
import { wantsCache, wholePrompt, withoutRouterFields } from '../router-fields.ts'
import { ownMembers } from './fields.ts'
import { removals } from './removals.ts'
import { deltaUsage, editStop, isCall } from './reply-members.ts'
import { isForeignSearch } from './searches.ts'

/**
 * The client's body for a provider of this format: its model id, without dropped fields, and without parts that this
 * router wrote into it for other providers. Everything else, known or not, stays unchanged.
 */
export const editRequest: ClientApi['editRequest'] = (body, { model, stream, dropped, files, textFiles, length }) => {
  const asked = wantsCache(body) ? { cache_control: wholePrompt, ...body } : body
  const standard = withoutNulls(withoutRouterFields(asked), ownMembers)
  const inlined = files ? withEditedNodes(standard, removals.lists, (node) => inlinedBlock(node, files)) : standard
  const worded = textFiles === 'all' ? withEditedNodes(inlined, removals.lists, asTextBlock) : inlined
  const edited: JsonObject = { ...bodyWithoutFields(worded, dropped, removals), model }
  // 0 asks for no reply at all.
  if (length !== undefined && body.max_tokens !== 0) edited.max_tokens = length
  if (stream) edited.stream = true
  else if (edited.stream) edited.stream = false
  if (Array.isArray(edited.messages)) edited.messages = edited.messages.flatMap(withoutForeign)
  return edited
}

/** The provider's message with the model that served, the cost, and a stop reason that the API defines. */
export function editReply(body: JsonObject, { model, usage: counts, costUsd, finishOf }: ReplyFacts): JsonObject {
  const reported = isObject(body.usage) ? body.usage : {}
  const usage = counts.corrected ? { ...reported, ...deltaUsage(counts, undefined) } : reported
  const called = Array.isArray(body.content) && body.content.some(isCall)
  return {
    ...body,
    model,
    ...editStop(body.stop_reason, called, finishOf),
    usage: costUsd === undefined ? usage : { ...usage, cost: costUsd },
  }
}

/** Reasoning, searches and blocks of other providers. */
export function droppedByEdit({ messages }: JsonObject): string[] {
  const contents = (Array.isArray(messages) ? messages : []).flatMap((one) => {
    return isObject(one) && Array.isArray(one.content) ? one.content : []
  })
  return contents.flatMap((block) => {
    if (!isForeign(block)) return []
    return isSearch(block) ? ['parts.search'] : droppedWith(block.signature ?? block.data)
  })
}

function isSearch({ type }: JsonObject): boolean {
  return type === 'server_tool_use' || type === 'web_search_tool_result'
}

/** A message without blocks that this router wrote for other providers; nothing when it has no other blocks. */
function withoutForeign(message: Json): Json[] {
  if (!isObject(message) || !Array.isArray(message.content)) return [message]
  const left = message.content.filter((block) => !isForeign(block))
  if (left.length === message.content.length) return [message]
  return left.length === 0 ? [] : [{ ...message, content: left }]
}

function isForeign(block: Json): block is JsonObject {
  if (!isObject(block)) return false
  if (isForeignSignature(block.signature) || isForeignSignature(block.data)) return true
  return isForeignSearch(block.type === 'server_tool_use' ? block.id : block.tool_use_id)
}

/** A document of text as text, for servers that take no documents. */
function asTextBlock(block: JsonObject): JsonObject {
  const { type, source, title, cache_control: mark } = block
  if (type !== 'document' || !isObject(source) || typeof source.data !== 'string') return block
  const isPlain = source.type === 'text'
  if (!isPlain && !(source.type === 'base64' && isTextType(onlyString(source.media_type)))) return block
  const data = isPlain ? Buffer.from(source.data).toString('base64') : source.data
  const filename = onlyString(title)
  const text = textOfFile({ data, ...(filename !== undefined && { filename }) })
  return { type: 'text', text, ...(mark !== undefined && { cache_control: mark }) }
}

/** A content block with the file that was fetched for it in the place of its address. */
function inlinedBlock(block: JsonObject, files: FetchedFiles): JsonObject {
  const { source } = block
  if (!isObject(source) || source.type !== 'url' || typeof source.url !== 'string') return block
  const file = files.get(source.url)
  if (!file) return block
  const { media_type, data } = file
  return media_type.startsWith('text/')
    ? {
        ...block,
        source: { type: 'text', media_type: 'text/plain', data: Buffer.from(data, 'base64').toString('utf8') },
      }
    : { ...block, source: { type: 'base64', media_type, data } }
}
