import { id3Length } from './audio-format.ts'
import {
  type AudioParser,
  finished,
  hasBytes,
  largerOf,
  maxTimedElements,
  minBytesPerSecond,
  needsMore,
  type ParserFile,
} from './audio-parser.ts'
import { flacRate } from './flac.ts'
import { type Codec, even, flacIn, opus, packetBytes, unknownCodec, vorbis } from './packets.ts'

/** One stream of an Ogg: its packets as far as they are counted, and what its last page states. */
type Stream = {
  rate: number
  /** Samples that are not played. */
  before: number
  codec: Codec
  /** The first packet, and the number of packets that are headers. */
  first: Buffer
  headers: number
  packets: number
  /** The pieces of the packet that describes how the others are read, where there is one. */
  setup: Buffer[]
  measured: number
  position: number
  bytes: number
}

/**
 * Returns a parser for the length of an Ogg file in seconds: the sum of its packets, or its last position if that is more; the sum for
 * several streams after each other. What follows something else is as long as it can be.
 */
export function oggParser({ head, size }: ParserFile): AudioParser {
  const tag = id3Length(head)
  const streams = new Map<number, Stream | undefined>()
  let seconds = 0
  let hasSound = false
  const end = (stream: Stream) => {
    seconds += largerOf(stream.measured, Math.max(stream.position - stream.before, 0) / stream.rate, stream.bytes)
  }
  return {
    maxElements: maxTimedElements,
    maxBytes: maxPageBytes,
    parse(bytes, at, position) {
      if (position === 0 && tag > 0) return tag
      if (bytes.length < at + 27) return needsMore
      if (!hasBytes(bytes, at, 'OggS')) {
        seconds += (size - position) / minBytesPerSecond
        return finished
      }
      const bodyAt = at + 27 + (bytes[at + 26] ?? 0)
      let bodyEnd = bodyAt
      for (let segment = at + 27; segment < bodyAt && segment < bytes.length; segment++) bodyEnd += bytes[segment] ?? 0
      // The last page may be cut off.
      if (bytes.length < bodyEnd && position + bytes.length - at < size) return needsMore
      const serial = bytes.readUInt32LE(at + 14)
      const isFirst = ((bytes[at + 5] ?? 0) & 2) !== 0
      if (isFirst || !streams.has(serial)) {
        const before = streams.get(serial)
        if (before) end(before)
        streams.set(serial, streamOf(bytes, bodyAt, Math.min(bodyEnd, bytes.length)))
      }
      const stream = streams.get(serial)
      if (stream) {
        hasSound = true
        takePage(stream, bytes, { at, bodyAt })
      }
      return bodyEnd - at
    },
    seconds() {
      for (const stream of streams.values()) if (stream) end(stream)
      streams.clear()
      return hasSound ? seconds : undefined
    },
  }
}

/** A page has at most 255 segments of 255 bytes. */
const maxPageBytes = 27 + 255 + 255 * 255

/** Measures the packets that begin on a page. */
function takePage(stream: Stream, bytes: Buffer, { at, bodyAt }: { at: number; bodyAt: number }): void {
  const high = bytes.readInt32LE(at + 10)
  // A page on which no packet ends has none.
  if (high >= 0) stream.position = high * 2 ** 32 + bytes.readUInt32LE(at + 6)
  let isContinued = ((bytes[at + 5] ?? 0) & 1) !== 0
  let from = bodyAt
  let length = 0
  for (let segment = at + 27; segment < bodyAt; segment++) {
    const size = bytes[segment] ?? 0
    length += size
    // A packet ends with a segment that is not full; the last one may go on on the next page.
    if (size === 255 && segment < bodyAt - 1) continue
    takePacket(stream, bytes, { from, length, isContinued })
    isContinued = false
    from += length
    length = 0
  }
  stream.bytes += from - at
}

type Packet = { from: number; length: number; isContinued: boolean }

function takePacket(stream: Stream, bytes: Buffer, { from, length, isContinued }: Packet): void {
  if (!isContinued) stream.packets++
  const { packets, headers } = stream
  if (packets === headers && headers === vorbisHeaders && stream.setup.length < maxSetupPieces) {
    stream.setup.push(Buffer.from(bytes.subarray(from, from + length)))
  }
  if (isContinued || packets <= headers) return
  if (stream.setup.length > 0) {
    stream.codec = vorbis(stream.first, Buffer.concat(stream.setup))
    stream.setup = []
  }
  stream.measured += stream.codec.measure(bytes, from, length)
}

const vorbisHeaders = 3
/** Pages that the setup of Vorbis may have: it has some thousand bytes. */
const maxSetupPieces = 4

/** Returns the stream that begins with these bytes; undefined for one of pictures or texts. */
function streamOf(bytes: Buffer, at: number, end: number): Stream | undefined {
  const length = end - at
  const has = (text: string, least: number) => length >= least && hasBytes(bytes, at, text)
  const stream = (codec: Codec, rate: number, { before = 0, headers = 2 } = {}): Stream => ({
    ...{ codec, rate: Math.max(rate, 1), before, headers, packets: 0, setup: [], measured: 0, position: 0, bytes: 0 },
    first: Buffer.from(bytes.subarray(at, Math.min(end, at + 30))),
  })
  if (has('OpusHead', 12)) return stream(opus, 48_000, { before: bytes.readUInt16LE(at + 10) })
  if (has('\x01vorbis', 29)) {
    const codec = vorbis(bytes.subarray(at, at + 30), undefined)
    return stream(codec, bytes.readUInt32LE(at + 12), { headers: vorbisHeaders })
  }
  if (has('Speex   ', 68)) {
    const rate = Math.max(bytes.readUInt32LE(at + 36), 1)
    const samples = bytes.readUInt32LE(at + 56) * Math.max(bytes.readUInt32LE(at + 64), 1)
    return stream(even(Math.min(samples, rate) / rate), rate)
  }
  if (has('\x7fFLAC', 9 + 4 + 4 + packetBytes)) {
    const rate = flacRate(bytes, at + 17)
    return stream(flacIn(rate), rate, { headers: 1 })
  }
  return isOther(bytes, at) ? undefined : stream(unknownCodec, 1, { headers: 0 })
}

function isOther(bytes: Buffer, at: number): boolean {
  return ['fishead\0', 'fisbone\0', '\x80theora', 'BBCD', 'OVP80', '\x80kate'].some((text) => hasBytes(bytes, at, text))
}
