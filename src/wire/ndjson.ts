import { type Frame, FrameError, frameLimit } from './frame.ts'

/**
 * The lines of a byte stream of newline-delimited JSON, as many at a time as one read brought, unparsed. Empty lines
 * are skipped; a last line without its end is still delivered. Throws FrameError when a line passes 64 MiB.
 */
export async function* ndjsonFrames(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Frame[], void> {
  const decoder = new TextDecoder()
  // The pieces of a long line are joined once, at its end.
  let begun: string[] = []
  let length = 0
  for await (const chunk of bytes) {
    const lines = decoder.decode(chunk, { stream: true }).split('\n')
    const last = lines.pop() as string
    const [first, ...others] = lines
    if (first !== undefined) {
      const batch = framesIn([[...begun, first].join(''), ...others])
      begun = []
      length = 0
      if (batch.length > 0) yield batch
    }
    begun.push(last)
    length += last.length
    if (length > frameLimit) throw new FrameError('unreadable', `a line is longer than ${frameLimit} characters`)
  }
  const batch = framesIn([[...begun, decoder.decode()].join('')])
  if (batch.length > 0) yield batch
}

function framesIn(lines: string[]): Frame[] {
  return lines.map((line) => ({ data: line.trim() })).filter(({ data }) => data !== '')
}
