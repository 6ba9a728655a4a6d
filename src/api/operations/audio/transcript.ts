import { isObject, type Json, type JsonObject } from '../../../core/json.ts'
import { completionTokens, promptTokens, type Usage } from '../../../core/usage.ts'
import { onlyNumber, onlyString } from '../../check.ts'
import type { OperationFacts } from '../../operation-api.ts'
import { unreadableReply } from '../shared.ts'
import { languageOf } from './languages.ts'
import { subtitles } from './subtitles.ts'
import { segmentsOf, wordsOf } from './transcript-times.ts'

/** A provider's transcript in the form that the client wants. Throws RouterError for one without a text. */
export function writeTranscript(reply: JsonObject, facts: OperationFacts): JsonObject | string {
  const text = textOf(reply)
  const { response_format: format } = facts.request.fields
  const duration = lengthOf(reply, facts)
  const usage = transcriptUsage(facts)
  switch (format) {
    case 'text':
      return `${text}\n`
    case 'srt':
    case 'vtt':
      return subtitles(segmentsOf(reply, duration), format)
    case 'verbose_json':
      return { ...verbose(reply, duration, facts.request.fields), usage }
    case 'diarized_json':
      return { ...withoutTimes(reply), task: 'transcribe', duration, text, segments: spoken(reply, duration), usage }
    default:
      return { ...withoutTimes(reply), text, usage }
  }
}

/** The text of a transcript. Throws RouterError. */
export function textOf({ text }: JsonObject): string {
  if (typeof text !== 'string') throw unreadableReply('a transcript without a text')
  return text
}

/** What a transcript cost: in tokens where tokens were counted, else in seconds. */
export function transcriptUsage({ usage, costUsd }: Pick<OperationFacts, 'usage' | 'costUsd'>): JsonObject {
  return { ...countsOf(usage), ...(costUsd !== undefined && { cost: costUsd }) }
}

function countsOf(usage: Usage): JsonObject {
  const [input, output] = [promptTokens(usage), completionTokens(usage)]
  if (input + output === 0) return { type: 'duration', seconds: usage.seconds ?? 0 }
  const audio = usage.input_audio ?? 0
  return {
    type: 'tokens',
    input_tokens: input,
    output_tokens: output,
    total_tokens: input + output,
    input_token_details: { audio_tokens: audio, text_tokens: input - audio },
  }
}

/** A transcript without what only a verbose one has. */
export function withoutTimes(reply: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(reply).filter(([name]) => !verboseMembers.has(name)))
}

const verboseMembers: ReadonlySet<string> = new Set([
  'object',
  'model',
  'usage',
  'task',
  'language',
  'duration',
  'words',
  'segments',
])

function verbose(reply: JsonObject, duration: number, fields: JsonObject): JsonObject {
  const { timestamp_granularities: asked = ['segment'] } = fields
  const wants = (granularity: string) => Array.isArray(asked) && asked.includes(granularity)
  return {
    ...withoutTimes(reply),
    task: onlyString(reply.task) ?? 'transcribe',
    language: languageName(onlyString(reply.language) ?? onlyString(fields.language)),
    duration,
    text: textOf(reply),
    ...(wants('word') && { words: wordsOf(reply) }),
    ...(wants('segment') && { segments: segmentsOf(reply, duration).map(filled) }),
  }
}

/** All members of a segment as the API has them. */
function filled(segment: JsonObject, index: number): JsonObject {
  return { ...emptySegment, ...segment, id: index }
}

const emptySegment = {
  id: 0,
  seek: 0,
  start: 0,
  end: 0,
  text: '',
  tokens: [],
  temperature: 0,
  avg_logprob: 0,
  compression_ratio: 0,
  no_speech_prob: 0,
}

/** The segments of who spoke. */
function spoken(reply: JsonObject, duration: number): JsonObject[] {
  return segmentsOf(reply, duration).map((segment, index) => ({
    type: 'transcript.text.segment',
    ...segment,
    id: onlyString(segment.id) ?? `seg_${index}`,
    speaker: onlyString(segment.speaker) ?? 'A',
  }))
}

/** Seconds: as the provider says, else as the file is, else until its last word. */
function lengthOf(reply: JsonObject, { request, usage }: OperationFacts): number {
  const { audio } = request
  const told = onlyNumber(reply.duration) ?? (audio?.exact ? audio.seconds : undefined)
  const ends = [reply.segments, reply.words].flat().map(endOf)
  return told ?? (Math.max(0, ...ends) || usage.seconds) ?? 0
}

function endOf(part: Json | undefined): number {
  return isObject(part) ? (onlyNumber(part.end) ?? 0) : 0
}

/** As OpenAI names languages: `english`. */
function languageName(language: string | undefined): string {
  if (language === undefined || !/^[a-z]{2,3}(?:-[a-z\d]+)*$/i.test(language)) return language ?? 'unknown'
  return languageOf(language)?.toLowerCase() ?? language
}
