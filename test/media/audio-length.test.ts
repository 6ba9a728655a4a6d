import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { audioFormatOf } from '../../src/media/audio-format.ts'
import { audioLength } from '../../src/media/audio-length.ts'
import { flac, mp3, mp4, ogg, oggVorbis, oggWith, wav, webm } from './sounds.ts'

/** The length of a file that comes in pieces of so many bytes. */
async function lengthOf(bytes: Buffer, piece = 65_536) {
  let closed = true
  async function* read(into: Uint8Array = Buffer.alloc(piece)) {
    closed = false
    try {
      const step = Math.min(piece, into.length)
      for (let at = 0; at < bytes.length; at += step) yield into.subarray(0, bytes.copy(into, 0, at, at + step))
    } finally {
      closed = true
    }
  }
  const length = await audioLength({ head: bytes.subarray(0, 4_096), size: bytes.length, read })
  return { ...length, closed }
}

const files: readonly (readonly [string, Buffer, number])[] = [
  ['WAV', wav(2.5), 2.5],
  ['WAV of a recorder that did not know its end', wav(3, { dataSize: 0xffff_ffff }), 3],
  ['MP3 of one rate', mp3(100), (100 * 1152) / 44_100],
  [
    'MP3 of several rates, after a tag with a picture',
    mp3(100, { rates: [1, 9, 14], tag: 5_000 }),
    (100 * 1152) / 44_100,
  ],
  ['FLAC', flac(16_000 * 7), 7],
  ['Ogg Opus', ogg(4.5), 4.5],
  ['Ogg Opus, one stream after the other', ogg(4, 2.5), 6.5],
  ['M4A', mp4(9), 9],
  ['M4A with long numbers', mp4(9, { version: 1 }), 9],
  ['M4A in fragments', mp4(9, { fragments: true }), 9],
  ['WebM', webm(3.25), 3.25],
  ['WebM of a browser', webm(3.25, { live: true }), 3.25],
]

describe('the length of sounds', () => {
  test.each(files)('%s', async (_, bytes, seconds) => {
    for (const piece of [65_536, 1_000, 7]) {
      const length = await lengthOf(bytes, piece)
      expect(length.exact).toBe(true)
      expect(length.seconds).toBeCloseTo(seconds, 5)
      expect(length.maxSeconds).toBe(length.seconds)
      expect(length.closed).toBe(true)
    }
  })
  test.each([
    ['a FLAC without frames', flac(0)],
    ['an M4A without a header', mp4(9).subarray(0, 3_000)],
    ['an M4A of a codec that is not known', mp4(9, { codec: 'xxxx' })],
    ['a film of MPEG without sound', Buffer.concat([Buffer.from([0, 0, 1, 0xba]), Buffer.alloc(8_000)])],
    ['a tag with something else after it', Buffer.concat([mp3(0, { tag: 5_000 }), ogg(2)])],
    ['nothing', Buffer.from('OggS')],
  ])('is estimated by the size: %s', async (_, bytes) => {
    const { seconds, maxSeconds, exact } = await lengthOf(bytes)
    expect(exact).toBe(false)
    expect(seconds).toBe(bytes.length / 750)
    expect(maxSeconds).toBe(bytes.length / 750)
  })

  test.each([
    ['ac-3', 4_000],
    ['.mp3', 1_000],
    ['samr', 650],
    ['sawb', 900],
  ])('is estimated by the lowest bit rate of a codec that is not measured: %s', async (codec, bytesPerSecond) => {
    const bytes = mp4(9, { codec })
    const longest = bytes.length / bytesPerSecond
    expect(await lengthOf(bytes)).toMatchObject({ seconds: longest, maxSeconds: longest, exact: false })
  })

  test('what a decoder may find behind broken bytes is added', async () => {
    for (const [bytes, seconds] of [
      [Buffer.concat([ogg(2), Buffer.alloc(7_500)]), 12],
      [Buffer.concat([webm(2, { live: true }), Buffer.alloc(7_500)]), 12],
    ] as const) {
      expect((await lengthOf(bytes)).seconds).toBeCloseTo(seconds, 1)
    }
  })

  test('a header that states more is believed as far as silence would allow', async () => {
    for (const [stated, seconds] of [
      [60, 60],
      [4_000_000, 8.96],
    ]) {
      expect((await lengthOf(mp4(9, { stated: stated as number }))).seconds).toBeCloseTo(seconds as number, 5)
    }
  })

  test('any bytes after a beginning are read to their end, or given up', async () => {
    const random = Buffer.alloc(3_000)
    for (let at = 0, seed = 1; at < random.length; at++) {
      seed = (seed * 48_271) % 0x7fff_ffff
      random[at] = seed & 255
    }
    for (const [, bytes] of files) {
      for (const cut of [5, 12, 30, 60, 200]) {
        const length = await lengthOf(Buffer.concat([bytes.subarray(0, cut), random]), 100)
        expect(length.seconds).toBeGreaterThanOrEqual(0)
        expect(length.closed).toBe(true)
      }
    }
  })
})

test('formats are told by their first bytes', () => {
  expect(audioFormatOf(Buffer.concat([Buffer.from('ID3\x04\0\0\0\0\0\0'), ogg(1)]))).toBe('ogg')
  expect(files.map(([, bytes]) => audioFormatOf(bytes))).toEqual([
    'wav',
    'wav',
    'mp3',
    'mp3',
    'flac',
    'ogg',
    'ogg',
    'mp4',
    'mp4',
    'mp4',
    'webm',
    'webm',
  ])
  expect(audioFormatOf(Buffer.from([0, 0, 1, 0xba]))).toBe('mpeg')
  for (const other of ['', '{"a":1}', '<html>', '%PDF-1.7', '\xff\xf1\x50', '\xff\xd8\xff', 'RIFF1234AVI ', 'ID']) {
    expect(audioFormatOf(Buffer.from(other, 'latin1')), other).toBeUndefined()
  }
})

/** How one header is forged, with a number from 0 to 1 that says by how much; the sound always lasts six seconds. */
const forgeries: { readonly [what: string]: (share: number) => Buffer } = {
  'the byte rate of a WAV': (share) => wav(6, { byteRate: Math.round(16_000 / Math.max(share, 1e-5)) }),
  'the data of a WAV, of which there are many': (share) => {
    const pieces = Array.from({ length: 60 }, () => wav(0.1).subarray(36))
    return Buffer.concat([wav(0, { byteRate: Math.round(1e6 * share) }).subarray(0, 36), ...pieces])
  },
  'the samples of a FLAC': (share) => flac(96_000, 16_000, Math.round(96_000 * share)),
  'the positions of an Ogg': (share) => oggWith((samples) => samples * share, 6),
  'the position of a Vorbis': (share) => oggVorbis([...Array(47).fill(true), true], Math.round(48_000 * share)),
  'the duration of an M4A': (share) => mp4(6, { stated: 6 * share }),
  'the duration of an M4A in fragments': (share) => mp4(6, { stated: 6 * share, fragments: true }),
  'the duration of a WebM': (share) => webm(6, { stated: 6 * share }),
  'the unit of a WebM': (share) => webm(6, { scale: Math.round(1e6 * share) }),
  'the unit of a WebM without a duration': (share) => webm(6, { scale: Math.round(1e6 * share), live: true }),
  'the first frame of an MP3': (share) => {
    const other = Buffer.alloc(Math.floor(144 * 40 + 1))
    other.set([0xff, 0xf3, 0x10 + 16 * Math.floor(share * 13), 0])
    return Buffer.concat([other.subarray(0, 26), mp3(230)])
  },
}

describe('a forged header', () => {
  test.each(Object.entries(forgeries))('does not make a recording shorter: %s', async (_, forge) => {
    await fc.assert(
      fc.asyncProperty(fc.double({ min: 0, max: 1, noNaN: true }), async (share) => {
        const { seconds, maxSeconds } = await lengthOf(forge(share))
        expect(seconds).toBeGreaterThanOrEqual(0.98 * 6)
        expect(maxSeconds).toBeGreaterThanOrEqual(seconds)
        expect(maxSeconds).toBeLessThanOrEqual(2 * 6.2)
      }),
      { numRuns: 15 },
    )
  })
})
