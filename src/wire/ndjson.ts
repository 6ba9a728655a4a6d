import { type Frame, type FrameError, type FrameReader, frameLimit, tooLong } from './frame.ts'

/**
 * Reads the lines of newline-delimited JSON, unparsed. Empty lines are skipped; a last line without a line break counts. Fails when a
 * line is longer than the limit.
 */
export function readNdjson(longest = frameLimit): FrameReader {
  const decoder = new TextDecoder()
  // The pieces of a long line are joined once, at its end.
  let pieces: string[] = []
  let length = 0
  let failure: FrameError | undefined
  const keep = (piece: string) => {
    pieces.push(piece)
    length += piece.length
    if (length > longest) failure ??= tooLong('a line', longest)
  }
  const framesIn = (lines: string[]): Frame[] => {
    const excess = lines.findIndex(({ length }) => length > longest)
    if (excess >= 0) failure = tooLong('a line', longest)
    const readable = excess < 0 ? lines : lines.slice(0, excess)
    return readable.map((line) => ({ data: line.trim() })).filter(({ data }) => data !== '')
  }
  return {
    take(bytes) {
      const [first = '', ...others] = decoder.decode(bytes, { stream: true }).split('\n')
      const last = others.pop()
      if (last === undefined) {
        keep(first)
        return []
      }
      const frames = framesIn([[...pieces, first].join(''), ...others])
      pieces = []
      length = 0
      keep(last)
      return frames
    },
    end: () => framesIn([[...pieces, decoder.decode()].join('')]),
    failure: () => failure,
  }
}
