import { minBytesPerSecond } from './audio-parser.ts'
import { flacFrame, flacHeaderBytes } from './flac.ts'

/**
 * Measures how long each packet of a codec sounds, in seconds. Of a packet of `length` bytes, those at `at` are here, as far as
 * `packetBytes`.
 */
export type PacketMeter = (bytes: Buffer, at: number, length: number) => number

/** A codec: its meter, and the longest that a packet sounds of which only the presence is known. */
export type Codec = { measure: PacketMeter; maxSeconds: number }

/** The most bytes of a packet that a meter reads. */
export const packetBytes = flacHeaderBytes

/** Opus: the first byte of a packet determines how long its frames are, and it or the second one how many there are. */
export const opus: Codec = {
  measure(bytes, at, length) {
    if (length === 0) return 0
    const first = bytes[at] ?? 0
    const form = first >> 3
    const count = [1, 2, 2, length > 1 ? (bytes[at + 1] ?? 0) & 63 : 0][first & 3] ?? 0
    return (count * ((form < 12 ? spoken[form & 3] : form < 16 ? mixed[form & 1] : played[form & 3]) ?? 0)) / 1_000
  },
  maxSeconds: 0.12,
}

/** Milliseconds of a frame. */
const spoken = [10, 20, 40, 60]
const mixed = [10, 20]
const played = [2.5, 5, 10, 20]

/** Returns a codec all of whose packets sound for the same time. */
export function even(seconds: number): Codec {
  return { measure: () => seconds, maxSeconds: seconds }
}

/** Returns a codec whose packets are not read: they last as long as their bytes can. */
export function unreadCodec(bytesPerSecond: number): Codec {
  return { measure: (_, __, length) => length / bytesPerSecond, maxSeconds: Infinity }
}

/** A codec that is not known. */
export const unknownCodec = unreadCodec(minBytesPerSecond)

/** Returns the codec of FLAC whose frames may leave out their `rate`. */
export function flacIn(rate: number): Codec {
  return {
    measure: (bytes, at) => flacFrame(bytes, at, rate)?.seconds ?? 0,
    maxSeconds: 65_536 / Math.max(rate, 1),
  }
}

/**
 * Returns the codec of Vorbis: a packet has a quarter of its block and of the one before. `identification` and `setup` are two of its
 * headers; without the latter each block counts as a long one.
 */
export function vorbis(identification: Uint8Array, setup: Uint8Array | undefined): Codec {
  const view = Buffer.from(identification.buffer, identification.byteOffset, identification.byteLength)
  const rate = view.length < 29 ? 0 : view.readUInt32LE(12)
  if (rate === 0) return unknownCodec
  const sizes = view[28] ?? 0
  const [short, long] = [2 ** (sizes & 15), 2 ** (sizes >> 4)]
  const modes = setup && vorbisModes(setup)
  const mask = modes ? 2 ** Math.ceil(Math.log2(Math.max(modes.length, 1))) - 1 : 0
  let before = 0
  return {
    measure(bytes, at, length) {
      const first = bytes[at] ?? 0
      if (length === 0 || (first & 1) === 1) return 0
      const block = (modes?.[(first >> 1) & mask] ?? true) ? long : short
      const samples = before === 0 ? 0 : (before + block) / 4
      before = block
      return samples / rate
    },
    maxSeconds: Math.max(short, long) / 2 / rate,
  }
}

/** Bits of a mode: whether its block is long, its window and its transform, which are 0, and its mapping. */
const modeBits = 41

/**
 * Finds which modes have long blocks. They are the last thing of the setup header, before a bit that is set, and their number is
 * before them; what comes earlier is as long as half the decoder to read.
 */
function vorbisModes(setup: Uint8Array): boolean[] | undefined {
  const bitAt = (place: number) => ((setup[place >> 3] ?? 0) >> (place & 7)) & 1
  const number = (from: number, bits: number) => {
    let sum = 0
    for (let index = bits - 1; index >= 0; index--) sum = sum * 2 + bitAt(from + index)
    return sum
  }
  let end = setup.length * 8 - 1
  while (end > 0 && bitAt(end) === 0) end--
  const modes: boolean[] = []
  let found: boolean[] | undefined
  for (let from = end - modeBits; from >= 6 && modes.length < 64; from -= modeBits) {
    if (number(from + 1, 32) !== 0 || number(from + 33, 8) > 63) break
    modes.unshift(bitAt(from) === 1)
    if (number(from - 6, 6) + 1 === modes.length) found = [...modes]
  }
  return found
}

/** Returns the codec of AAC by its configuration, whose frames have 1,024 samples, and those of newer kinds more. */
export function aac(config: Uint8Array, statedRate: number): Codec | undefined {
  const bits = config.reduce(
    (sum, byte, index) => (index < 8 ? sum | (BigInt(byte) << BigInt(56 - 8 * index)) : sum),
    0n,
  )
  const take = (from: number, count: number) =>
    Number((bits >> BigInt(64 - from - count)) & ((1n << BigInt(count)) - 1n))
  const isLong = config.length > 0 && take(0, 5) === 31
  const kind = isLong ? 32 + take(5, 6) : take(0, 5)
  const at = isLong ? 11 : 5
  const place = take(at, 4)
  const rate = config.length < 2 ? statedRate : place === 15 ? take(at + 4, 24) : aacRates[place]
  return rate ? even((kind === newestKind ? 4_096 : 1_024) / rate) : undefined
}

/** USAC. */
const newestKind = 42

/** Samples per second by their number in headers of AAC. */
export const aacRates: readonly number[] = [
  ...[96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350],
]
