import { type Frame, FrameError, frameLimit } from './frame.ts'

/**
 * The lines of newline-delimited JSON, unparsed, in one batch for each chunk. Empty lines are skipped; a last line without
 * a line break counts. Throws FrameError when a line passes 64 MiB.
 */
export async function* ndjsonFrames(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Frame[], void> {
  const decoder = new TextDecoder()
  // The pieces of a long line are joined once, at its end.
  let pieces: string[] = []
  let length = 0
  for await (const chunk of bytes) {
    const lines = decoder.decode(chunk, { stream: true }).split('\n')
    const last = lines.pop() as string
    const [first, ...others] = lines
    if (first !== undefined) {
      const batch = framesIn([[...pieces, first].join(''), ...others])
      pieces = []
      length = 0
      if (batch.length > 0) yield batch
    }
    pieces.push(last)
    length += last.length
    if (length > frameLimit) throw new FrameError('unreadable', `a line is longer than ${frameLimit} characters`)
  }
  const batch = framesIn([[...pieces, decoder.decode()].join('')])
  if (batch.length > 0) yield batch
}

function framesIn(lines: string[]): Frame[] {
  return lines.map((line) => ({ data: line.trim() })).filter(({ data }) => data !== '')
}
