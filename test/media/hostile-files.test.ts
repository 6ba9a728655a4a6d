import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AudioLength } from '../../src/core/operation.ts'
import { audioLength } from '../../src/media/audio-length.ts'
import { imageSizeOf } from '../../src/media/image-format.ts'
import { limit, processorTime } from '../helpers/time.ts'
import { flac, mp3, mp4, ogg, opusHead, wav, webm, webmHead } from './sounds.ts'

/** Bytes of the largest file that a transcription takes. */
const largest = 32 * 1024 * 1024

/** What one reading of a file took: `pieces` read, and the longest time that one of them held the thread. */
type Reading = { length: AudioLength; ms: number; longestMs: number; pieces: number; closed: boolean }

/** Reads a file as it comes from the disk: piece by piece, each in a turn of the event loop of its own. */
async function read(bytes: Buffer, { signal, onPiece }: { signal?: AbortSignal; onPiece?(piece: number): void } = {}) {
  const reading = { longestMs: 0, pieces: 0, closed: true }
  async function* pieces(into: Uint8Array = Buffer.alloc(65_536)) {
    reading.closed = false
    try {
      for (let at = 0; at < bytes.length; at += into.length) {
        await new Promise<void>((resolve) => setImmediate(resolve))
        reading.pieces++
        onPiece?.(reading.pieces)
        const before = process.threadCpuUsage()
        yield into.subarray(0, bytes.copy(into, 0, at, at + into.length))
        const { user, system } = process.threadCpuUsage(before)
        reading.longestMs = Math.max(reading.longestMs, (user + system) / 1_000)
      }
    } finally {
      reading.closed = true
    }
  }
  const file = { head: bytes.subarray(0, 4_096), size: bytes.length, read: pieces }
  const { result: length, ms } = await processorTime(() => audioLength(file, signal))
  return { ...reading, length, ms } satisfies Reading
}

/** A file of the largest size: a beginning, and the same bytes again and again. */
function repeated(beginning: Buffer, tile: Buffer): Buffer {
  const bytes = Buffer.alloc(largest)
  beginning.copy(bytes)
  return bytes.fill(tile, beginning.length)
}

const boxOf = (name: string, body: Buffer) => {
  const head = Buffer.alloc(8)
  head.writeUInt32BE(8 + body.length)
  head.write(name, 4)
  return Buffer.concat([head, body])
}
const text = (latin1: string) => Buffer.from(latin1, 'latin1')
const oggPage = (flags: number, segments: number[], body = Buffer.alloc(0)) => {
  const head = Buffer.alloc(27)
  head.write('OggS')
  head[5] = flags
  head.writeUInt32LE(1, 14)
  head[26] = segments.length
  return Buffer.concat([head, Buffer.from(segments), body])
}
const opus = Buffer.concat([text('OpusHead'), Buffer.alloc(11)])

const beginnings: { readonly [format: string]: Buffer } = {
  webm: webm(1, { live: true }).subarray(0, 44),
  mp4: mp4(9).subarray(0, 16),
  wav: wav(1).subarray(0, 12),
  ogg: ogg(1).subarray(0, 47),
  mp3: mp3(2),
  flac: flac(0).subarray(0, 42),
}

const densest: readonly (readonly [what: string, format: string, tile: Buffer])[] = [
  ['WebM of elements of two bytes', 'webm', text('\xec\x80')],
  ['WebM of groups of two bytes', 'webm', text('\xa0\x80')],
  ['WebM of times of two bytes', 'webm', text('\xe7\x80')],
  ['WebM of blocks of two bytes', 'webm', text('\xa3\x80')],
  ['WebM of blocks of one byte', 'webm', text('\xa3\x85\x81\0\x01\0\x01')],
  ['WebM of clusters', 'webm', text('\x1f\x43\xb6\x75\x80')],
  ['M4A of boxes of eight bytes', 'mp4', boxOf('free', Buffer.alloc(0))],
  ['M4A of movies of eight bytes', 'mp4', boxOf('moov', Buffer.alloc(0))],
  ['M4A of long boxes without contents', 'mp4', text('\0\0\0\x01free\0\0\0\0\0\0\0\x10')],
  ['M4A of headers without a length', 'mp4', boxOf('mvhd', Buffer.alloc(20))],
  ['M4A of announcements without a length', 'mp4', boxOf('mehd', Buffer.alloc(8))],
  ['WAV of empty chunks', 'wav', text('junk\0\0\0\0')],
  ['WAV of formats', 'wav', Buffer.concat([text('fmt \x10\0\0\0'), Buffer.alloc(16)])],
  ['Ogg of empty pages', 'ogg', oggPage(0, [])],
  ['Ogg of pages of empty packets', 'ogg', oggPage(0, Array(255).fill(0))],
  ['Ogg of first pages', 'ogg', oggPage(2, [19], opus)],
  ['MP3 of the smallest frames', 'mp3', Buffer.concat([text('\xff\xf3\x14\xc0'), Buffer.alloc(20)])],
  ['MP3 of nothing but beginnings of frames', 'mp3', text('\xff')],
  ['MP3 of frames of two kinds', 'mp3', text('\xff\xfb\x90\0\xff\xf3\x14\xc0')],
  ['FLAC of nothing', 'flac', text('\0')],
]

describe('files of the largest size', () => {
  test.each(densest)('%s', { timeout: limit(60_000) }, async (_, format, tile) => {
    const { ms, longestMs, length, closed } = await read(repeated(beginnings[format] as Buffer, tile))
    expect(ms).toBeLessThan(limit(1_000))
    expect(longestMs).toBeLessThan(limit(100))
    expect(length.maxSeconds).toBeGreaterThan(0)
    expect(closed).toBe(true)
  })

  test('any bytes again and again, after the beginning of any format', { timeout: limit(120_000) }, async () => {
    const tile = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 40 }),
      fc.constantFrom(...densest.map(([, , known]) => new Uint8Array(known))),
      fc
        .tuple(fc.constantFrom(...densest), fc.constantFrom(...densest))
        .map(([[, , a], [, , b]]) => Buffer.concat([a, b])),
    )
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...Object.values(beginnings)), tile, async (beginning, bytes) => {
        const { ms, longestMs, closed } = await read(repeated(beginning, Buffer.from(bytes)))
        expect(ms).toBeLessThan(limit(1_000))
        expect(longestMs).toBeLessThan(limit(100))
        expect(closed).toBe(true)
      }),
      { numRuns: 40 },
    )
  })

  test('what has too many parts is estimated by its size, and not read to its end', async () => {
    for (const [format, tile] of [
      ['webm', '\xec\x80'],
      ['mp4', '\0\0\0\x08free'],
      ['wav', 'junk\0\0\0\0'],
    ] as const) {
      const { length, pieces } = await read(repeated(beginnings[format] as Buffer, text(tile)))
      expect(length).toEqual({ seconds: largest / 750, maxSeconds: largest / 750, exact: false })
      expect(pieces).toBeLessThan(100)
    }
  })

  test('a part that is longer than the file ends the reading', async () => {
    const long = Buffer.concat([
      beginnings.webm as Buffer,
      text('\xec\x01\0\0\0\xff\xff\xff\xff'),
      Buffer.alloc(1 << 20),
    ])
    const { length, pieces } = await read(long)
    expect(length.exact).toBe(false)
    expect(pieces).toBe(1)
  })
})

describe('honest recordings', () => {
  test.each([
    // Packets of 20 ms, each in a page of its own.
    ['Ogg of three hours', 10_800, () => honestOgg(10_800)],
    ['WebM of a browser of three hours', 10_800, () => honestWebm(10_800)],
    ['MP3 of more than two hours', 8_000, () => mp3(Math.round((8_000 * 44_100) / 1_152), { rates: [1] })],
  ])('%s is measured exactly', { timeout: limit(60_000) }, async (_, seconds, make) => {
    const bytes = make()
    expect(bytes.length).toBeLessThan(largest)
    const { length, ms, longestMs } = await read(bytes)
    expect(length.exact).toBe(true)
    expect(length.seconds).toBeCloseTo(seconds, 1)
    expect(ms).toBeLessThan(limit(1_000))
    expect(longestMs).toBeLessThan(limit(50))
  })
})

function honestOgg(seconds: number): Buffer {
  const page = oggPage(0, [30], Buffer.alloc(30))
  const pages = Array.from({ length: seconds * 50 }, (_, index) => {
    const copy = Buffer.from(page)
    copy.writeBigInt64LE(BigInt((index + 1) * 960), 6)
    return copy
  })
  return Buffer.concat([opusHead(), oggPage(0, [8], text('OpusTags')), ...pages])
}

function honestWebm(seconds: number): Buffer {
  const block = Buffer.concat([text('\xa3\xa8\x81\0\0\x80'), Buffer.alloc(36)])
  const clusters = Array.from({ length: seconds }, (_, second) => {
    const head = text('\x1f\x43\xb6\x75\x01\xff\xff\xff\xff\xff\xff\xff\xe7\x84\0\0\0\0')
    head.writeUInt32BE(second * 1_000, 14)
    const blocks = Array.from({ length: 50 }, (_, at) => {
      const copy = Buffer.from(block)
      copy.writeInt16BE((at + 1) * 20, 3)
      return copy
    })
    return Buffer.concat([head, ...blocks])
  })
  return Buffer.concat([webmHead(seconds, { live: true }), ...clusters])
}

describe('a client that leaves', () => {
  const skipped: readonly (readonly [format: string, tile: string])[] = [
    ['webm', '\xec\x10\x7f\xff\xff'],
    ['mp4', '\0\x10\0\0free'],
    ['wav', 'junk\0\x10\0\0'],
    ['mp3', '\0'],
  ]
  test.each(skipped)('%s is not read any further', async (format, tile) => {
    const leaving = new AbortController()
    const reason = new Error('gone')
    let last = 0
    const onPiece = (piece: number) => {
      last = piece
      if (piece === 3) leaving.abort(reason)
    }
    const bytes = Buffer.alloc(largest)
    Buffer.concat([beginnings[format] as Buffer, text(tile)]).copy(bytes)
    await expect(read(bytes, { signal: leaving.signal, onPiece })).rejects.toBe(reason)
    expect(last).toBe(3)
    await expect(read(bytes, { signal: leaving.signal, onPiece })).rejects.toBe(reason)
    expect(last).toBe(3)
  })
})

test('a JPEG of thousands of segments has no size', () => {
  const frame = text('\xff\xc0\0\x11\x08\x01\xe0\x02\x80\x03')
  for (const segment of ['\xff', '\xff\xe1\0\x02']) {
    const picture = (count: number) =>
      Buffer.concat([text('\xff\xd8\xff\xe0\0\x02'), Buffer.alloc(count * segment.length, text(segment)), frame])
    expect(imageSizeOf(picture(900))).toEqual({ width: 640, height: 480 })
    expect(imageSizeOf(picture(2_000))).toBeUndefined()
  }
})
