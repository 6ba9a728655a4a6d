import { codePoints } from '../../core/citations.ts'
import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { Citation, MediaPart, Part, ReasoningPart, ToolCallPart } from '../../core/parts.ts'
import type { Reply } from '../../core/reply.ts'
import type { NeutralRequest } from '../../core/request.ts'
import { defined } from '../check.ts'
import type { ReplyFacts } from '../client-api.ts'
import { replyInClientForm } from '../client-form.ts'
import { foreignPartsOf } from './foreign-parts.ts'
import { endingOf, readsReasoning, writeUsage } from './reply-members.ts'

/** A reply as a chat completion with one choice. */
export function writeReply(given: Reply, { model, usage, costUsd, request }: ReplyFacts): JsonObject {
  const reply = replyInClientForm(given, request)
  const legacy = wantsLegacyCall(request)
  const choice = {
    index: 0,
    message: messageOf(reply.parts, { created: reply.created, legacy, readsReasoning: readsReasoning(request) }),
    logprobs: writeLogprobs(reply.logprobs),
    ...endingOf({ ...reply, raw: reply.finish_raw }, legacy),
  }
  return {
    ...knownExtensions(reply.extensions),
    id: replyId(reply.id),
    object: 'chat.completion',
    created: reply.created,
    model,
    choices: [choice],
    usage: writeUsage(usage, costUsd),
  }
}

/** An id that has a prefix keeps it; any other gets the prefix of this API. */
export function replyId(id: string): string {
  return /^[a-z]+[-_]/i.test(id) ? id : `chatcmpl-${id}`
}

/** Checks whether the client uses the deprecated `functions`: then the reply must use `function_call`. */
export function wantsLegacyCall(request: NeutralRequest | undefined): boolean {
  const body = request?.origin.body
  return body !== undefined && Array.isArray(body.functions) && !Array.isArray(body.tools)
}

/** Log probabilities with every member that the API requires; null when there are none. */
export function writeLogprobs(logprobs: Json | undefined): JsonObject | null {
  if (!isObject(logprobs)) return null
  const tokens = (list: Json | undefined) => (Array.isArray(list) ? list.map(tokenLogprob) : null)
  return { ...logprobs, content: tokens(logprobs.content), refusal: tokens(logprobs.refusal) }
}

function tokenLogprob(token: Json): Json {
  if (!isObject(token)) return token
  const alternatives = Array.isArray(token.top_logprobs) ? token.top_logprobs : []
  return {
    bytes: null,
    ...token,
    top_logprobs: alternatives.map((other) => (isObject(other) ? { bytes: null, ...other } : other)),
  }
}

/** The metadata that a provider reported about the whole reply, as far as this API defines it. */
export function knownExtensions(extensions: JsonObject = {}): JsonObject {
  const { service_tier, ...others } = extensions
  return { ...others, ...(tiers.has(service_tier) && { service_tier }) }
}

const tiers: ReadonlySet<Json | undefined> = new Set(['auto', 'default', 'flex', 'scale', 'priority', 'fast'])

type MessageContext = { created: number; legacy: boolean; readsReasoning: boolean }

function messageOf(parts: readonly Part[], context: MessageContext): JsonObject {
  const texts = parts.filter((part) => part.type === 'text')
  const refusals = parts.filter((part) => part.type === 'refusal')
  const calls = parts.filter((part) => part.type === 'tool_call')
  const reasoning = reasoningContent(parts.filter((part) => part.type === 'reasoning'))
  return {
    role: 'assistant',
    content: texts.length > 0 ? texts.map(({ text }) => text).join('') : null,
    refusal: refusals.length > 0 ? refusals.map(({ text }) => text).join('') : null,
    ...callsOf(calls, context.legacy),
    ...defined({ reasoning_content: reasoning, reasoning: context.readsReasoning ? reasoning : undefined }),
    ...lateMembers(parts),
    ...mediaOf(parts, context.created),
  }
}

function callsOf(calls: readonly ToolCallPart[], legacy: boolean): JsonObject {
  const [first] = calls
  if (!first) return {}
  if (legacy) return { function_call: { name: first.name, arguments: first.arguments } }
  return { tool_calls: calls.map(writeCall) }
}

function writeCall(call: ToolCallPart): JsonObject {
  const { id, name, kind } = call
  const called: JsonObject =
    kind === 'custom'
      ? { id, type: 'custom', custom: { name, input: call.arguments } }
      : { id, type: 'function', function: { name, arguments: call.arguments } }
  return { ...called, ...signatureMembers(call) }
}

/** A call's signature, in the form that Google introduced; without a known provider it could not be returned to one. */
export function signatureMembers({ signature, by }: ToolCallPart): JsonObject {
  return signature && by ? { extra_content: { [by]: { thought_signature: signature } } } : {}
}

/** The text of reasoning, or its summary where the text is not disclosed; parts are separated like paragraphs. */
function reasoningContent(parts: readonly ReasoningPart[]): string | undefined {
  const texts = parts.map(({ text, summary }) => text || summary).filter(Boolean)
  return texts.length > 0 ? texts.join(reasoningBreak) : undefined
}

/** The separator between the reasoning of two parts. */
export const reasoningBreak = '\n\n'

/** Members of a message that can be written only when all parts are known. */
export function lateMembers(parts: readonly Part[]): JsonObject {
  const annotations = annotationsOf(parts)
  return { ...(annotations.length > 0 && { annotations }), ...foreignPartsOf(parts) }
}

/** Citations with their position in the joined content; one without a position cites its whole part. */
function annotationsOf(parts: readonly Part[]): JsonObject[] {
  if (!parts.some((part) => part.type === 'text' && part.citations?.length)) return []
  const annotations: JsonObject[] = []
  let offset = 0
  for (const part of parts) {
    if (part.type !== 'text') continue
    const length = codePoints(part.text)
    for (const citation of part.citations ?? []) annotations.push(...annotationOf(citation, offset, length))
    offset += length
  }
  return annotations
}

/** Writes a citation. This API cites URLs only: a source without one is omitted. */
function annotationOf({ url, title, cited_text, start, end }: Citation, offset: number, length: number): JsonObject[] {
  if (!url) return []
  const url_citation = {
    url,
    title: title ?? url,
    start_index: offset + (start ?? 0),
    end_index: offset + (end ?? length),
    ...defined({ content: cited_text }),
  }
  return [{ type: 'url_citation', url_citation }]
}

/** Time for which audio can be referred to by its id, where the provider does not report it. Seconds. */
const audioLifetimeSeconds = 3_600

/** Audio and images that the model made. */
export function mediaOf(parts: readonly Part[], created: number): JsonObject {
  const media = parts.filter((part): part is MediaPart => part.type === 'audio' || part.type === 'image')
  const audio = media.find(({ type }) => type === 'audio')
  const images = media.filter(({ type }) => type === 'image').map(writeImage)
  return { ...(audio && { audio: writeAudio(audio, created) }), ...(images.length > 0 && { images }) }
}

function writeAudio({ id, data, transcript }: MediaPart, created: number): JsonObject {
  return {
    id: id ?? `audio_${created}`,
    data: data ?? '',
    transcript: transcript ?? '',
    expires_at: created + audioLifetimeSeconds,
  }
}

function writeImage({ url, data, media_type }: MediaPart): JsonObject {
  const address = url ?? `data:${media_type ?? 'image/png'};base64,${data ?? ''}`
  return { type: 'image_url', image_url: { url: address } }
}
