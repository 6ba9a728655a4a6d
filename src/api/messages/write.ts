import { isObject, type JsonObject, parseJson } from '../../core/json.ts'
import type { Citation, MediaPart, Part, ReasoningPart, ToolCallPart } from '../../core/parts.ts'
import type { Reply } from '../../core/reply.ts'
import { defined } from '../check.ts'
import type { ReplyFacts } from '../client-api.ts'
import { replyInClientForm } from '../client-form.ts'
import { type ForeignSignature, writeForeignSignature } from '../foreign-signature.ts'
import { stopOf, writeCallId, writeUsage } from './reply-members.ts'
import { searchBlocks } from './searches.ts'

/** A neutral reply as a message of this API, with `usage.cost` in USD when it is known. */
export function writeReply(given: Reply, { model, usage, costUsd, request }: ReplyFacts): JsonObject {
  const reply = replyInClientForm(given, request)
  let texts = 0
  const content = reply.parts.flatMap((part) => {
    const blocks = wholeBlocks(part)
    const position = blocks.some(({ type }) => type === 'text') ? texts++ : -1
    return [...blocks, ...signatureBlocks(part, position)]
  })
  return {
    id: messageId(reply.id),
    type: 'message',
    role: 'assistant',
    model,
    content,
    container: null,
    diagnostics: null,
    ...stopOf(reply),
    usage: writeUsage(usage, costUsd),
  }
}

/** The blocks of one part, without its signature. */
export function wholeBlocks(part: Part): JsonObject[] {
  switch (part.type) {
    case 'text':
      return part.text === '' && !part.citations?.length ? [] : [textBlock(part.text, part.citations)]
    case 'refusal':
      return [textBlock(part.text)]
    case 'reasoning':
      return [reasoningBlock(part)]
    case 'tool_call':
      return [callBlock(part)]
    case 'search':
      return searchBlocks(part)
    case 'opaque':
      return [foreignBlock({ ...defined({ by: part.by }), body: part.body })]
    case 'tool_result':
      return []
    default:
      return mediaBlocks(part)
  }
}

/**
 * The signature of a call or text, in a block of its own after it: this API has no field for it. `position` counts the
 * blocks of text before the text's own; -1 when it has none.
 */
export function signatureBlocks(part: Part, position: number): JsonObject[] {
  if ((part.type !== 'tool_call' && part.type !== 'text') || part.signature === undefined) return []
  const { signature, by } = part
  const owner = part.type === 'tool_call' ? { call: part.id } : { text: position }
  return [foreignBlock({ signature, ...owner, ...defined({ by }) })]
}

/** A block of text. */
export function textBlock(text: string, citations?: readonly Citation[]): JsonObject {
  return { type: 'text', text, citations: citations?.length ? citations.map(citationOf) : null }
}

/** A call of a tool that the client runs. */
export function callBlock(call: ToolCallPart): JsonObject {
  const { id, form } = call
  const { name } = form ?? call
  const input = inputOf(call)
  const toolset = form?.namespace === undefined ? {} : { toolset_name: form.namespace }
  return { type: 'tool_use', id: writeCallId(id), name, ...toolset, input, caller: { type: 'direct' } }
}

/** Arguments as the object that this API requires. Models do write broken JSON: the client sees it as `input`. */
function inputOf({ arguments: text }: ToolCallPart): JsonObject {
  const input = text === '' ? {} : parseJson(text)
  return isObject(input) ? input : { input: text }
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

/** A message id of this API: the provider's own when it has this form. */
export function messageId(id: string): string {
  return id.startsWith('msg_') ? id : `msg_${id.replace(/[^a-zA-Z0-9_-]/g, '')}`
}

function foreignBlock(signature: ForeignSignature): JsonObject {
  return { type: 'redacted_thinking', data: writeForeignSignature(signature) ?? '' }
}

function mediaBlocks(part: MediaPart): JsonObject[] {
  const { data, media_type, url, transcript } = part
  if (part.type === 'image' && data !== undefined) {
    return [{ type: 'image', source: { type: 'base64', media_type: media_type ?? 'image/png', data } }]
  }
  if (part.type === 'image' && url !== undefined) return [{ type: 'image', source: { type: 'url', url } }]
  return transcript === undefined ? [] : [textBlock(transcript)]
}

/** Reasoning as a block of this API: readable text with a signature, or a redacted block when there is none. */
export function reasoningBlock(part: ReasoningPart): JsonObject {
  const { text, summary, by, signature, encrypted, id } = part
  const thinking = text ?? summary ?? ''
  // An empty summary in the signature marks the readable text as the summary.
  const marked = text === undefined && thinking !== '' ? '' : summary
  const foreign = writeForeignSignature({ ...defined({ by, signature, encrypted, id, summary: marked }) }) ?? ''
  return thinking === '' && signature === undefined
    ? { type: 'redacted_thinking', data: foreign }
    : { type: 'thinking', thinking, signature: foreign }
}
