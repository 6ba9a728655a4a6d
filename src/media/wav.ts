import { id3Length } from './audio-format.ts'
import { type AudioParser, finished, hasBytes, maxChunks, needsMore, type ParserFile } from './audio-parser.ts'

/**
 * Returns a parser for the length of a WAV file in seconds: all of its data at the rate, channels and bits of its samples. The byte rate
 * that a header states as well is not read.
 */
export function wavParser({ head, size }: ParserFile): AudioParser {
  const tag = id3Length(head)
  let bytesPerSecond = Infinity
  let dataBytes = 0
  return {
    maxElements: maxChunks,
    parse(bytes, at, position) {
      if (position < tag + 12) return position === 0 ? tag + 12 : finished
      if (bytes.length < at + 8) return needsMore
      const length = bytes.readUInt32LE(at + 4)
      if (hasBytes(bytes, at, 'data')) {
        const left = size - position - 8
        // A recorder that writes while it records does not know the final length.
        const isOpen = length === 0 || length > left
        dataBytes += isOpen ? left : length
        return isOpen ? finished : 8 + length + (length % 2)
      }
      if (hasBytes(bytes, at, 'fmt ') && length >= 16) {
        if (bytes.length < at + 24 + Math.min(length - 16, 10)) return needsMore
        bytesPerSecond = Math.min(bytesPerSecond, rateOf(bytes, at + 8, length) ?? 0)
      }
      return 8 + length + (length % 2)
    },
    seconds: () => (bytesPerSecond > 0 && bytesPerSecond < Infinity ? dataBytes / bytesPerSecond : undefined),
  }
}

/** Returns the bytes of a second of a WAV file by its beginning; 0 where another coding, or nothing, is described there. */
export function wavRate(head: Buffer): number {
  let at = 12
  while (head.length >= at + 34) {
    const length = head.readUInt32LE(at + 4)
    if (hasBytes(head, at, 'fmt ')) return rateOf(head, at + 8, length) ?? 0
    at += 8 + length + (length % 2)
  }
  return 0
}

/** Formats whose samples have a fixed number of bits: PCM, floats, and those of telephones; ADPCM has at least a few bits. */
const codings: { readonly [tag: number]: (bits: number) => number } = {
  1: (bits) => Math.ceil(bits / 8) * 8,
  2: () => 4,
  3: (bits) => Math.ceil(bits / 8) * 8,
  6: () => 8,
  7: () => 8,
  17: (bits) => Math.min(Math.max(bits, 2), 5),
}
const extensible = 0xfffe

/** Returns the bytes of a second by the description of the samples; undefined where it does not determine them. */
function rateOf(bytes: Buffer, at: number, length: number): number | undefined {
  const stated = bytes.readUInt16LE(at)
  const tag = stated === extensible && length >= 26 ? bytes.readUInt16LE(at + 24) : stated
  const bits = codings[tag]?.(bytes.readUInt16LE(at + 14))
  return bits && (bits * bytes.readUInt16LE(at + 2) * bytes.readUInt32LE(at + 4)) / 8
}
