import { Readable } from 'node:stream'
import {
  brotliCompressSync,
  constants,
  createGzip,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib'
import { expect, test } from 'vitest'
import { decompressed } from '../../src/upstream/http/decompress.ts'
import { within } from '../helpers/provider.ts'

const text = 'data: {"hello": "wörld"}\n\n'.repeat(500)

const codings: [coding: string, encode: (bytes: Buffer) => Buffer][] = [
  ['gzip', (bytes) => gzipSync(bytes)],
  ['x-gzip', (bytes) => gzipSync(bytes)],
  ['GZIP', (bytes) => gzipSync(bytes)],
  ['deflate', (bytes) => deflateSync(bytes)],
  ['deflate', (bytes) => deflateRawSync(bytes)],
  ['br', (bytes) => brotliCompressSync(bytes)],
  ['zstd', (bytes) => zstdCompressSync(bytes)],
  ['identity', (bytes) => bytes],
  ['', (bytes) => bytes],
  ['gzip, br', (bytes) => brotliCompressSync(gzipSync(bytes))],
]

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/** The text of these bytes, and how often their connection was closed. */
async function read(encoding: string | undefined, bytes: AsyncIterable<Uint8Array>) {
  let discarded = 0
  const facts = { encoding, provider: 'p', discard: () => void discarded++ }
  const chunks: Uint8Array[] = []
  for await (const chunk of decompressed(bytes, facts)) chunks.push(chunk)
  return { text: Buffer.concat(chunks).toString(), discarded }
}

test.each(codings)('%j is read, however it is cut', async (coding, encode) => {
  for (const size of [1, 7, 100_000]) {
    expect((await read(coding, inPieces(encode(Buffer.from(text)), size))).text).toBe(text)
  }
  expect((await read(coding, inPieces(Buffer.alloc(0), 1))).text).toBe('')
})

test('bytes that nobody compressed are passed on as they are', () => {
  const bytes = inPieces(Buffer.from(text), 10)
  expect(decompressed(bytes, { encoding: undefined, provider: 'p', discard() {} })).toBe(bytes)
})

test('events come out as soon as they went in', async () => {
  const gzip = createGzip({ flush: constants.Z_SYNC_FLUSH })
  const out = decompressed(gzip as AsyncIterable<Uint8Array>, { encoding: 'gzip', provider: 'p', discard() {} })
  const events = out[Symbol.asyncIterator]()
  for (const event of ['data: one\n\n', 'data: two\n\n']) {
    gzip.write(event)
    const { value } = await within(2_000, event, events.next())
    expect(Buffer.from(value ?? []).toString()).toBe(event)
  }
  gzip.end()
  expect((await events.next()).done).toBe(true)
})

test.each(codings.filter(([coding]) => !['', 'identity', 'gzip, br'].includes(coding)))(
  '%j that is cut or damaged is the fault of the provider',
  async (coding, encode) => {
    const whole = encode(Buffer.from(text))
    await expect(read(coding, inPieces(whole.subarray(0, whole.length / 2), 50))).rejects.toMatchObject({
      code: expect.stringMatching(/^provider_(cut|unreadable)$/),
      provider: 'p',
    })
    await expect(read(coding, inPieces(Buffer.from('{"plain": true}'), 50))).rejects.toMatchObject({
      code: expect.stringMatching(/^provider_(cut|unreadable)$/),
    })
  },
)

test('a coding that nobody knows is named', async () => {
  for (const coding of ['compress', 'constructor', 'gzip, dcb']) {
    await expect(read(coding, inPieces(Buffer.from(text), 50))).rejects.toMatchObject({
      code: 'provider_unreadable',
      message: expect.stringContaining(`\`${coding.split(', ').at(-1)}\``),
    })
  }
})

test('an error of the connection is not blamed on the coding', async () => {
  const broken = new Error('reset')
  const bytes = Readable.from(
    (async function* () {
      yield gzipSync(text).subarray(0, 20)
      throw broken
    })(),
  )
  await expect(read('gzip', bytes)).rejects.toMatchObject({ forLog: 'reset' })
})

test('a reader that has enough takes no more, and the connection is closed', async () => {
  // A gigabyte of zeros in a megabyte.
  const bomb = gzipSync(Buffer.alloc(16 * 1024 * 1024))
  let taken = 0
  async function* endless(): AsyncGenerator<Uint8Array, void> {
    while (true) {
      taken += bomb.length
      yield bomb
    }
  }
  let discarded = 0
  let length = 0
  for await (const chunk of decompressed(endless(), {
    encoding: 'gzip',
    provider: 'p',
    discard: () => void discarded++,
  })) {
    length += chunk.length
    if (length > 1024 * 1024) break
  }
  expect(discarded).toBe(1)
  expect(taken).toBeLessThan(100 * bomb.length)
})
