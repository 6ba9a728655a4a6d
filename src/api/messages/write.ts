import type { JsonObject } from '../../core/json.ts'
import type { Citation, MediaPart, Part, SearchPart, TextPart, ToolCallPart } from '../../core/parts.ts'
import type { Finish, Reply } from '../../core/reply.ts'
import { completionTokens, promptTokens, type Usage } from '../../core/usage.ts'
import { defined } from '../check.ts'
import type { ReplyFacts } from '../face.ts'
import { writeSeal } from '../seal.ts'
import { reasoningBlock } from './reasoning.ts'

/** A neutral reply as a message of this API, with `usage.cost` in USD when it is known. */
export function writeReply(reply: Reply, { model, usage, costUsd }: ReplyFacts): JsonObject {
  let texts = 0
  const content = reply.parts.flatMap((part) => blocksOf(part, part.type === 'text' ? texts++ : texts))
  return {
    id: messageId(reply.id),
    type: 'message',
    role: 'assistant',
    model,
    content,
    ...stopOf(reply),
    usage: writeUsage(usage, costUsd),
  }
}

/** The blocks of one part; `position` counts the text parts before it. */
export function blocksOf(part: Part, position: number): JsonObject[] {
  switch (part.type) {
    case 'text':
      return [
        ...textSeal(part, position),
        { type: 'text', text: part.text, citations: part.citations?.map(citationOf) ?? null },
      ]
    case 'refusal':
      return [{ type: 'text', text: part.text, citations: null }]
    case 'reasoning':
      return [reasoningBlock(part)]
    case 'tool_call':
      return [...callSeal(part), { type: 'tool_use', id: part.id, name: part.name, input: inputOf(part) }]
    case 'search':
      return searchBlocks(part)
    case 'opaque':
      return [{ type: 'redacted_thinking', data: writeSeal({ ...defined({ by: part.by }), body: part.body }) ?? '' }]
    case 'tool_result':
      return []
    default:
      return mediaBlocks(part)
  }
}

/** Arguments as the object this API demands; words that are no JSON object are kept under `input`. */
export function inputOf({ arguments: text }: ToolCallPart): JsonObject {
  try {
    const value: unknown = JSON.parse(text || '{}')
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) return value as JsonObject
  } catch {
    // Models do write broken JSON; the client sees what they wrote.
  }
  return { input: text }
}

/** A seal on a call travels before it in a block of its own: this API has no place for one. */
export function callSeal({ id, signature, by }: ToolCallPart): JsonObject[] {
  if (signature === undefined) return []
  return [{ type: 'redacted_thinking', data: writeSeal({ signature, call: id, ...defined({ by }) }) ?? '' }]
}

/** A seal on a text, likewise. */
export function textSeal({ signature, by }: TextPart, position: number): JsonObject[] {
  if (signature === undefined) return []
  return [{ type: 'redacted_thinking', data: writeSeal({ signature, text: position, ...defined({ by }) }) ?? '' }]
}

/** A source in the form of a web search citation. */
export function citationOf({ url, title, cited_text }: Citation): JsonObject {
  return {
    type: 'web_search_result_location',
    url: url ?? '',
    title: title ?? null,
    cited_text: cited_text ?? '',
    encrypted_index: '',
  }
}

/** A search that the provider ran: the asking and the results. */
export function searchBlocks({ id = 'srvtoolu_search', query, results }: SearchPart): JsonObject[] {
  const input: JsonObject = query === undefined ? {} : { query }
  const content = Array.isArray(results) ? results : []
  return [
    { type: 'server_tool_use', id, name: 'web_search', input },
    { type: 'web_search_tool_result', tool_use_id: id, content },
  ]
}

/** Why it ended, in this API's words. */
export function stopOf(reply: Pick<Reply, 'finish' | 'stop_sequence'>): JsonObject {
  const { finish, stop_sequence } = reply
  if (finish === 'stop' && stop_sequence !== undefined) return { stop_reason: 'stop_sequence', stop_sequence }
  return { stop_reason: stopReasons[finish], stop_sequence: null }
}

const stopReasons: { readonly [name in Finish]: string } = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'refusal',
  refusal: 'refusal',
  pause: 'pause_turn',
  error: 'end_turn',
}

/** Usage in this API's counts: the input without what the cache gave or took; `cost` in USD when it is known. */
export function writeUsage(usage: Usage, costUsd: number | undefined): JsonObject {
  const { cache_read = 0, cache_write_5m = 0, cache_write_1h = 0, searches } = usage
  return {
    input_tokens: promptTokens(usage) - cache_read - cache_write_5m - cache_write_1h,
    cache_creation_input_tokens: cache_write_5m + cache_write_1h,
    cache_read_input_tokens: cache_read,
    cache_creation: { ephemeral_5m_input_tokens: cache_write_5m, ephemeral_1h_input_tokens: cache_write_1h },
    output_tokens: completionTokens(usage),
    ...(usage.reasoning !== undefined && { output_tokens_details: { thinking_tokens: usage.reasoning } }),
    server_tool_use: searches ? { web_search_requests: searches, web_fetch_requests: 0 } : null,
    service_tier: null,
    ...defined({ cost: costUsd }),
  }
}

/** A message id of this API: the provider's own when it has this form. */
export function messageId(id: string): string {
  return id.startsWith('msg_') ? id : `msg_${id.replace(/[^a-zA-Z0-9_-]/g, '')}`
}

function mediaBlocks(part: MediaPart): JsonObject[] {
  const { data, media_type, url, transcript } = part
  if (part.type === 'image' && data !== undefined) {
    return [{ type: 'image', source: { type: 'base64', media_type: media_type ?? 'image/png', data } }]
  }
  if (part.type === 'image' && url !== undefined) return [{ type: 'image', source: { type: 'url', url } }]
  return transcript === undefined ? [] : [{ type: 'text', text: transcript, citations: null }]
}
