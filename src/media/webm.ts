import { id3Length } from './audio-format.ts'
import {
  type AudioParser,
  Containers,
  codecRates,
  finished,
  largerOf,
  maxTimedElements,
  minBytesPerSecond,
  needsMore,
  type ParserFile,
} from './audio-parser.ts'
import { flacRate } from './flac.ts'
import { aac, type Codec, flacIn, opus, packetBytes, unknownCodec, unreadCodec, vorbis } from './packets.ts'

/** One track: its codec once its first block comes, and how long its blocks sound. */
type Track = {
  number: number
  isSound: boolean
  name: string
  rate: number
  setup: Buffer
  /** True if packets are compressed: how they begin cannot be read. */
  isPacked: boolean
  codec: Codec | undefined
  measured: number
}

/** The file as far as it has been read; times are in units of `scale` nanoseconds. */
type Recording = {
  tracks: Track[]
  scale: number
  cluster: number
  last: number
  stated: number
  /** Blocks came before the track that they are of. */
  isEarly: boolean
  unread: number
}

/**
 * Returns a parser for the length of a WebM file in seconds: the packets of its longest track of sound, or what its header states or
 * where its last block begins if that is more.
 */
export function webmParser({ head, size }: ParserFile): AudioParser {
  const tag = id3Length(head)
  const around = new Containers()
  const file: Recording = { tracks: [], scale: 1e6, cluster: 0, last: 0, stated: 0, isEarly: false, unread: 0 }
  return {
    maxElements: maxTimedElements,
    maxBytes: maxSetupBytes + 16,
    parse(bytes, at, position) {
      if (position === 0 && tag > 0) return tag
      const idBytes = numberBytes(bytes[at])
      const sizeAt = at + idBytes
      if (idBytes <= 4 && sizeAt >= bytes.length) return needsMore
      const sizeBytes = numberBytes(bytes[sizeAt])
      const bodyAt = sizeAt + sizeBytes
      if (idBytes <= 4 && sizeBytes <= 8 && bodyAt > bytes.length) return needsMore
      const id = unsigned(bytes, at, sizeAt)
      const headBytes = bodyAt - at
      const stated = sizeOf(bytes, sizeAt, bodyAt)
      const length = Math.min(stated, Math.max(around.leftAt(position) - headBytes, 0))
      // What they contain follows at once; some do not state their length.
      if (masters.has(id) && sizeBytes <= 8) {
        if (id === trackEntry) file.tracks.push(newTrack())
        if (stated < 2 ** (7 * sizeBytes) - 1) around.enter(position + headBytes + length)
        return headBytes
      }
      const read = idBytes <= 4 && sizeBytes <= 8 ? readers.get(id) : undefined
      const isTooLong =
        position + headBytes + length > size || (read !== undefined && length > (read.maxLength ?? size))
      const end = bodyAt + Math.min(length, read?.bytes ?? 0)
      if (idBytes > 4 || sizeBytes > 8 || isTooLong) {
        file.unread = size - position
        return finished
      }
      if (end > bytes.length) return needsMore
      read?.take(file, bytes, { from: bodyAt, to: end, length })
      return headBytes + length
    },
    seconds: () => secondsOf(file, size),
  }
}

function newTrack(): Track {
  return { number: 0, isSound: false, name: '', rate: 0, setup: empty, isPacked: false, codec: undefined, measured: 0 }
}

const empty = Buffer.alloc(0)

function secondsOf({ tracks, scale, last, stated, isEarly, unread }: Recording, size: number): number | undefined {
  const sounds = tracks.filter(({ isSound, name }) => isSound || name.startsWith('A_'))
  if (isEarly || sounds.length === 0) return undefined
  const longest = Math.max(...sounds.map(({ measured }) => measured))
  return largerOf(longest, (Math.max(stated, last) * scale) / 1e9, size) + unread / minBytesPerSecond
}

const trackEntry = 0xae
/** Segment, Info, Tracks, TrackEntry, Audio, Cluster, BlockGroup. */
const masters: ReadonlySet<number> = new Set([
  ...[0x18_53_80_67, 0x15_49_a9_66, 0x16_54_ae_6b, trackEntry, 0xe1, 0x1f_43_b6_75, 0xa0],
])

/** The most bytes of a codec's setup, which for Vorbis is some thousands. */
const maxSetupBytes = 16 * 1024
/** The most bytes of a number, and of a block as far as it is read. */
const maxValueBytes = 12

type Value = { from: number; to: number; length: number }
/** A reader of an element: the most bytes that it reads, and that the element may have. */
type Reader = {
  bytes: number
  maxLength?: number
  take(file: Recording, bytes: Buffer, value: Value): void
}

/** Returns a reader of a number, or another short value, about the file. */
function ofFile(set: (value: Buffer, file: Recording) => Partial<Recording>): Reader {
  const take: Reader['take'] = (file, bytes, { from, to }) => Object.assign(file, set(bytes.subarray(from, to), file))
  return { bytes: maxValueBytes, maxLength: maxValueBytes, take }
}

/** Returns a reader of a value about the track that is described. */
function ofTrack(set: (value: Buffer) => Partial<Track>, bytes = maxValueBytes): Reader {
  const take: Reader['take'] = ({ tracks }, all, { from, to }) => {
    const track = tracks.at(-1)
    if (track) Object.assign(track, set(all.subarray(from, to)))
  }
  return { bytes, maxLength: bytes, take }
}

const packed: Reader = { ...ofTrack(() => ({ isPacked: true })), bytes: 0, maxLength: maxSetupBytes }
const block: Reader = { bytes: maxValueBytes + packetBytes, take: takeBlock }

const readers: ReadonlyMap<number, Reader> = new Map([
  [0xa3, block],
  [0xa1, block],
  [0x2a_d7_b1, ofFile((value) => ({ scale: numberIn(value) }))],
  [0xe7, ofFile((value) => ({ cluster: numberIn(value) }))],
  [0x44_89, ofFile((value, { stated }) => ({ stated: Math.max(stated, floating(value)) }))],
  [0xd7, ofTrack((value) => ({ number: numberIn(value) }))],
  [0x83, ofTrack((value) => ({ isSound: numberIn(value) === 2 }))],
  [0x86, ofTrack((value) => ({ name: value.toString('latin1').replace(/\0+$/, '') }), 256)],
  [0xb5, ofTrack((value) => ({ rate: floating(value) }))],
  [0x63_a2, ofTrack((value) => ({ setup: Buffer.from(value) }), maxSetupBytes)],
  [0x6d_80, packed],
])

/** Measures what a block adds: it has one packet, or several in a lace, of which only the number is read. */
function takeBlock(file: Recording, bytes: Buffer, { from, to, length }: Value): void {
  const numberLength = numberBytes(bytes[from])
  const timeAt = from + numberLength
  if (to < timeAt + 3) return
  file.last = Math.max(file.last, file.cluster + bytes.readInt16BE(timeAt))
  const number = sizeOf(bytes, from, timeAt)
  let isKnown = false
  for (const track of file.tracks) {
    if (track.number !== number) continue
    isKnown = true
    track.codec ??= codecOf(track)
    const { codec, isPacked } = track
    const packetAt = timeAt + 3
    const inPacket = length - (packetAt - from)
    const isLaced = ((bytes[timeAt + 2] ?? 0) & 6) !== 0
    const packets = isLaced ? (bytes[packetAt] ?? 0) + 1 : 1
    const isRead = (!isLaced && !isPacked) || codec.maxSeconds === Infinity
    track.measured += isRead ? codec.measure(bytes, packetAt, inPacket) : packets * codec.maxSeconds
  }
  if (!isKnown) file.isEarly = true
}

function codecOf({ name, setup, rate }: Track): Codec {
  if (name === 'A_OPUS') return opus
  if (name === 'A_VORBIS') return vorbisOf(setup)
  if (name.startsWith('A_AAC')) return aac(setup, rate) ?? unknownCodec
  if (name === 'A_AC3') return unreadCodec(codecRates.ac3)
  if (name.startsWith('A_MPEG/')) return unreadCodec(codecRates.mpeg)
  if (name === 'A_FLAC' && setup.length >= 26) return flacIn(flacRate(setup, 8))
  return unknownCodec
}

/** Reads the three headers of Vorbis, whose lengths come before them. */
function vorbisOf(setup: Buffer): Codec {
  const lengths: number[] = []
  let at = 1
  while (lengths.length < 2 && at < setup.length) {
    let length = 0
    while (setup[at] === 255) {
      length += 255
      at++
    }
    lengths.push(length + (setup[at++] ?? 0))
  }
  const [first = 0, second = 0] = lengths
  return vorbis(setup.subarray(at, at + first), setup.subarray(at + first + second))
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

function numberIn(value: Buffer): number {
  return unsigned(value, 0, value.length)
}

function floating(value: Buffer): number {
  const number = value.length === 8 ? value.readDoubleBE() : value.length === 4 ? value.readFloatBE() : 0
  return Number.isFinite(number) ? number : 0
}
