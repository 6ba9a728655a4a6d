import { errorBody } from '../../../core/errors.ts'
import type { JsonObject } from '../../../core/json.ts'
import type { OperationRequest } from '../../../core/operation.ts'
import { mpegRate } from '../../../media/mpeg-audio.ts'
import type { OperationBytes, OperationEvents } from '../../operation-api.ts'
import { unreadableReply, usageBlock } from '../shared.ts'

/** Returns what is known about the audio of a whole reply, as `heard` collects it; any other reply is returned as it is. */
export function audioFacts(reply: JsonObject): JsonObject {
  const { audio, media_type: mediaType } = reply
  if (typeof audio !== 'string') return reply
  const beginning = Buffer.from(audio.slice(0, 4_096), encodingOf(reply))
  const format = formatOf(beginning, typeof mediaType === 'string' ? mediaType : undefined) ?? ''
  const rate = typeof mediaType === 'string' ? /rate=(\d+)/.exec(mediaType)?.[1] : undefined
  const all = { ...observedAudio({}, beginning, format), bytes: Buffer.byteLength(audio, encodingOf(reply)) }
  return format === 'pcm' && rate ? { ...all, bytes_per_second: Number(rate) * 2 } : all
}

function encodingOf({ encoding }: JsonObject): 'hex' | 'base64' {
  return encoding === 'hex' ? 'hex' : 'base64'
}

function requestedFormat({ fields }: OperationRequest): string {
  return String(fields.response_format ?? 'mp3')
}

/** Audio as bytes: a whole file, or pieces of one. */
export const speechBytes: OperationBytes = {
  ofWhole(reply, request) {
    const { audio, media_type: type } = reply
    const decoded = typeof audio === 'string' ? Buffer.from(audio, encodingOf(reply)) : undefined
    if (!decoded?.length) throw unreadableReply('an answer without audio')
    const mediaType = typeof type === 'string' ? type : undefined
    // Raw samples cannot be recognized by their bytes.
    const isRaw = formatOf(decoded, mediaType) === 'pcm' && requestedFormat(request) !== 'pcm'
    return isRaw ? { bytes: wavOf(decoded, mediaType), mediaType: 'audio/wav' } : { bytes: decoded, mediaType }
  },
  ofEvent(event) {
    if (speechEvents.isEnd(event)) return 'end'
    return event.type === delta ? Buffer.from(audioOf(event), 'base64') : undefined
  },
  headers(beginning, mediaType, request) {
    const format = formatOf(beginning, mediaType)
    return format === undefined || format === requestedFormat(request) ? {} : { 'x-router-audio-format': format }
  },
  collect: (all, piece, request) => observedAudio(all, piece, requestedFormat(request)),
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
    return observedAudio(all, Buffer.from(audioOf(event), 'base64'), requestedFormat(request))
  },
}

/** Bytes of one event of a whole reply: only the last one is padded in base64. */
const pieceBytes = 24_576

/** Writes a piece as an event, which is encoded on its own: it can be decoded without the others. */
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

/** The formats of spoken answers; `pcm` is 16 bits little-endian, mono, 24 kHz by default. */
export const audioFormats = ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'] as const
type AudioFormat = (typeof audioFormats)[number]

/** Returns the format of audio by its first bytes, else by its media type; undefined where neither reveals it. */
function formatOf(beginning: Uint8Array, mediaType: string | undefined): AudioFormat | undefined {
  const mark = Buffer.from(beginning.subarray(0, 4)).toString('latin1')
  if (mark === 'RIFF') return 'wav'
  if (mark === 'fLaC') return 'flac'
  if (mark === 'OggS') return 'opus'
  if (mark.startsWith('ID3')) return 'mp3'
  const name = mediaType?.split(';')[0]?.trim().toLowerCase()
  return name === undefined ? undefined : formatsByType[name]
}

const formatsByType: { readonly [mediaType: string]: AudioFormat } = {
  'audio/mpeg': 'mp3',
  'audio/mp3': 'mp3',
  'audio/ogg': 'opus',
  'audio/opus': 'opus',
  'audio/aac': 'aac',
  'audio/x-aac': 'aac',
  'audio/flac': 'flac',
  'audio/x-flac': 'flac',
  'audio/wav': 'wav',
  'audio/wave': 'wav',
  'audio/x-wav': 'wav',
  'audio/vnd.wave': 'wav',
  'audio/pcm': 'pcm',
  'audio/l16': 'pcm',
}

/**
 * Adds a piece to the facts about audio: `bytes` so far, and, where its beginning reveals them, `bytes_per_second`, the bytes of its
 * `header`, and whether its length follows from them `exactly`.
 */
function observedAudio(known: JsonObject, piece: Uint8Array, format: string): JsonObject {
  const before = typeof known.bytes === 'number' ? known.bytes : 0
  return { ...(before === 0 ? rateOf(piece, format) : known), bytes: before + piece.length }
}

/** Returns the length of audio in seconds, as far as it is known; undefined where it can only be estimated from the text. */
export function secondsOf({ bytes, bytes_per_second: rate, header = 0 }: JsonObject): number | undefined {
  if (typeof bytes !== 'number' || typeof rate !== 'number' || rate <= 0) return undefined
  return Math.max(0, bytes - Number(header)) / rate
}

function rateOf(beginning: Uint8Array, format: string): JsonObject {
  const bytes = Buffer.from(beginning.buffer, beginning.byteOffset, beginning.length)
  const isWav = bytes.length >= 44 && bytes.toString('latin1', 0, 4) === 'RIFF'
  if (isWav) return { bytes_per_second: bytes.readUInt32LE(28), header: 44, exactly: true }
  if (format === 'pcm') return { bytes_per_second: pcmRate * 2, exactly: true }
  const rate = format === 'mp3' ? mpegRate(bytes) : undefined
  return rate === undefined ? {} : { bytes_per_second: rate }
}

/** Samples a second. */
const pcmRate = 24_000

/** Returns raw samples as a WAV file. `mediaType` contains their rate: `audio/L16;rate=24000`. */
function wavOf(samples: Uint8Array, mediaType: string | undefined): Uint8Array {
  const rate = Number(/rate=(\d+)/.exec(mediaType ?? '')?.[1] ?? pcmRate)
  const header = Buffer.alloc(44)
  header.write('RIFF', 0, 'latin1')
  header.writeUInt32LE(36 + samples.length, 4)
  header.write('WAVEfmt ', 8, 'latin1')
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(rate, 24)
  header.writeUInt32LE(rate * 2, 28)
  header.writeUInt16LE(2, 32)
  header.writeUInt16LE(16, 34)
  header.write('data', 36, 'latin1')
  header.writeUInt32LE(samples.length, 40)
  return Buffer.concat([header, samples])
}
