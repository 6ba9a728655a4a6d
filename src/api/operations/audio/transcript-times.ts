import { isObject, type Json, type JsonObject } from '../../../core/json.ts'
import { onlyNumber, onlyString } from '../../check.ts'

/** The words of a transcript with their times. */
export function wordsOf({ words }: JsonObject): JsonObject[] {
  return objectsOf(words).map((word) => ({ ...word, ...timesOf(word), word: onlyString(word.word) ?? '' }))
}

/** The segments of a transcript with their times: its own, else made of its words, else all of it. Seconds. */
export function segmentsOf(reply: JsonObject, duration: number): JsonObject[] {
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

/** Words of one speaker up to the end of a sentence, a pause, or as many as can be read at once. */
function sentencesOf(words: readonly JsonObject[]): Sentence[] {
  const sentences: Sentence[] = []
  let open: Sentence | undefined
  for (const { word, speaker, ...times } of words) {
    const { start, end } = timesOf(times)
    const text = String(word)
    const goesOn = open && speaker === open.speaker && start - open.end <= longestPause
    if (open && goesOn && open.text.length + text.length <= longestLine) {
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
const longestPause = 1
const longestLine = 84
