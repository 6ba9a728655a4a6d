import { describe, expect, test } from 'vitest'
import { audioFormatOf } from '../../src/media/audio-format.ts'
import { audioLength } from '../../src/media/audio-length.ts'
import { flac, mp3, mp4, ogg, wav, webm } from './sounds.ts'

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
    ['a FLAC that does not say it', flac(0)],
    ['an M4A without a header', mp4(9).subarray(0, 3_000)],
    ['a header that says a second of an hour', mp4(1, { sound: 8_000_000 })],
    ['a header that says a year', mp4(4_000_000)],
    ['an Ogg with something else in it', Buffer.concat([ogg(2), Buffer.alloc(5_000)])],
    ['a film of MPEG', Buffer.concat([Buffer.from([0, 0, 1, 0xba]), Buffer.alloc(8_000)])],
    ['nothing', Buffer.from('OggS')],
  ])('is estimated by the size: %s', async (_, bytes) => {
    const { seconds, maxSeconds, exact } = await lengthOf(bytes)
    expect(exact).toBe(false)
    expect(seconds).toBe(bytes.length / 8_000)
    expect(maxSeconds).toBe(bytes.length / 750)
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
