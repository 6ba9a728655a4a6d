import type { AudioLength, UploadedFile } from '../core/operation.ts'
import { type AudioFormat, audioFormatOf, id3Length } from './audio-format.ts'
import {
  type AudioParser,
  finished,
  hasBytes,
  maxDescriptions,
  maxTimedElements,
  needsMore,
  parseElements,
} from './audio-parser.ts'
import { mpegParser } from './mpeg-audio.ts'

/** A file as far as it is read to be measured. */
type MeasuredFile = Pick<UploadedFile, 'head' | 'size' | 'read'>

/**
 * Measures how long the sound of a file is, piece by piece; estimates it by the size where the file does not state it, or has more
 * elements than a recording. Rejects with the reason of an aborted signal.
 */
export async function audioLength(file: MeasuredFile, signal?: AbortSignal): Promise<AudioLength> {
  const format = audioFormatOf(file.head)
  const seconds = format && (await secondsOf(format, file, signal))
  if (seconds !== undefined && isPlausible(seconds, file.size)) return { seconds, maxSeconds: seconds, exact: true }
  return { seconds: file.size / usualBytes, maxSeconds: file.size / minBytes, exact: false }
}

/** Bytes per second of speech: at 64 kbit/s, and at 6 kbit/s, the minimum at which speech is intelligible. */
const usualBytes = 8_000
const minBytes = 750

/**
 * Checks whether a length is plausible, since a header may contain anything: nothing has more bytes per second than a film, and nothing
 * fewer than silence.
 */
function isPlausible(seconds: number, size: number): boolean {
  return seconds > 0 && seconds * maxBytes >= size && seconds * silentBytes <= size
}

const pieceBytes = 32 * 1024
const maxBytes = 6_000_000
const silentBytes = 25

/** The most bytes that are read of the first packet of a stream, which identifies it. */
const maxPacketBytes = 40

/** The most bytes of a header that are read. */
const maxBodyBytes = 32

const timestampScale = 0x2a_d7_b1
const duration = 0x44_89
const clusterTime = 0xe7
const simpleBlock = 0xa3
const block = 0xa1
/** The most bytes of a number, and of a block as far as it is read. */
const maxValueBytes = 12

const parsers: { readonly [format in AudioFormat]?: (file: Pick<UploadedFile, 'head' | 'size'>) => AudioParser } = {
  flac: ({ head }) => flacParser(head),
  mp3: mpegParser,
  mp4: mp4Parser,
  ogg: oggParser,
  wav: ({ size }) => wavParser(size),
  webm: webmParser,
}

async function secondsOf(format: AudioFormat, file: MeasuredFile, signal?: AbortSignal): Promise<number | undefined> {
  const parser = parsers[format]?.(file)
  if (!parser) return undefined
  // Many files that are read at once must not leave their pieces to the garbage collector.
  const pieces = file.read(Buffer.allocUnsafeSlow(pieceBytes))
  const isRead = await parseElements({ size: file.size, pieces }, parser, signal)
  return isRead ? parser.seconds() : undefined
}

/** Returns a parser for the length of a WAV file of `size` bytes, by its rate and its data. Seconds. */
function wavParser(size: number): AudioParser {
  let bytesPerSecond = 0
  let dataBytes = 0
  return {
    maxElements: maxDescriptions,
    parse(bytes, at, position) {
      if (position === 0) return 12
      if (bytes.length < at + 8) return needsMore
      const length = bytes.readUInt32LE(at + 4)
      if (hasBytes(bytes, at, 'data')) {
        const left = size - position - 8
        // A recorder that writes while it records does not know the final length.
        dataBytes = length === 0 || length > left ? left : length
        return finished
      }
      if (hasBytes(bytes, at, 'fmt ') && length >= 16) {
        if (bytes.length < at + 24) return needsMore
        bytesPerSecond = bytes.readUInt32LE(at + 16) || bytes.readUInt32LE(at + 12) * bytes.readUInt16LE(at + 20)
      }
      return 8 + length + (length % 2)
    },
    seconds: () => (bytesPerSecond > 0 && dataBytes > 0 ? dataBytes / bytesPerSecond : undefined),
  }
}

/** Returns a parser for the length of a FLAC file, as its first block states it. Seconds. */
function flacParser(head: Uint8Array): AudioParser {
  const infoAt = id3Length(head) + 8
  let seconds: number | undefined
  return {
    maxElements: maxDescriptions,
    parse(bytes, at, position) {
      if (position === 0) return infoAt
      if (bytes.length < at + 18) return needsMore
      const rate = bytes.readUIntBE(at + 10, 3) >> 4
      const samples = ((bytes[at + 13] ?? 0) & 15) * 2 ** 32 + bytes.readUInt32BE(at + 14)
      if (rate > 0 && samples > 0) seconds = samples / rate
      return finished
    },
    seconds: () => seconds,
  }
}

/**
 * Returns a parser for the length of an Ogg file: the last position of its sound, or the sum for several streams after each other.
 * Seconds.
 */
function oggParser(): AudioParser {
  let seconds = 0
  let sound: Sound | undefined
  let isBroken = false
  return {
    maxElements: maxTimedElements,
    parse(bytes, at) {
      if (bytes.length < at + 27) return needsMore
      isBroken = !hasBytes(bytes, at, 'OggS')
      if (isBroken) return finished
      const bodyAt = at + 27 + (bytes[at + 26] ?? 0)
      if (bytes.length < bodyAt) return needsMore
      let length = 0
      for (let segment = at + 27; segment < bodyAt; segment++) length += bytes[segment] ?? 0
      const serial = bytes.readUInt32LE(at + 14)
      const isFirst = ((bytes[at + 5] ?? 0) & 2) !== 0
      const packetBytes = isFirst ? Math.min(length, maxPacketBytes) : 0
      if (bytes.length < bodyAt + packetBytes) return needsMore
      const begun = isFirst ? soundOf(bytes, bodyAt, packetBytes, serial) : undefined
      if (begun) {
        if (sound) seconds += soundSeconds(sound)
        sound = begun
      } else if (sound && serial === sound.serial) {
        const high = bytes.readInt32LE(at + 10)
        // A page on which no packet ends has none.
        if (high >= 0) sound.samples = high * 2 ** 32 + bytes.readUInt32LE(at + 6)
      }
      return bodyAt - at + length
    },
    seconds: () => (isBroken || !sound ? undefined : seconds + soundSeconds(sound)),
  }
}

type Sound = { serial: number; rate: number; before: number; samples: number }

function soundSeconds({ rate, before, samples }: Sound): number {
  return Math.max(samples - before, 0) / rate
}

function soundOf(bytes: Buffer, at: number, length: number, serial: number): Sound | undefined {
  const sound = (rate: number, before = 0) => (rate > 0 ? { serial, rate, before, samples: 0 } : undefined)
  if (length >= 12 && hasBytes(bytes, at, 'OpusHead')) return sound(48_000, bytes.readUInt16LE(at + 10))
  if (length >= 16 && hasBytes(bytes, at, '\x01vorbis')) return sound(bytes.readUInt32LE(at + 12))
  if (length >= 40 && hasBytes(bytes, at, 'Speex   ')) return sound(bytes.readUInt32LE(at + 36))
  if (length >= 30 && hasBytes(bytes, at, '\x7fFLAC')) return sound(bytes.readUIntBE(at + 27, 3) >> 4)
  return undefined
}

/**
 * Returns a parser for the length of an MP4 file (M4A), as its header states it; of one in fragments, where they are announced. Seconds.
 */
function mp4Parser(): AudioParser {
  let scale = 0
  let seconds: number | undefined
  return {
    maxElements: maxDescriptions,
    parse(bytes, at) {
      const box = boxAt(bytes, at)
      if (box === undefined) return needsMore
      const { bodyAt, length } = box
      if (length < 0) return finished
      // What they contain follows at once.
      if (hasBytes(bytes, at + 4, 'moov') || hasBytes(bytes, at + 4, 'mvex')) return bodyAt - at
      const isMovie = hasBytes(bytes, at + 4, 'mvhd')
      if (!isMovie && !hasBytes(bytes, at + 4, 'mehd')) return bodyAt - at + length
      const end = bodyAt + Math.min(length, maxBodyBytes)
      if (bytes.length < end) return needsMore
      const duration = isMovie ? movieDuration(bytes, bodyAt, end) : extendedDuration(bytes, bodyAt, end)
      if (!duration) return finished
      scale = duration.scale ?? scale
      if (duration.count > 0 && scale > 0) {
        seconds = duration.count / scale
        return finished
      }
      return bodyAt - at + length
    },
    seconds: () => seconds,
  }
}

/** Finds the contents of a box and their length; undefined where its header is not all here. */
function boxAt(bytes: Buffer, at: number): { bodyAt: number; length: number } | undefined {
  if (bytes.length < at + 8) return undefined
  const short = bytes.readUInt32BE(at)
  if (short !== 1) return { bodyAt: at + 8, length: short === 0 ? Number.MAX_SAFE_INTEGER : short - 8 }
  if (bytes.length < at + 16) return undefined
  return { bodyAt: at + 16, length: uint64(bytes, at + 8) - 16 }
}

/** A count of units, and how many there are in a second. */
type Duration = { count: number; scale?: number }

function movieDuration(bytes: Buffer, from: number, to: number): Duration | undefined {
  const isLong = bytes[from] === 1
  const at = from + (isLong ? 24 : 16)
  const count = countAt(bytes, { at, to, isLong })
  return count === undefined ? undefined : { count, scale: bytes.readUInt32BE(at - 4) }
}

function extendedDuration(bytes: Buffer, from: number, to: number): Duration | undefined {
  const count = countAt(bytes, { at: from + 4, to, isLong: bytes[from] === 1 })
  return count === undefined ? undefined : { count }
}

/** Reads a count; 0 where the file declares it unknown. */
function countAt(bytes: Buffer, { at, to, isLong }: { at: number; to: number; isLong: boolean }): number | undefined {
  if (to < at + (isLong ? 8 : 4)) return undefined
  const count = isLong ? uint64(bytes, at) : bytes.readUInt32BE(at)
  return count === 0xffff_ffff || count >= Number.MAX_SAFE_INTEGER ? 0 : count
}

function uint64(bytes: Buffer, at: number): number {
  return bytes.readUInt32BE(at) * 2 ** 32 + bytes.readUInt32BE(at + 4)
}

/** Returns a parser for the length of a WebM file: as its header states it, else where its last block begins. Seconds. */
function webmParser(): AudioParser {
  // Nanoseconds.
  let scale = 1_000_000
  let cluster = 0
  let last: number | undefined
  let stated: number | undefined
  let isBroken = false
  return {
    maxElements: maxTimedElements,
    parse(bytes, at) {
      const idBytes = numberBytes(bytes[at])
      if (idBytes > 4) return finished
      const sizeAt = at + idBytes
      if (sizeAt >= bytes.length) return needsMore
      const sizeBytes = numberBytes(bytes[sizeAt])
      if (sizeBytes > 8) return finished
      const bodyAt = sizeAt + sizeBytes
      if (bodyAt > bytes.length) return needsMore
      const id = unsigned(bytes, at, sizeAt)
      // What they contain follows at once; some do not state their length.
      if (isMaster(id)) return bodyAt - at
      const length = sizeOf(bytes, sizeAt, bodyAt)
      const isBlock = id === simpleBlock || id === block
      const isValue = id === timestampScale || id === duration || id === clusterTime
      isBroken = isValue && length > maxValueBytes
      if (isBroken) return finished
      const end = bodyAt + (isValue ? length : isBlock ? Math.min(length, maxValueBytes) : 0)
      if (end > bytes.length) return needsMore
      if (isBlock) last = Math.max(last ?? 0, cluster + blockTime(bytes, bodyAt, end))
      else if (id === clusterTime) cluster = unsigned(bytes, bodyAt, end)
      else if (id === timestampScale) scale = unsigned(bytes, bodyAt, end)
      else if (id === duration && length > 0) {
        stated = floating(bytes, bodyAt, length)
        return finished
      }
      return bodyAt - at + length
    },
    seconds() {
      const count = stated ?? (isBroken ? undefined : last)
      return count === undefined ? undefined : (count * scale) / 1e9
    },
  }
}

/** Segment, Info, Cluster, BlockGroup. */
function isMaster(id: number): boolean {
  return id === 0xa0 || id === 0x1f_43_b6_75 || id === 0x15_49_a9_66 || id === 0x18_53_80_67
}

/** Returns the length of a number by its first byte: the zeros before its first one. */
function numberBytes(first = 0): number {
  return Math.clz32(first) - 23
}

/** Reads a size without the bit that marks its own length. */
function sizeOf(bytes: Buffer, from: number, to: number): number {
  const mark = 2 ** (8 - (to - from))
  return unsigned(bytes, from + 1, to, (bytes[from] ?? 0) & (mark - 1))
}

function unsigned(bytes: Buffer, from: number, to: number, before = 0): number {
  let sum = before
  for (let at = from; at < to; at++) sum = sum * 256 + (bytes[at] ?? 0)
  return sum
}

function floating(bytes: Buffer, at: number, length: number): number {
  return length === 8 ? bytes.readDoubleBE(at) : length === 4 ? bytes.readFloatBE(at) : 0
}

/** Returns the time at which a block begins, counted from its cluster: it follows the number of its track. */
function blockTime(bytes: Buffer, from: number, to: number): number {
  const at = from + numberBytes(bytes[from])
  return to >= at + 2 ? bytes.readInt16BE(at) : 0
}
