/** Files with sound as their formats have them, made of silence: as long as said. */

/** PCM of 16 bits. */
export function wav(
  seconds: number,
  { rate = 8_000, dataSize, byteRate = rate * 2 }: { rate?: number; dataSize?: number; byteRate?: number } = {},
): Buffer {
  const data = Buffer.alloc(Math.round(seconds * rate) * 2)
  const head = Buffer.alloc(44)
  head.write('RIFF', 0)
  head.writeUInt32LE(36 + data.length, 4)
  head.write('WAVEfmt ', 8)
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(rate, 24)
  head.writeUInt32LE(byteRate, 28)
  head.writeUInt16LE(2, 32)
  head.writeUInt16LE(16, 34)
  head.write('data', 36)
  head.writeUInt32LE(dataSize ?? data.length, 40)
  return Buffer.concat([head, data])
}

/** MPEG-1 layer 3 at 44.1 kHz: frames of 1152 samples, at the bit rates of these indices in turn, after a tag. */
export function mp3(frames: number, { rates = [9], tag = 0 }: { rates?: number[]; tag?: number } = {}): Buffer {
  const kilobits = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
  const all = Array.from({ length: frames }, (_, index) => {
    const rate = rates[index % rates.length] as number
    const frame = Buffer.alloc(Math.floor((144_000 * (kilobits[rate] as number)) / 44_100))
    frame.set([0xff, 0xfb, rate << 4, 0])
    return frame
  })
  const id3 = Buffer.from([0x49, 0x44, 0x33, 4, 0, 0, 0, 0, tag >> 7, tag & 127])
  // A tag may hold what looks like a frame.
  const art = Buffer.alloc(tag, Buffer.from([0xff, 0xfb, 0x90, 0]))
  return Buffer.concat([...(tag > 0 ? [id3, art] : []), ...all])
}

/** Frames of 4,096 samples. `stated` is the number of samples that the header declares. */
export function flac(samples: number, rate = 16_000, stated = samples): Buffer {
  const head = Buffer.alloc(42)
  head.write('fLaC', 0)
  head.set([0, 0, 0, 34], 4)
  head.writeUIntBE(rate << 4, 18, 3)
  head[21] = Math.floor(stated / 2 ** 32)
  head.writeUInt32BE(stated % 2 ** 32, 22)
  const frames = Array.from({ length: Math.ceil(samples / flacBlock) }, (_, index) =>
    flacFrame(Math.min(flacBlock, samples - index * flacBlock), index & 127),
  )
  return Buffer.concat([head, ...(frames.length > 0 ? frames : [Buffer.alloc(2_000)])])
}

const flacBlock = 4_096

/** A frame at the rate of its file, with the checksum of its header. */
function flacFrame(samples: number, number: number): Buffer {
  const frame = Buffer.alloc(500)
  frame.set([0xff, 0xf8, 0x70, 0x08, number])
  frame.writeUInt16BE(samples - 1, 5)
  let sum = 0
  for (const byte of frame.subarray(0, 7)) {
    sum ^= byte
    for (let bit = 0; bit < 8; bit++) sum = sum & 128 ? ((sum << 1) ^ 7) & 255 : sum << 1
  }
  frame[7] = sum
  return frame
}

type Page = { first?: boolean; position: bigint; packets: Buffer[]; serial?: number; open?: boolean }

/** One page; the last packet of an `open` one goes on on the next. */
function oggPage({ first, position, packets, serial = 1, open = false }: Page): Buffer {
  const segments = packets.flatMap(({ length }, index) => {
    const full = Array(Math.floor(length / 255)).fill(255)
    return open && index === packets.length - 1 ? full : [...full, length % 255]
  })
  const head = Buffer.alloc(27)
  head.write('OggS', 0)
  head[5] = first ? 2 : 0
  head.writeBigInt64LE(position, 6)
  head.writeUInt32LE(serial, 14)
  head[26] = segments.length
  return Buffer.concat([head, Buffer.from(segments), ...packets])
}

/** The first page of Opus, of which 312 samples are not played. */
export function opusHead(serial = 1): Buffer {
  const opus = Buffer.alloc(19)
  opus.write('OpusHead', 0)
  opus.writeUInt16LE(312, 10)
  return oggPage({ first: true, position: 0n, packets: [opus], serial })
}

/** Packets of 10 ms each, in pages of 50; `granule` turns the position of a page, in samples, into the one that it states. */
function opusPages(seconds: number, serial: number, granule: (samples: number) => number): Buffer[] {
  const count = Math.round(seconds * 100)
  return Array.from({ length: Math.ceil(count / 50) }, (_, index) => {
    const packets = Array.from({ length: Math.min(50, count - index * 50) }, () => Buffer.alloc(30))
    const samples = (index * 50 + packets.length) * 480
    return oggPage({ position: BigInt(Math.round(granule(samples + 312))), packets, serial })
  })
}

/** Opus, in chained streams of these seconds; on one page of each no packet ends. */
export function ogg(...streams: number[]): Buffer {
  return oggWith((samples) => samples, ...streams)
}

/** The same with other positions. */
export function oggWith(granule: (samples: number) => number, ...streams: number[]): Buffer {
  const pages = streams.flatMap((seconds, index) => {
    const serial = index + 1
    return [
      opusHead(serial),
      oggPage({ position: 0n, packets: [Buffer.from('OpusTags')], serial }),
      ...opusPages(seconds - 0.01, serial, granule),
      oggPage({ position: -1n, packets: [Buffer.alloc(255)], serial, open: true }),
      oggPage({ position: BigInt(Math.round(granule(seconds * 48_000 + 312))), packets: [], serial }),
    ]
  })
  return Buffer.concat(pages)
}

/** Vorbis at 8 kHz: blocks of 256 and 2,048 samples, which are long where `blocks` says so. */
export function oggVorbis(blocks: boolean[], granule: number): Buffer {
  return Buffer.concat([
    oggPage({ first: true, position: 0n, packets: [vorbisHead] }),
    oggPage({ position: 0n, packets: [Buffer.from('\x03vorbis'), vorbisSetup] }),
    ...blocks.map((isLong, index) =>
      oggPage({
        position: BigInt(index === blocks.length - 1 ? granule : 0),
        packets: [Buffer.alloc(60, isLong ? 2 : 0)],
      }),
    ),
  ])
}

const vorbisHead = Buffer.alloc(30)
vorbisHead.write('\x01vorbis', 'latin1')
vorbisHead.writeUInt32LE(8_000, 12)
vorbisHead[28] = 0xb8
vorbisHead[29] = 1

/** Ends with the number of modes and two of them, the second with long blocks, and a bit. */
const vorbisSetup = ((): Buffer => {
  const bits = [1, 0, 0, 0, 0, 0, ...mode(0, 0), ...mode(1, 1), 1]
  const end = Buffer.alloc(Math.ceil(bits.length / 8))
  for (const [place, bit] of bits.entries()) end[place >> 3] = (end[place >> 3] ?? 0) | (bit << (place & 7))
  return Buffer.concat([Buffer.from('\x05vorbis'), Buffer.alloc(100, 0x55), end])
})()

function mode(isLong: number, mapping: number): number[] {
  return [isLong, ...Array(32).fill(0), ...Array.from({ length: 8 }, (_, bit) => (mapping >> bit) & 1)]
}

function box(name: string, ...bodies: Buffer[]): Buffer {
  const body = Buffer.concat(bodies)
  const head = Buffer.alloc(8)
  head.writeUInt32BE(8 + body.length, 0)
  head.write(name, 4)
  return Buffer.concat([head, body])
}

type Mp4 = { version?: number; fragments?: boolean; sound?: number; stated?: number; codec?: string }

/** An M4A of AAC at 16 kHz, whose header comes after its sound, as recorders write it. `stated` are the seconds of the headers. */
export function mp4(
  seconds: number,
  { version = 0, fragments = false, sound = 4_000, stated = seconds, codec = 'mp4a' }: Mp4 = {},
): Buffer {
  const header = Buffer.alloc(version === 1 ? 112 : 100)
  header[0] = version
  const scale = 1_000
  const count = fragments ? 0 : stated * scale
  if (version === 1) {
    header.writeUInt32BE(scale, 20)
    header.writeBigUInt64BE(BigInt(count), 24)
  } else {
    header.writeUInt32BE(scale, 12)
    header.writeUInt32BE(count, 16)
  }
  const announced = Buffer.alloc(8)
  announced.writeUInt32BE(stated * scale, 4)
  const samples = Math.floor((seconds * 16_000) / 1_024)
  const track = soundTrack(fragments ? 0 : samples, codec)
  const movie = box('moov', box('mvhd', header), track, ...(fragments ? [box('mvex', box('mehd', announced))] : []))
  const long = Buffer.concat([Buffer.from([0, 0, 0, 1]), Buffer.from('mdat'), Buffer.alloc(8), Buffer.alloc(sound)])
  long.writeBigUInt64BE(BigInt(long.length), 8)
  const pieces = fragments ? [movie, fragment(samples - 1), fragment(1), long] : [long, movie]
  return Buffer.concat([box('ftyp', Buffer.from('M4A isom')), ...pieces])
}

function fragment(samples: number): Buffer {
  return box('moof', box('traf', box('tfhd', words(0, 1)), box('trun', words(0, samples))))
}

function soundTrack(samples: number, codec: string): Buffer {
  // The stream, how it is decoded, and AAC-LC at 16 kHz of one channel.
  const config = Buffer.from([3, 22, 0, 1, 0, 4, 17, 0x40, 0x15, ...Array(11).fill(0), 5, 2, 0x14, 0x08])
  const sampled = Buffer.alloc(28)
  sampled.writeUInt16BE(16_000, 24)
  const entry = box(codec, sampled, box('esds', words(0), config))
  const table = box(
    'stbl',
    box('stsd', words(0, 1), entry),
    box('stts', words(0, 1, samples, 1)),
    box('stsz', words(0, 0, samples)),
  )
  const media = box('mdia', box('hdlr', words(0, 0), Buffer.from('soun'), Buffer.alloc(12)), box('minf', table))
  return box('trak', box('tkhd', words(0, 0, 0, 1, 0, 0)), media)
}

function words(...numbers: number[]): Buffer {
  const bytes = Buffer.alloc(numbers.length * 4)
  for (const [index, number] of numbers.entries()) bytes.writeUInt32BE(number, index * 4)
  return bytes
}

function element(id: number[], body: Buffer, unknown = false): Buffer {
  const size = Buffer.alloc(8)
  size.writeBigUInt64BE(BigInt(body.length) | (1n << 56n))
  return Buffer.concat([Buffer.from(id), unknown ? Buffer.from([0x01, 255, 255, 255, 255, 255, 255, 255]) : size, body])
}

type Webm = { live?: boolean; stated?: number; scale?: number; codec?: string }

/** The beginning of a WebM before its clusters: with its length, or as a browser records it, without any length. */
export function webmHead(
  seconds: number,
  { live = false, stated = seconds, scale = 1e6, codec = 'A_OPUS' }: Webm = {},
) {
  const number = Buffer.alloc(8)
  number.writeDoubleBE(stated * 1_000)
  const info = element(
    [0x15, 0x49, 0xa9, 0x66],
    Buffer.concat([element([0x2a, 0xd7, 0xb1], words(scale)), ...(live ? [] : [element([0x44, 0x89], number)])]),
  )
  const track = [
    element([0xd7], Buffer.from([1])),
    element([0x83], Buffer.from([2])),
    element([0x86], Buffer.from(codec)),
  ]
  const tracks = element([0x16, 0x54, 0xae, 0x6b], element([0xae], Buffer.concat(track)))
  const segment = element([0x18, 0x53, 0x80, 0x67], Buffer.alloc(0), true)
  return Buffer.concat([element([0x1a, 0x45, 0xdf, 0xa3], Buffer.alloc(20)), segment, info, tracks])
}

/** WebM of Opus in packets of 10 ms. */
export function webm(seconds: number, options: Webm = {}): Buffer {
  const packets = Math.round(seconds * 100)
  const clusters = Array.from({ length: Math.ceil(packets / 100) }, (_, at) => {
    const blocks = Array.from({ length: Math.min(100, packets - at * 100) }, (_, index) => {
      const body = Buffer.alloc(40)
      body[0] = 0x81
      body.writeInt16BE(index * 10, 1)
      return index % 2 === 0 ? element([0xa3], body) : element([0xa0], element([0xa1], body))
    })
    const time = element([0xe7], words(at * 1_000))
    return element([0x1f, 0x43, 0xb6, 0x75], Buffer.concat([time, ...blocks]), options.live)
  })
  return Buffer.concat([webmHead(seconds, options), ...clusters])
}
