import { errorBody } from '../../../core/errors.ts'
import type { JsonObject } from '../../../core/json.ts'
import type { OperationRequest } from '../../../core/operation.ts'
import type { OperationBytes, OperationEvents } from '../../operation-api.ts'
import { unreadableReply, usageBlock } from '../shared.ts'
import { formatOf, heard, wavOf } from './audio.ts'

/** What `heard` says of a whole reply, or has said of pieces. */
export function knownAudio(reply: JsonObject): JsonObject {
  const { audio, media_type: mediaType } = reply
  if (typeof audio !== 'string') return reply
  const beginning = Buffer.from(audio.slice(0, 4_096), encodingOf(reply))
  const format = formatOf(beginning, typeof mediaType === 'string' ? mediaType : undefined) ?? ''
  const rate = typeof mediaType === 'string' ? /rate=(\d+)/.exec(mediaType)?.[1] : undefined
  const all = { ...heard({}, beginning, format), bytes: Buffer.byteLength(audio, encodingOf(reply)) }
  return format === 'pcm' && rate ? { ...all, bytes_per_second: Number(rate) * 2 } : all
}

function encodingOf({ encoding }: JsonObject): 'hex' | 'base64' {
  return encoding === 'hex' ? 'hex' : 'base64'
}

function askedFormat({ fields }: OperationRequest): string {
  return String(fields.response_format ?? 'mp3')
}

/** Audio as bytes: a whole file, or pieces of one. */
export const speechBytes: OperationBytes = {
  ofWhole(reply, request) {
    const { audio, media_type: type } = reply
    const decoded = typeof audio === 'string' ? Buffer.from(audio, encodingOf(reply)) : undefined
    if (!decoded?.length) throw unreadableReply('an answer without audio')
    const mediaType = typeof type === 'string' ? type : undefined
    // Samples alone do not say what they are.
    const isRaw = formatOf(decoded, mediaType) === 'pcm' && askedFormat(request) !== 'pcm'
    return isRaw ? { bytes: wavOf(decoded, mediaType), mediaType: 'audio/wav' } : { bytes: decoded, mediaType }
  },
  ofEvent(event) {
    if (speechEvents.isEnd(event)) return 'end'
    return event.type === delta ? Buffer.from(audioOf(event), 'base64') : undefined
  },
  headers(beginning, mediaType, request) {
    const format = formatOf(beginning, mediaType)
    return format === undefined || format === askedFormat(request) ? {} : { 'x-router-audio-format': format }
  },
  collect: (all, piece, request) => heard(all, piece, askedFormat(request)),
}

const delta = 'speech.audio.delta'
const done = 'speech.audio.done'

/** Audio as events, whose pieces are in base64. */
export const speechEvents: OperationEvents = {
  named: true,
  ofWhole(reply, request) {
    const { bytes: audio } = speechBytes.ofWhole(reply, request)
    const count = Math.ceil(audio.length / pieceBytes)
    const pieces = Array.from({ length: count }, (_, at) => audio.subarray(at * pieceBytes, (at + 1) * pieceBytes))
    return [...pieces.map(deltaOf), { type: done }]
  },
  ofBytes: deltaOf,
  endOfBytes: () => ({ type: done }),
  isEnd: ({ type }) => type === done,
  write(event, facts) {
    if (event.type === delta) return { ...event, audio: audioOf(event) }
    if (event.type !== done) return event
    return { type: done, usage: usageBlock({ usage: {}, now: 0, ...facts }, tokenCounts) }
  },
  fail: (error) => ({ type: 'error', ...errorBody(error) }),
  collect(all, event, request) {
    if (event.type !== delta) return all
    return heard(all, Buffer.from(audioOf(event), 'base64'), askedFormat(request))
  },
}

/** Bytes of one event of a whole reply: without padding in base64 but in the last one. */
const pieceBytes = 24_576

/** Each event is encoded on its own: it can be decoded without the others. */
function deltaOf(piece: Uint8Array): JsonObject {
  const { buffer, byteOffset, length } = piece
  return { type: delta, audio: Buffer.from(buffer, byteOffset, length).toString('base64') }
}

function audioOf({ audio }: JsonObject): string {
  if (typeof audio !== 'string') throw unreadableReply('an event without audio')
  return audio
}

function tokenCounts(input: number, output: number): JsonObject {
  return { input_tokens: input, output_tokens: output, total_tokens: input + output }
}
