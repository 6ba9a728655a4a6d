import type { JsonObject } from '../../../core/json.ts'
import { mpegRate } from '../../../media/mpeg-audio.ts'

/** The formats of spoken answers; `pcm` is 16 bits little-endian, mono, 24 kHz where nothing else is said. */
export const audioFormats = ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'] as const
export type AudioFormat = (typeof audioFormats)[number]

/** The format of audio by its first bytes, else by its media type; undefined where neither tells. */
export function formatOf(beginning: Uint8Array, mediaType: string | undefined): AudioFormat | undefined {
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
 * Adds a piece to what is known of audio: `bytes` so far, and, where its beginning tells them, `bytes_per_second`, the bytes of its
 * `header`, and whether its length follows from them `exactly`.
 */
export function heard(known: JsonObject, piece: Uint8Array, format: string): JsonObject {
  const before = typeof known.bytes === 'number' ? known.bytes : 0
  return { ...(before === 0 ? rateOf(piece, format) : known), bytes: before + piece.length }
}

/** How long audio is, as far as it is known, in seconds; undefined where only its text tells. */
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

/** Raw samples as a WAV file. `mediaType` says how many there are a second: `audio/L16;rate=24000`. */
export function wavOf(samples: Uint8Array, mediaType: string | undefined): Uint8Array {
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
