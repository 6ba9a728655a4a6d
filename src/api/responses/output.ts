import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { Citation, MediaPart, Part, ReasoningPart, SearchPart, TextPart, ToolCallPart } from '../../core/parts.ts'
import { defined } from '../check.ts'
import { type ForeignSignature, writeForeignSignature } from '../foreign-signature.ts'

/**
 * What an output item is made of: texts and refusals in a row are one message, every other part an item of its own, and
 * so is a seal that has no place in the item before. `logprobs` are those of each text, by content index.
 */
export type OutputGroup = { kind: ItemKind; parts: Part[]; seal?: ForeignSignature; logprobs?: JsonObject[][] }

/** Kinds of items by the prefix of their ids. */
export type ItemKind = 'msg' | 'rs' | 'fc' | 'ctc' | 'ws' | 'ig'

/** How an item ends. */
export type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

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
  for (const part of parts.map(inWords)) {
    const kind = kindOf(part)
    if (!kind) continue
    const last = groups.at(-1)
    if (kind === 'msg' && last?.kind === 'msg') last.parts.push(part)
    else groups.push({ kind, parts: [part] })
  }
  return groups.flatMap((group) => [group, ...signatureGroups(group)])
}

/** Sound has no item in an output: its words are a text. */
export function inWords(part: Part): Part {
  return part.type === 'audio' && part.transcript ? { type: 'text', text: part.transcript } : part
}

/** Seals that have no place in their item travel in items of reasoning right after it. */
export function signatureGroups({ kind, parts }: OutputGroup): OutputGroup[] {
  return parts.flatMap((part, index) => {
    const seal = sealOf(part, index)
    return kind === 'rs' || !seal ? [] : [{ kind: 'rs' as const, parts: [], seal }]
  })
}

function sealOf(part: Part, text: number): ForeignSignature | undefined {
  if (part.type === 'search') {
    const { id, by, results } = part
    return results === undefined || actionOf(part) ? undefined : { ...defined({ by, search: id ?? '' }), body: results }
  }
  if (part.type !== 'tool_call' && part.type !== 'text') return undefined
  const { signature, by } = part
  if (signature === undefined) return undefined
  const owner = part.type === 'tool_call' ? { call: part.id } : { text }
  return { ...owner, ...(defined({ signature, by }) as ForeignSignature) }
}

/** An item. `sources` tells whether the client asked for the addresses that a search found. */
export function writeItem(group: OutputGroup, id: string, status: ItemStatus, sources: boolean): JsonObject {
  const { kind, parts, seal, logprobs = [] } = group
  const [part] = parts
  if (seal) return { id, type: 'reasoning', summary: [], encrypted_content: writeForeignSignature(seal) ?? null }
  if (kind === 'msg') {
    const content = parts.map((one, index) => contentPart(one, logprobs[index]))
    return { id, type: 'message', status, role: 'assistant', content }
  }
  if (part?.type === 'search') return writeSearch(part, id, status, sources)
  if (part?.type === 'tool_call') return writeCall(part, id, status)
  if (part?.type === 'image') return writeImage(part, id, status)
  return { id, type: 'reasoning', ...reasoningMembers(part as Part) }
}

/** A text or a refusal as a part of a message. */
export function contentPart(part: Part, logprobs: JsonObject[] = []): JsonObject {
  if (part.type === 'refusal') return { type: 'refusal', refusal: part.text }
  const { text = '', citations = [] } = part as TextPart
  return { type: 'output_text', text, annotations: citations.map((one) => annotationOf(one, text)), logprobs }
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
  if (part.type === 'opaque') {
    return {
      summary: [],
      encrypted_content: writeForeignSignature({ ...defined({ by: part.by }), body: part.body }) ?? null,
    }
  }
  const { text, summary, by, signature, encrypted, id } = part as ReasoningPart
  // The words of a summary in the seal tell that they are one.
  const sealed = writeForeignSignature(
    defined({ by, signature, encrypted, id, summary: summary || undefined }) as ForeignSignature,
  )
  const said = [text, summary].filter((words) => words)
  return {
    summary: said.map((words) => ({ type: 'summary_text', text: words as string })),
    ...defined({ encrypted_content: sealed }),
  }
}

function writeCall({ id: call_id, name, arguments: said, kind }: ToolCallPart, id: string, status: string): JsonObject {
  return kind === 'custom'
    ? { id, type: 'custom_tool_call', status, call_id, name, input: said }
    : { id, type: 'function_call', status, call_id, name, arguments: said }
}

function writeImage({ data, media_type }: MediaPart, id: string, status: ItemStatus): JsonObject {
  const format = media_type?.startsWith('image/') ? media_type.slice('image/'.length) : undefined
  const told = status === 'in_progress' ? null : (data ?? null)
  return {
    id,
    type: 'image_generation_call',
    status: status === 'incomplete' ? 'failed' : status,
    ...defined({ output_format: format }),
    result: told,
  }
}

function writeSearch(part: SearchPart, id: string, status: ItemStatus, sources: boolean): JsonObject {
  const { query = '', results } = part
  const found = sources ? addressesIn(results) : []
  const searched = { type: 'search', query, ...(found.length > 0 && { sources: found }) }
  const ended = part.status === 'failed' || status === 'incomplete' ? 'failed' : 'completed'
  return {
    id,
    type: 'web_search_call',
    status: status === 'in_progress' ? status : ended,
    action: actionOf(part) ?? searched,
  }
}

const actions: ReadonlySet<Json | undefined> = new Set(['search', 'open_page', 'find_in_page'])

/** What a search did, when its maker tells that in the words of this API. */
function actionOf({ results }: SearchPart): JsonObject | undefined {
  return isObject(results) && actions.has(results.type) ? results : undefined
}

function addressesIn(results: Json | undefined): JsonObject[] {
  const listed = Array.isArray(results) ? results : []
  return listed.flatMap((one) => (isObject(one) && typeof one.url === 'string' ? [{ type: 'url', url: one.url }] : []))
}
