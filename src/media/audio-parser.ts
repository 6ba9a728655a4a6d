import type { UploadedFile } from '../core/operation.ts'

/** Results of a parser other than a length: the element continues beyond these bytes, or nothing more has to be read. */
export const needsMore = -1
export const finished = -2

/** A reader of one format, which measures the sound element by element: frames, pages, blocks, boxes or chunks. */
export type AudioParser = {
  /** Maximum number of elements: a file with more is not a recording. */
  maxElements: number
  /**
   * Reads the element that begins at `at`, which is at `position` in the file. Returns the bytes to the next one, which may be more
   * than are here, `needsMore` or `finished`.
   */
  parse(bytes: Buffer, at: number, position: number): number
  /** The most bytes of one element that must be together; 1 KiB by default. */
  maxBytes?: number
  /** Returns the length as far as it has been read; undefined where the sound could not be found and measured. */
  seconds(): number | undefined
  /** Returns the bytes that a second of its codec has at least, where that is known although it cannot be measured. */
  minBytesPerSecond?(): number | undefined
}

/** A file as far as its parser must know it. */
export type ParserFile = Pick<UploadedFile, 'head' | 'size'>

/** Bytes per second of speech at 6 kbit/s, the minimum at which it is intelligible: what cannot be measured is as long as that. */
export const minBytesPerSecond = 750

/**
 * Bytes per second at the lowest bit rate of codecs whose packets are not read: of AC-3 32 kbit/s (ETSI TS 102 366), of MPEG audio 8 kbit/s (ISO/IEC
 * 13818-3), of AMR 4.75 and of its wide-band form 6.6 kbit/s with a byte of header in each frame of 20 ms (RFC 4867).
 */
export const codecRates = { ac3: 4_000, mpeg: 1_000, amr: 650, amrWideBand: 900 }

/** Returns the larger of what was measured and what a header states, which may be anything: no sound has fewer bytes than silence. */
export function largerOf(measured: number, stated: number, bytes: number): number {
  return stated > measured && stated * silentBytesPerSecond <= bytes ? stated : measured
}

const silentBytesPerSecond = 25

/**
 * Upper bound above the number of elements in a recording of the accepted size with 20 ms of sound in each. Reading them takes about 50
 * ms.
 */
export const maxTimedElements = 1_000_000
/** Upper bound above the number of boxes in a recording: one in fragments has some ten for each second. */
export const maxBoxes = 250_000
/** Upper bound above the number of chunks in a recording. */
export const maxChunks = 10_000

const usualHeaderBytes = 1_024

/** A file as a parser reads it. */
export type ParsedFile = { size: number; pieces: AsyncIterable<Uint8Array> }

/**
 * Reads a file until its parser has finished, or to its end. Returns false where it has too many elements. Elements within one piece
 * take no promise each: there may be millions. Rejects with the reason of an aborted signal.
 */
export async function parseElements(
  { size, pieces }: ParsedFile,
  parser: AudioParser,
  signal?: AbortSignal,
): Promise<boolean> {
  let position = 0
  let elements = 0
  let skipped = 0
  let rest: Buffer = empty
  signal?.throwIfAborted()
  for await (const piece of pieces) {
    signal?.throwIfAborted()
    if (skipped >= piece.length) {
      skipped -= piece.length
      continue
    }
    const bytes = joined(rest, piece.subarray(skipped))
    let at = 0
    while (at < bytes.length) {
      if (++elements > parser.maxElements) return false
      const length = parser.parse(bytes, at, position)
      if (length === finished) return true
      if (length === needsMore) break
      at += length
      position += length
    }
    if (position >= size) return true
    if (bytes.length - at > (parser.maxBytes ?? usualHeaderBytes)) return false
    skipped = Math.max(at - bytes.length, 0)
    // The piece may be overwritten by the next one.
    rest = Buffer.from(bytes.subarray(at))
  }
  return true
}

const empty = Buffer.alloc(0)

function joined(rest: Buffer, piece: Uint8Array): Buffer {
  return rest.length > 0 ? Buffer.concat([rest, piece]) : Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength)
}

/** Elements that contain others, by where they end: what is in one ends with it, whatever it states. */
export class Containers {
  readonly #ends: number[] = []

  /** Returns the bytes left at a place in the innermost element that contains it; all for one that is in none. */
  leftAt(position: number): number {
    while (this.#ends.length > 0 && (this.#ends.at(-1) as number) <= position) this.#ends.pop()
    return (this.#ends.at(-1) ?? Infinity) - position
  }

  /** Enters an element whose contents end there. */
  enter(end: number): void {
    this.#ends.push(end)
  }
}

/** Checks that these bytes are at a place, one for each character. */
export function hasBytes(bytes: Buffer, at: number, latin1: string): boolean {
  for (let index = 0; index < latin1.length; index++) {
    if (bytes[at + index] !== latin1.charCodeAt(index)) return false
  }
  return true
}
