import { type Frame, type FrameError, frameLimit, tooLong } from './frame.ts'

/**
 * The lines of newline-delimited JSON, unparsed, in one batch for each chunk. Empty lines are skipped; a last line without
 * a line break counts. Throws FrameError when a line is longer than the limit.
 */
export async function* ndjsonFrames(
  bytes: AsyncIterable<Uint8Array>,
  longest = frameLimit,
): AsyncGenerator<Frame[], void> {
  const decoder = new TextDecoder()
  // The pieces of a long line are joined once, at its end.
  let pieces: string[] = []
  let length = 0
  for await (const chunk of bytes) {
    const lines = decoder.decode(chunk, { stream: true }).split('\n')
    const last = lines.pop() as string
    const [first, ...others] = lines
    if (first !== undefined) {
      const { batch, failure } = framesIn([[...pieces, first].join(''), ...others], longest)
      pieces = []
      length = 0
      if (batch.length > 0) yield batch
      if (failure) throw failure
    }
    pieces.push(last)
    length += last.length
    if (length > longest) throw tooLong('a line', longest)
  }
  const { batch, failure } = framesIn([[...pieces, decoder.decode()].join('')], longest)
  if (batch.length > 0) yield batch
  if (failure) throw failure
}

/** The frames before the first line that is too long. */
function framesIn(lines: string[], longest: number): { batch: Frame[]; failure?: FrameError } {
  const excess = lines.findIndex(({ length }) => length > longest)
  const readable = excess < 0 ? lines : lines.slice(0, excess)
  const batch = readable.map((line) => ({ data: line.trim() })).filter(({ data }) => data !== '')
  return excess < 0 ? { batch } : { batch, failure: tooLong('a line', longest) }
}
