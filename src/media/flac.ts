import { id3Length } from './audio-format.ts'
import { type AudioParser, largerOf, maxTimedElements, needsMore, type ParserFile } from './audio-parser.ts'

/** Returns a parser for the length of a FLAC file in seconds: the sum of its frames, or what its first block states if that is more. */
export function flacParser({ head, size }: ParserFile): AudioParser {
  const infoAt = id3Length(head) + 8
  let rate = 0
  let stated = 0
  let seconds = 0
  return {
    maxElements: maxTimedElements,
    parse(bytes, at, position) {
      if (position === 0) return infoAt
      if (bytes.length < at + 18) return needsMore
      if (position === infoAt) {
        rate = flacRate(bytes, at)
        stated = ((bytes[at + 13] ?? 0) & 15) * 2 ** 32 + bytes.readUInt32BE(at + 14)
        return 18
      }
      const frame = flacFrame(bytes, at, rate)
      if (frame) seconds += frame.seconds
      const next = bytes.indexOf(0xff, at + (frame?.headerBytes ?? 1))
      return (next < 0 ? bytes.length : next) - at
    },
    seconds: () => (seconds > 0 ? largerOf(seconds, rate > 0 ? stated / rate : 0, size) : undefined),
  }
}

/** The samples per second that the first block of a FLAC states. */
export function flacRate(bytes: Buffer, at: number): number {
  return bytes.readUIntBE(at + 10, 3) >> 4
}

/** Most bytes of the header of a frame. */
export const flacHeaderBytes = 16

/**
 * Reads the header of the frame that begins at a place: how long it sounds. Undefined where there is none, as its checksum shows. `rate` is that of the file, which a frame may leave out.
 */
export function flacFrame(
  bytes: Buffer,
  at: number,
  rate: number,
): { seconds: number; headerBytes: number } | undefined {
  if (bytes[at] !== 0xff || ((bytes[at + 1] ?? 0) & 0xfe) !== 0xf8) return undefined
  const [sizes = 0, channels = 0] = [bytes[at + 2], bytes[at + 3]]
  const [block, hertz] = [sizes >> 4, sizes & 15]
  if (block === 0 || hertz === 15 || channels >> 4 > 10 || (channels & 1) === 1) return undefined
  let end = at + 4 + numberLength(bytes[at + 4] ?? 0)
  let samples = block === 1 ? 192 : block < 6 ? 576 << (block - 2) : 256 << (block - 8)
  if (block === 6) samples = (bytes[end++] ?? 0) + 1
  if (block === 7) {
    samples = pairAt(bytes, end) + 1
    end += 2
  }
  let perSecond = rates[hertz] ?? rate
  if (hertz === 12) perSecond = (bytes[end++] ?? 0) * 1_000
  if (hertz === 13 || hertz === 14) {
    perSecond = pairAt(bytes, end) * (hertz === 14 ? 10 : 1)
    end += 2
  }
  if (checksum(bytes, at, end) !== bytes[end] || perSecond === 0) return undefined
  return { seconds: samples / perSecond, headerBytes: end + 1 - at }
}

function pairAt(bytes: Buffer, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)
}

const rates = [
  ...[undefined, 88_200, 176_400, 192_000, 8_000, 16_000, 22_050, 24_000],
  ...[32_000, 44_100, 48_000, 96_000],
]

/** Returns the bytes of the number of a frame, which is written as UTF-8 is. */
function numberLength(first: number): number {
  return first < 0x80 ? 1 : Math.max(Math.clz32(~(first << 24)), 1)
}

function checksum(bytes: Buffer, from: number, to: number): number {
  let sum = 0
  for (let at = from; at < to; at++) {
    sum ^= bytes[at] ?? 0
    for (let bit = 0; bit < 8; bit++) sum = sum & 0x80 ? ((sum << 1) ^ 7) & 255 : sum << 1
  }
  return sum
}
