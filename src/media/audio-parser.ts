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
  /** Returns the length as far as it has been read; undefined where the elements do not contain it. */
  seconds(): number | undefined
}

/**
 * Upper bound above the number of elements in a recording of the accepted size with 20 ms of sound in each. Reading them takes about 50
 * ms.
 */
export const maxTimedElements = 1_000_000
/** Upper bound above the number of boxes or chunks, which describe the sound, in a recording. */
export const maxDescriptions = 10_000

/** The most bytes of one element that a parser reads. */
const maxHeaderBytes = 1_024

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
    if (bytes.length - at > maxHeaderBytes) return false
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

/** Checks that these bytes are at a place, one for each character. */
export function hasBytes(bytes: Buffer, at: number, latin1: string): boolean {
  for (let index = 0; index < latin1.length; index++) {
    if (bytes[at + index] !== latin1.charCodeAt(index)) return false
  }
  return true
}
