import type { JsonObject } from '../../core/json.ts'
import type { Citation, Part, ReasoningPart, SearchPart, TextPart, ToolCallPart } from '../../core/parts.ts'
import { completionTokens, promptTokens, type Usage } from '../../core/usage.ts'
import { defined } from '../check.ts'
import { type Sealed, writeSeal } from '../seal.ts'

/** What an output item is made of: texts and refusals in a row are one message, every other part an item of its own. */
export type OutputGroup = { kind: ItemKind; parts: Part[] }

/** Kinds of items by the prefix of their ids. */
export type ItemKind = 'msg' | 'rs' | 'fc' | 'ctc' | 'ws' | 'ig'

/** The kind of item a part belongs to; undefined when it has no place in an output. */
export function kindOf(part: Part): ItemKind | undefined {
  if (part.type === 'text' || part.type === 'refusal') return 'msg'
  if (part.type === 'reasoning' || part.type === 'opaque') return 'rs'
  if (part.type === 'tool_call') return part.kind === 'custom' ? 'ctc' : 'fc'
  if (part.type === 'search') return 'ws'
  return part.type === 'image' && part.data !== undefined ? 'ig' : undefined
}

/** The parts of a reply as they become items. */
export function groupsOf(parts: readonly Part[]): OutputGroup[] {
  const groups: OutputGroup[] = []
  for (const part of parts) {
    const kind = kindOf(part)
    if (!kind) continue
    const last = groups.at(-1)
    if (kind === 'msg' && last?.kind === 'msg') last.parts.push(part)
    else groups.push({ kind, parts: [part] })
    // A seal on a call has no place in its item: it travels in an item of reasoning after it.
    if (part.type === 'tool_call' && part.signature !== undefined) groups.push({ kind: 'rs', parts: [part] })
  }
  return groups
}

/** A finished item. */
export function writeItem({ kind, parts }: OutputGroup, id: string, status = 'completed'): JsonObject {
  const [part] = parts
  if (kind === 'msg') return { id, type: 'message', status, role: 'assistant', content: parts.map(contentPart) }
  if (part?.type === 'search') return writeSearch(part, id, status)
  if (part?.type === 'tool_call' && kind !== 'rs') return writeCall(part, id, status)
  if (part?.type === 'image') return { id, type: 'image_generation_call', status, result: part.data ?? '' }
  return { id, type: 'reasoning', ...reasoningMembers(part as Part) }
}

/** A text or a refusal as a part of a message. */
export function contentPart(part: Part): JsonObject {
  if (part.type === 'refusal') return { type: 'refusal', refusal: part.text }
  const { text = '', citations = [] } = part as TextPart
  return { type: 'output_text', text, annotations: citations.map((one) => annotationOf(one, text)), logprobs: [] }
}

/** A source of a text; one without a place holds for the whole text. */
export function annotationOf({ url, title, start, end }: Citation, text: string): JsonObject {
  return {
    type: 'url_citation',
    url: url ?? '',
    title: title ?? '',
    start_index: start ?? 0,
    end_index: end ?? [...text].length,
  }
}

/** What a reasoning item says: readable words as its summary, seals as its encrypted content. */
export function reasoningMembers(part: Part): JsonObject {
  if (part.type === 'tool_call') {
    const { id, signature, by } = part
    return { summary: [], encrypted_content: writeSeal(defined({ call: id, signature, by }) as Sealed) ?? null }
  }
  if (part.type === 'opaque') {
    return { summary: [], encrypted_content: writeSeal({ ...defined({ by: part.by }), body: part.body }) ?? null }
  }
  const { text, summary, by, signature, encrypted, id } = part as ReasoningPart
  const words = text ?? summary
  const both = text !== undefined && summary !== undefined
  const kept = { by, signature, encrypted, id, summary: both || text === undefined ? summary : undefined }
  return {
    summary: words ? [{ type: 'summary_text', text: words }] : [],
    ...defined({ encrypted_content: writeSeal(defined(kept) as Sealed) }),
  }
}

function writeCall({ id: call_id, name, arguments: said, kind }: ToolCallPart, id: string, status: string): JsonObject {
  return kind === 'custom'
    ? { id, type: 'custom_tool_call', status, call_id, name, input: said }
    : { id, type: 'function_call', status, call_id, name, arguments: said }
}

function writeSearch({ query }: SearchPart, id: string, status: string): JsonObject {
  return { id, type: 'web_search_call', status, action: { type: 'search', query: query ?? '' } }
}

/** Usage in this API's totals; `cost` in USD when it is known. */
export function writeUsage(usage: Usage, costUsd: number | undefined): JsonObject {
  const input = promptTokens(usage)
  const output = completionTokens(usage)
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: usage.cache_read ?? 0,
      cache_write_tokens: (usage.cache_write_5m ?? 0) + (usage.cache_write_1h ?? 0),
    },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
    total_tokens: input + output,
    ...defined({ cost: costUsd }),
  }
}
