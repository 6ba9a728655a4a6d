import { expect } from 'vitest'
import type { Citation } from '../../src/core/parts.ts'
import { type Recording, recordedEvents } from '../helpers/recordings.ts'

// The independent reader of generateContent: what a recording says, without the mappings.

/** What a recorded answer says. */
export type Facts = {
  text: string
  reasoning: string
  calls: { name: string; arguments: unknown; id: string | undefined }[]
  seals: string[]
  citations: Citation[]
  searches: string[]
  media: { data: string | undefined; media_type: string }[]
  opaque: unknown[]
  finish: string
  raw: string | undefined
  usage: { [name: string]: number }
  logprobs: [string, number][]
  model: string
  id: string
}

// biome-ignore lint/suspicious/noExplicitAny: recorded bodies have the shape of whoever sent them.
export type Chunk = any

/** Whether the recording is a stream: server-sent events, or an array of them. */
export function isStream({ response }: Recording): boolean {
  return response.sse !== undefined || Array.isArray(response.body)
}

/** The events of a stream, or the whole answer as the only one. */
export function chunksOf(recording: Recording): Chunk[] {
  return isStream(recording) ? recordedEvents(recording).map(({ data }) => JSON.parse(data)) : [recording.response.body]
}

/** What the events of an answer say together. */
export function readIndependently(chunks: Chunk[]): Facts {
  const candidates = chunks.flatMap((chunk) => chunk.candidates?.[0] ?? [])
  const parts: Chunk[] = candidates.flatMap((candidate) => candidate.content?.parts ?? [])
  const answer = parts.filter((part) => typeof part.text === 'string' && !part.thought)
  const text = answer.map((part) => part.text).join('')
  const calls = parts.flatMap(({ functionCall: call }) => call ?? [])
  const grounding = candidates.map((candidate) => candidate.groundingMetadata).findLast((one) => one?.groundingChunks)
  const blocked = chunks.map((chunk) => chunk.promptFeedback?.blockReason).find(Boolean)
  const raw = blocked ?? candidates.map(({ finishReason }) => finishReason).findLast(Boolean)
  const last = chunks.at(-1)
  return {
    text,
    reasoning: parts.flatMap((part) => (part.thought ? (part.text ?? '') : [])).join(''),
    calls: calls.map(({ name, args = {}, id }) => ({ name, arguments: args, id })),
    seals: parts.flatMap((part) => (part.thoughtSignature && !isOpaque(part) ? part.thoughtSignature : [])),
    citations: citationsOf(grounding, text),
    searches: grounding?.webSearchQueries ?? [],
    media: parts.flatMap(({ inlineData: inline }) =>
      inline ? { data: inline.data, media_type: inline.mimeType } : [],
    ),
    opaque: parts.filter(isOpaque),
    finish: calls.length > 0 && raw === 'STOP' ? 'tool_calls' : (finishes[raw] ?? 'unknown'),
    raw,
    usage: usageOf(last, grounding),
    logprobs: candidates.flatMap(({ logprobsResult: result }) =>
      (result?.chosenCandidates ?? []).map((chosen: Chunk) => [chosen.token, chosen.logProbability]),
    ),
    model: last.modelVersion,
    id: last.responseId,
  }
}

const finishes: { [reason: string]: string } = {
  STOP: 'stop',
  MAX_TOKENS: 'length',
  SAFETY: 'content_filter',
  MODEL_ARMOR: 'content_filter',
  UNEXPECTED_TOOL_CALL: 'error',
}

function isOpaque(part: Chunk): boolean {
  return part.executableCode || part.codeExecutionResult || part.toolCall || part.toolResponse
}

/** Byte offsets are turned over bytes; where they miss the words they cite, the words themselves are looked for. */
function citationsOf(grounding: Chunk, text: string): Citation[] {
  const bytes = Buffer.from(text)
  const codePoints = (until: number) => [...bytes.subarray(0, until).toString()].length
  return (grounding?.groundingSupports ?? []).flatMap(({ segment, groundingChunkIndices }: Chunk) => {
    const { startIndex = 0, endIndex, text: cited_text } = segment
    const right = bytes.subarray(startIndex, endIndex).toString() === cited_text
    const found = right ? startIndex : bytes.indexOf(cited_text)
    const [start, end] = [codePoints(found), codePoints(found + Buffer.byteLength(cited_text))]
    const sources: Chunk[] = groundingChunkIndices.map((index: number) => grounding.groundingChunks[index])
    return sources.flatMap(({ web }) => (web ? { url: web.uri, title: web.title, cited_text, start, end } : []))
  })
}

function usageOf({ usageMetadata: counts = {}, modelVersion }: Chunk, grounding: Chunk): Facts['usage'] {
  const count = (side: string, modality: string): number =>
    counts[`${side}TokensDetails`]?.find((one: Chunk) => one.modality === modality)?.tokenCount ?? 0
  const known = count('cache', 'AUDIO')
  const inputAudio = count('prompt', 'AUDIO') - known
  const [outputAudio, outputImages] = [count('candidates', 'AUDIO'), count('candidates', 'IMAGE')]
  const { promptTokenCount: prompt, cachedContentTokenCount: cached = 0, toolUsePromptTokenCount: tools = 0 } = counts
  const queries = grounding?.webSearchQueries?.length ?? 0
  const usage = {
    input: (prompt ?? 0) + tools - cached - inputAudio,
    input_audio: inputAudio,
    cache_read: cached - known,
    cache_read_audio: known,
    output: (counts.candidatesTokenCount ?? 0) - outputAudio - outputImages,
    output_audio: outputAudio,
    output_image: outputImages,
    reasoning: counts.thoughtsTokenCount ?? 0,
    searches: modelVersion.startsWith('gemini-2') ? Math.min(queries, 1) : queries,
  }
  const total = Object.values(usage).reduce((sum, one) => sum + one, 0) - usage.searches
  expect(total, 'classes are disjoint and complete').toBe(counts.totalTokenCount ?? 0)
  return nonZero(usage)
}

/** Counts without those that are zero and without how the call was served. */
export function nonZero(usage: object): Facts['usage'] {
  return Object.fromEntries(Object.entries(usage).filter(([name, count]) => name !== 'modes' && count !== 0))
}

/** The whole answer that the chunks of a stream add up to: neighbouring texts are one. */
export function joined(chunks: Chunk[]): Chunk {
  const candidates = chunks.flatMap((chunk) => chunk.candidates?.[0] ?? [])
  const parts: Chunk[] = []
  for (const part of candidates.flatMap((candidate) => candidate.content?.parts ?? [])) {
    const last = parts.at(-1)
    if (last?.text === undefined || part.text === undefined || last.thought !== part.thought) parts.push({ ...part })
    else Object.assign(last, part, { text: last.text + part.text })
  }
  const last = chunks.at(-1)
  return { ...last, ...(candidates.length > 0 && { candidates: [{ ...candidates.at(-1), content: { parts } }] }) }
}
