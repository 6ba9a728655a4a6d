import { pipeline, Readable, type Transform } from 'node:stream'
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib'
import { RouterError } from '../../core/errors.ts'

/** Encoding of the bytes of an answer, their provider, and a way to close the connection that they come from. */
export type Encoded = { encoding: string | string[] | undefined; provider: string; discard(): void }

/**
 * Returns the bytes of an answer as they were before the provider compressed them, though it was asked not to. They are produced as they
 * are read, so that a reader with a bound never holds more. Throws RouterError for an unknown coding and for bytes that cannot be
 * decompressed.
 */
export function decompressed(bytes: AsyncIterable<Uint8Array>, encoded: Encoded): AsyncIterable<Uint8Array> {
  if (encoded.encoding === undefined) return bytes
  const codings = String(encoded.encoding)
    .toLowerCase()
    .split(',')
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '' && coding !== 'identity')
  // The coding that was applied last is the last of the list.
  return codings.reduceRight((encodedBytes, coding) => decode(encodedBytes, coding, encoded), bytes)
}

/** RFC 9110, section 8.4.1; RFC 8878. Some senders of `deflate` leave out the header that the standard wants. */
const decoders: { readonly [coding: string]: (first: number) => Transform } = {
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  deflate: (first) => ((first & 0x0f) === deflateMethod ? createInflate() : createInflateRaw()),
  br: () => createBrotliDecompress(),
  zstd: () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: zstdWindowLog } }),
}
const deflateMethod = 8
/** Window of zstd: 8 MiB, the maximum that RFC 9659 lets a sender ask of us. */
const zstdWindowLog = 23

async function* decode(
  bytes: AsyncIterable<Uint8Array>,
  coding: string,
  encoded: Encoded,
): AsyncGenerator<Uint8Array, void> {
  const { provider, discard } = encoded
  const makeDecoder = Object.hasOwn(decoders, coding) ? decoders[coding] : undefined
  try {
    if (!makeDecoder)
      throw unreadable(provider, `compressed its answer as \`${coding.slice(0, 40)}\`, which this router cannot read`)
    const rest = bytes[Symbol.asyncIterator]()
    const first = await rest.next()
    if (first.done) return
    const decoder = makeDecoder(first.value[0] ?? 0)
    const source = Readable.from(startingWith(first.value, rest), { objectMode: false })
    // An error of either is thrown by the loop.
    pipeline(source, decoder, () => {})
    for await (const chunk of decoder) yield chunk
  } catch (thrown) {
    throw thrown instanceof RouterError ? thrown : broken(provider, coding, thrown)
  } finally {
    discard()
  }
}

async function* startingWith(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  yield first
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value
}

function broken(provider: string, coding: string, cause: unknown): RouterError {
  const { code, message } = cause as { code?: unknown; message: string }
  const facts = { provider, cause, forLog: message }
  if (code === 'Z_BUF_ERROR') {
    return new RouterError('provider_cut', `The provider ended its answer in the middle of the ${coding} data.`, facts)
  }
  return new RouterError('provider_unreadable', `The provider sent an answer that is not valid ${coding} data.`, facts)
}

function unreadable(provider: string, what: string): RouterError {
  return new RouterError('provider_unreadable', `The provider ${what}.`, { provider })
}
