import { isObject, type Json, type JsonObject } from '../../../core/json.ts'
import { completionTokens, promptTokens, type Usage } from '../../../core/usage.ts'
import { onlyNumber, onlyString } from '../../check.ts'
import type { OperationFacts } from '../../operation-api.ts'
import { unreadableReply } from '../shared.ts'

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

/** Returns the usage and cost of a transcript: in tokens where tokens were counted, else in seconds. */
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

/** Returns the length in seconds: as the provider reports it, else as the file contains it, else until its last word. */
function lengthOf(reply: JsonObject, { request, usage }: OperationFacts): number {
  const { audio } = request
  const told = onlyNumber(reply.duration) ?? (audio?.exact ? audio.seconds : undefined)
  const ends = [reply.segments, reply.words].flat().map(endOf)
  return told ?? (Math.max(0, ...ends) || usage.seconds) ?? 0
}

function endOf(part: Json | undefined): number {
  return isObject(part) ? (onlyNumber(part.end) ?? 0) : 0
}

/** Returns the name of a language as OpenAI writes it: `english`. */
function languageName(language: string | undefined): string {
  if (language === undefined || !/^[a-z]{2,3}(?:-[a-z\d]+)*$/i.test(language)) return language ?? 'unknown'
  return languageOf(language)?.toLowerCase() ?? language
}

/** Segments as subtitles: SubRip or WebVTT. */
function subtitles(segments: readonly JsonObject[], format: 'srt' | 'vtt'): string {
  const mark = format === 'srt' ? ',' : '.'
  const cues = segments.map(({ start, end, text }, index) => {
    const number = format === 'srt' ? `${index + 1}\n` : ''
    return `${number}${timeOf(Number(start), mark)} --> ${timeOf(Number(end), mark)}\n${lineOf(String(text))}\n\n`
  })
  return `${format === 'vtt' ? 'WEBVTT\n\n' : ''}${cues.join('')}`
}

/** `00:01:02.345`. */
function timeOf(seconds: number, mark: string): string {
  const ms = Math.round(seconds * 1_000)
  const [h, m, s] = [ms / 3_600_000, (ms / 60_000) % 60, (ms / 1_000) % 60].map((part) => String(Math.floor(part)))
  return `${h?.padStart(2, '0')}:${m?.padStart(2, '0')}:${s?.padStart(2, '0')}${mark}${String(ms % 1_000).padStart(3, '0')}`
}

/** A text that cannot end its cue, or be taken for its times. */
function lineOf(text: string): string {
  return text
    .trim()
    .replace(/\s*\n\s*/g, '\n')
    .replaceAll('-->', '->')
}

/** The words of a transcript with their times. */
function wordsOf({ words }: JsonObject): JsonObject[] {
  return objectsOf(words).map((word) => ({ ...word, ...timesOf(word), word: onlyString(word.word) ?? '' }))
}

/** The segments of a transcript with their times: its own, else made of its words, else all of it. Seconds. */
function segmentsOf(reply: JsonObject, duration: number): JsonObject[] {
  const own = objectsOf(reply.segments)
  if (own.length > 0)
    return own.map((segment) => ({ ...segment, ...timesOf(segment), text: onlyString(segment.text) ?? '' }))
  const words = wordsOf(reply)
  if (words.length > 0) return sentencesOf(words)
  const text = onlyString(reply.text) ?? ''
  return text === '' ? [] : [{ start: 0, end: duration, text }]
}

function objectsOf(list: Json | undefined): JsonObject[] {
  return Array.isArray(list) ? list.filter(isObject) : []
}

function timesOf({ start, end }: JsonObject): { start: number; end: number } {
  const begin = onlyNumber(start) ?? 0
  return { start: begin, end: Math.max(onlyNumber(end) ?? begin, begin) }
}

type Sentence = { start: number; end: number; text: string; speaker?: Json }

/** Splits words into sentences: those of one speaker up to the end of a sentence, a pause, or as many as can be read at once. */
function sentencesOf(words: readonly JsonObject[]): Sentence[] {
  const sentences: Sentence[] = []
  let open: Sentence | undefined
  for (const { word, speaker, ...times } of words) {
    const { start, end } = timesOf(times)
    const text = String(word)
    const goesOn = open && speaker === open.speaker && start - open.end <= maxPause
    if (open && goesOn && open.text.length + text.length <= maxLineLength) {
      Object.assign(open, { end, text: `${open.text} ${text}` })
    } else {
      open = { start, end, text, ...(speaker !== undefined && { speaker }) }
      sentences.push(open)
    }
    if (/[.!?。！？]$/u.test(text)) open = undefined
  }
  return sentences
}

/** Seconds, characters. */
const maxPause = 1
const maxLineLength = 84

/** Created on first use: it reads a part of the Unicode data that nothing else needs. */
let names: Intl.DisplayNames | undefined

/** The English name of a language by its code: `German`. Undefined for none. Throws RangeError for what cannot be a code. */
export function languageOf(code: string): string | undefined {
  names ??= new Intl.DisplayNames('en', { type: 'language', fallback: 'none' })
  return names.of(code)
}
