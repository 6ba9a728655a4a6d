import { id3Length } from './audio-format.ts'
import { type AudioParser, finished, hasBytes, maxDescriptions, needsMore } from './audio-parser.ts'

/** The length of a WAV file of so many bytes, by its rate and its data. Seconds. */
export function wavParser(size: number): AudioParser {
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
        // A recorder that writes as it hears does not know how much it will be.
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

/** The length of a FLAC file, as its first block says it. Seconds. */
export function flacParser(head: Uint8Array): AudioParser {
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
