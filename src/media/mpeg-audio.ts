import { id3Length } from './audio-format.ts'
import { type AudioParser, finished, maxTimedElements, needsMore } from './audio-parser.ts'

/**
 * Returns a parser for the length of MPEG audio (MP3), which is the sum of its frames. Seconds; 0 where there is none, or too much else.
 */
export function mpegParser(): AudioParser {
  let seconds = 0
  let lost = 0
  let kind: number | undefined
  return {
    maxElements: maxTimedElements,
    parse(bytes, at, position) {
      if (position === 0) {
        if (bytes.length < 10) return needsMore
        const tag = id3Length(bytes)
        if (tag > 0) return tag
      }
      if (bytes.length < at + 4) return needsMore
      const frame = frameAt(bytes, at)
      if (frame && (kind === undefined || frame.kind === kind)) {
        kind = frame.kind
        seconds += frame.seconds
        return frame.length
      }
      // Bytes that are not a frame are skipped; frames of another kind are not believed.
      const length = nextSync(bytes, at + 1) - at
      lost += length
      return lost > maxSkippedBytes ? finished : length
    },
    seconds: () => (lost > maxSkippedBytes ? 0 : seconds),
  }
}

/** Bytes a second of MPEG audio by its first frame, which is like the others of speech; undefined where it does not begin with one. */
export function mpegRate(beginning: Uint8Array): number | undefined {
  const frame = beginning.length < 10 ? undefined : frameAt(beginning, id3Length(beginning))
  return frame && frame.length / frame.seconds
}

/** Maximum number of bytes of a file that are not frames, such as an image at its end. */
const maxSkippedBytes = 4 * 1024 * 1024

function nextSync(bytes: Uint8Array, from: number): number {
  const at = bytes.indexOf(0xff, from)
  return at < 0 ? bytes.length : at
}

type Frame = { kind: number; seconds: number; length: number }

function frameAt(bytes: Uint8Array, at: number): Frame | undefined {
  const kind = bytes[at + 1] ?? 0
  const rates = bytes[at + 2] ?? 0
  if (bytes[at] !== 0xff || (kind & 0xe0) !== 0xe0) return undefined
  const version = (kind >> 3) & 3
  const layer = 4 - ((kind >> 1) & 3)
  const [rate, bits] = [sampleRates[(rates >> 2) & 3], (rates >> 4) & 15]
  const isOne = version === 3
  const kilobits = bitRates[isOne ? layer - 1 : layer === 1 ? 3 : 4]?.[bits]
  if (version === 1 || layer === 4 || rate === undefined || !kilobits) return undefined
  const hertz = isOne ? rate : version === 2 ? rate / 2 : rate / 4
  const samples = layer === 1 ? 384 : layer === 3 && !isOne ? 576 : 1152
  const slot = layer === 1 ? 4 : 1
  const slots = Math.floor((samples / 8 / slot) * ((kilobits * 1000) / hertz)) + ((rates >> 1) & 1)
  // Version, layer and rate are the same in all frames of a file.
  return { kind: (kind & 0x1e) * 256 + (rates & 0x0c), seconds: samples / hertz, length: slots * slot }
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
