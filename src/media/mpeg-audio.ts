import { id3Length } from './audio-format.ts'
import {
  type AudioParser,
  finished,
  maxTimedElements,
  minBytesPerSecond,
  needsMore,
  type ParserFile,
} from './audio-parser.ts'
import { aacRates } from './packets.ts'

/** Frames as they are found, one after the other. */
type FrameCount = {
  seconds: number
  /** Bytes of frames, and bytes that are none. */
  framed: number
  lost: number
  /** Takes the frame at a place, or skips bytes that are none. Returns how many bytes to go on. */
  take(bytes: Buffer, at: number): number
}

function countFrames(): FrameCount {
  return {
    ...{ seconds: 0, framed: 0, lost: 0 },
    take(bytes, at) {
      const frame = frameAt(bytes, at)
      if (frame) this.seconds += frame.seconds
      if (frame?.length) {
        this.framed += frame.length
        return frame.length
      }
      const length = nextSync(bytes, at + 1) - at
      this.lost += length
      return length
    },
  }
}

/**
 * Returns the length in seconds, undefined where frames are the smaller part of the bytes: then there may be another sound among the
 * others.
 */
function secondsIn({ seconds, framed, lost }: FrameCount): number | undefined {
  return framed > lost ? seconds : undefined
}

/** Returns a parser for the length of MPEG audio (MP3, or AAC after a tag) in seconds: the sum of its frames, whatever their kind. */
export function mpegParser(): AudioParser {
  const count = countFrames()
  return {
    maxElements: maxTimedElements,
    parse(bytes, at, position) {
      if (position === 0) {
        if (bytes.length < 10) return needsMore
        const tag = id3Length(bytes)
        if (tag > 0) return tag
      }
      return bytes.length < at + maxFrameHeader ? needsMore : count.take(bytes, at)
    },
    seconds: () => secondsIn(count),
  }
}

/** Returns a parser for the length of the sound of a program stream of MPEG in seconds: the sum of the frames in its packets. */
export function programParser({ size }: ParserFile): AudioParser {
  const count = countFrames()
  let rest: Buffer = Buffer.alloc(0)
  let ahead = 0
  let unread = 0
  return {
    maxElements: maxTimedElements,
    maxBytes: 6 + 0xffff,
    parse(bytes, at, position) {
      if (bytes.length < at + 14) return needsMore
      const code = bytes.readUInt32BE(at)
      if (code === programEnd) return 4
      if (code === packHead) return isSecond(bytes, at + 4) ? 14 + ((bytes[at + 13] ?? 0) & 7) : 12
      const isPacket = code > packHead && code < 0x1_f0
      const end = at + 6 + bytes.readUInt16BE(at + 4)
      if (!isPacket || (end > bytes.length && position + bytes.length - at >= size)) {
        unread = size - position
        return finished
      }
      if (end > bytes.length) return needsMore
      if (code >= 0x1_c0 && code < 0x1_e0) {
        const sound = Buffer.concat([rest, bytes.subarray(payloadAt(bytes, at + 6), end)])
        let from = ahead
        while (from + maxFrameHeader <= sound.length) from += count.take(sound, from)
        rest = Buffer.from(sound.subarray(Math.min(from, sound.length)))
        ahead = Math.max(from - sound.length, 0)
      } else if (code === privatePacket) unread += end - at
      return end - at
    },
    seconds: () => (count.seconds > 0 ? count.seconds + (unread + count.lost) / minBytesPerSecond : undefined),
  }
}

const packHead = 0x1_ba
const programEnd = 0x1_b9
/** Packets of sound that is not MPEG's. */
const privatePacket = 0x1_bd

/** Checks for a header of MPEG-2, which is longer than that of MPEG-1. */
function isSecond(bytes: Buffer, at: number, mark = 0x40): boolean {
  return ((bytes[at] ?? 0) & 0xc0) === mark
}

/** Finds the contents of a packet after the times in its header. */
function payloadAt(bytes: Buffer, from: number): number {
  if (isSecond(bytes, from, 0x80)) return from + 3 + (bytes[from + 2] ?? 0)
  let at = from
  while (bytes[at] === 0xff && at < from + 16) at++
  if (((bytes[at] ?? 0) & 0xc0) === 0x40) at += 2
  const form = (bytes[at] ?? 0) >> 4
  return at + (form === 2 ? 5 : form === 3 ? 10 : 1)
}

/** Bytes a second of MPEG audio by its first frame, which is like the others of speech; undefined where it does not begin with one. */
export function mpegRate(beginning: Uint8Array): number | undefined {
  const frame = beginning.length < 10 ? undefined : frameAt(beginning, id3Length(beginning))
  return frame?.length ? frame.length / frame.seconds : undefined
}

/** The most bytes of the header of a frame that are read. */
const maxFrameHeader = 7

function nextSync(bytes: Uint8Array, from: number): number {
  const at = bytes.indexOf(0xff, from)
  return at < 0 ? bytes.length : at
}

/** A frame; it does not state its length if that is 0. */
type Frame = { seconds: number; length: number }

function frameAt(bytes: Uint8Array, at: number): Frame | undefined {
  const kind = bytes[at + 1] ?? 0
  const rates = bytes[at + 2] ?? 0
  if (bytes[at] !== 0xff || (kind & 0xe0) !== 0xe0) return undefined
  const version = (kind >> 3) & 3
  const layer = 4 - ((kind >> 1) & 3)
  if (layer === 4) return (kind & 0xf0) === 0xf0 ? adtsFrame(bytes, at) : undefined
  const [rate, bits] = [sampleRates[(rates >> 2) & 3], (rates >> 4) & 15]
  const isOne = version === 3
  const kilobits = bitRates[isOne ? layer - 1 : layer === 1 ? 3 : 4]?.[bits]
  if (version === 1 || rate === undefined || kilobits === undefined) return undefined
  const hertz = isOne ? rate : version === 2 ? rate / 2 : rate / 4
  const samples = layer === 1 ? 384 : layer === 3 && !isOne ? 576 : 1152
  const slot = layer === 1 ? 4 : 1
  const slots = Math.floor((samples / 8 / slot) * ((kilobits * 1000) / hertz)) + ((rates >> 1) & 1)
  return { seconds: samples / hertz, length: kilobits === 0 ? 0 : slots * slot }
}

/** Reads a frame of AAC with a header of its own. */
function adtsFrame(bytes: Uint8Array, at: number): Frame | undefined {
  const [second = 0, third = 0, fourth = 0, fifth = 0, sixth = 0] = bytes.subarray(at + 2, at + 7)
  const rate = aacRates[(second >> 2) & 15]
  const length = ((third & 3) << 11) | (fourth << 3) | (fifth >> 5)
  return rate === undefined || length < 7 ? undefined : { seconds: (((sixth & 3) + 1) * 1_024) / rate, length }
}

const sampleRates = [44_100, 48_000, 32_000]

/** Kilobits per second: version 1 by layer, then layer 1 and the other layers of later versions. */
const bitRates = [
  [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
  [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
]
