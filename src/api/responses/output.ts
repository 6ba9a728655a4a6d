import { codePoints } from '../../core/citations.ts'
import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { Citation, MediaPart, Part, ReasoningPart, SearchPart, TextPart, ToolCallPart } from '../../core/parts.ts'
import { defined } from '../check.ts'
import { type ForeignSignature, writeForeignSignature } from '../foreign-signature.ts'
import { isNativeCall, type NativePrefix, nativeCall } from './native-tools.ts'

/**
 * The parts of an output item: consecutive texts and refusals are one message, every other part is an item of its own,
 * and so is a signature that the item before has no field for. `logprobs` are those of each text, by content index.
 */
export type OutputGroup = { kind: ItemKind; parts: Part[]; signature?: ForeignSignature; logprobs?: JsonObject[][] }

/** Kinds of items by the prefix of their ids. */
export type ItemKind = 'msg' | 'rs' | 'fc' | 'ctc' | 'ws' | 'ig' | NativePrefix

/** The status of an item. */
export type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

/** The kind of item for a part; undefined when an output has none for it. */
export function kindOf(part: Part): ItemKind | undefined {
  if (part.type === 'text' || part.type === 'refusal') return 'msg'
  if (part.type === 'reasoning' || part.type === 'opaque') return 'rs'
  if (part.type === 'tool_call') return nativeCall(part)?.tool.prefix ?? (part.kind === 'custom' ? 'ctc' : 'fc')
  if (part.type === 'search') return 'ws'
  return part.type === 'image' && part.data !== undefined ? 'ig' : undefined
}

/** The parts of a reply, grouped into items. */
export function groupsOf(parts: readonly Part[]): OutputGroup[] {
  const groups: OutputGroup[] = []
  for (const part of parts.map(spokenText)) {
    const kind = kindOf(part)
    if (!kind) continue
    const last = groups.at(-1)
    if (kind === 'msg' && last?.kind === 'msg') last.parts.push(part)
    else groups.push({ kind, parts: [part] })
  }
  return groups.flatMap((group) => [group, ...signatureGroups(group)])
}

/** Returns audio as its transcript, a text: the API has no output item for audio. Any other part is returned as it is. */
export function spokenText(part: Part): Part {
  return part.type === 'audio' && part.transcript ? { type: 'text', text: part.transcript } : part
}

/** Signatures that their item has no field for become reasoning items directly after it. */
export function signatureGroups({ kind, parts }: OutputGroup): OutputGroup[] {
  return parts.flatMap((part, index) => {
    const signature = signatureOf(part, index)
    return kind === 'rs' || !signature ? [] : [{ kind: 'rs' as const, parts: [], signature }]
  })
}

function signatureOf(part: Part, text: number): ForeignSignature | undefined {
  if (part.type === 'search') {
    const { id, by, results } = part
    return results === undefined || actionOf(part) ? undefined : { ...defined({ by, search: id ?? '' }), body: results }
  }
  if (part.type !== 'tool_call' && part.type !== 'text') return undefined
  const { signature, by } = part
  if (signature === undefined) return undefined
  const owner = part.type === 'tool_call' ? { call: part.id } : { text }
  return { ...owner, ...defined({ signature, by }) }
}

/** An item. `sources`: whether the client asked for the URLs that a search found. */
export function writeItem(group: OutputGroup, id: string, status: ItemStatus, sources: boolean): JsonObject {
  const { kind, parts, signature, logprobs = [] } = group
  const [part] = parts
  if (signature) {
    return { id, type: 'reasoning', summary: [], encrypted_content: writeForeignSignature(signature) ?? null }
  }
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
  const whole = citations.length > 0 ? codePoints(text) : 0
  return { type: 'output_text', text, annotations: citations.map((one) => annotationOf(one, whole)), logprobs }
}

/** Returns a citation; one without a position cites the whole text, whose length in characters is given. */
export function annotationOf({ url, title, start, end }: Citation, whole: number): JsonObject {
  return {
    type: 'url_citation',
    url: url ?? '',
    title: title ?? '',
    start_index: start ?? 0,
    end_index: end ?? whole,
  }
}

/** The members of a reasoning item: readable text as its summary, signatures as its encrypted content. */
function reasoningMembers(part: Part): JsonObject {
  if (part.type === 'opaque') {
    return {
      summary: [],
      encrypted_content: writeForeignSignature({ ...defined({ by: part.by }), body: part.body }) ?? null,
    }
  }
  const { text, summary, by, signature, encrypted, id } = part as ReasoningPart
  // Repeated in the signature, so that a summary can be distinguished from the text when it comes back.
  const foreign = writeForeignSignature(defined({ by, signature, encrypted, id, summary: summary || undefined }))
  const texts = [text, summary].filter((one) => one !== undefined && one !== '')
  return {
    summary: texts.map((one) => ({ type: 'summary_text', text: one })),
    ...defined({ encrypted_content: foreign }),
  }
}

function writeCall(part: ToolCallPart, id: string, status: string): JsonObject {
  const { id: call_id, arguments: input, kind } = part
  const native = nativeCall(part)
  if (native) return { id, type: native.tool.call, status, call_id, ...native.members }
  return kind === 'custom'
    ? { id, type: 'custom_tool_call', status, call_id, ...calledName(part), input }
    : { id, type: 'function_call', status, call_id, ...calledName(part), arguments: input }
}

/** The name of a called tool as the client has it, and the namespace that it belongs to. */
export function calledName(part: ToolCallPart): { name: string; namespace?: string } {
  const { form } = part
  if (!form || isNativeCall(part)) return { name: part.name }
  return { name: form.name, ...defined({ namespace: form.namespace }) }
}

function writeImage({ data, media_type }: MediaPart, id: string, status: ItemStatus): JsonObject {
  const format = media_type?.startsWith('image/') ? media_type.slice('image/'.length) : undefined
  const result = status === 'in_progress' ? null : (data ?? null)
  return {
    id,
    type: 'image_generation_call',
    status: status === 'incomplete' ? 'failed' : status,
    ...defined({ output_format: format }),
    result,
  }
}

function writeSearch(part: SearchPart, id: string, status: ItemStatus, sources: boolean): JsonObject {
  const { query = '', results } = part
  const found = sources ? urlsIn(results) : []
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

/** The action of a search, when its provider reports it in the form of this API. */
function actionOf({ results }: SearchPart): JsonObject | undefined {
  return isObject(results) && actions.has(results.type) ? results : undefined
}

function urlsIn(results: Json | undefined): JsonObject[] {
  const listed = Array.isArray(results) ? results : []
  return listed.flatMap((one) => (isObject(one) && typeof one.url === 'string' ? [{ type: 'url', url: one.url }] : []))
}

/** The tokens of log probabilities, with all the members that this API defines for them. */
export function tokensOf(logprobs: Json | undefined): JsonObject[] {
  const { content } = isObject(logprobs) ? logprobs : {}
  return (Array.isArray(content) ? content : []).filter(isObject).map((token) => ({
    ...writeToken(token),
    top_logprobs: (Array.isArray(token.top_logprobs) ? token.top_logprobs : []).filter(isObject).map(writeToken),
  }))
}

/** Returns the tokens of a message, by content index: each text takes as many as it consists of, the last one takes the rest. */
export function shareTokens(tokens: JsonObject[], parts: readonly Part[]): JsonObject[][] {
  const last = parts.findLastIndex(({ type }) => type === 'text')
  return parts.map((part, index) => {
    if (part.type !== 'text') return []
    if (index === last) return tokens.splice(0)
    const taken: JsonObject[] = []
    for (let length = 0; length < part.text.length; ) {
      const token = tokens.shift()
      if (!token) break
      length += String(token.token).length
      taken.push(token)
    }
    return taken
  })
}

function writeToken({ token, logprob, bytes }: JsonObject): JsonObject {
  const text = typeof token === 'string' ? token : ''
  return { token: text, logprob: logprob ?? 0, bytes: Array.isArray(bytes) ? bytes : [...Buffer.from(text)] }
}
