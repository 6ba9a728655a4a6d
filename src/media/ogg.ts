import { type AudioParser, finished, hasBytes, maxTimedElements, needsMore } from './audio-parser.ts'

/** The length of an Ogg file: the last position of its sound, of several streams after each other the sum. Seconds. */
export function oggParser(): AudioParser {
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
        if (sound) seconds += secondsOf(sound)
        sound = begun
      } else if (sound && serial === sound.serial) {
        const high = bytes.readInt32LE(at + 10)
        // A page on which no packet ends has none.
        if (high >= 0) sound.samples = high * 2 ** 32 + bytes.readUInt32LE(at + 6)
      }
      return bodyAt - at + length
    },
    seconds: () => (isBroken || !sound ? undefined : seconds + secondsOf(sound)),
  }
}

type Sound = { serial: number; rate: number; before: number; samples: number }

function secondsOf({ rate, before, samples }: Sound): number {
  return Math.max(samples - before, 0) / rate
}

/** The most bytes that are read of the first packet of a stream, which identifies it. */
const maxPacketBytes = 40

function soundOf(bytes: Buffer, at: number, length: number, serial: number): Sound | undefined {
  const sound = (rate: number, before = 0) => (rate > 0 ? { serial, rate, before, samples: 0 } : undefined)
  if (length >= 12 && hasBytes(bytes, at, 'OpusHead')) return sound(48_000, bytes.readUInt16LE(at + 10))
  if (length >= 16 && hasBytes(bytes, at, '\x01vorbis')) return sound(bytes.readUInt32LE(at + 12))
  if (length >= 40 && hasBytes(bytes, at, 'Speex   ')) return sound(bytes.readUInt32LE(at + 36))
  if (length >= 30 && hasBytes(bytes, at, '\x7fFLAC')) return sound(bytes.readUIntBE(at + 27, 3) >> 4)
  return undefined
}
