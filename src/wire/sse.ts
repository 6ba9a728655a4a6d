import { createParser } from 'eventsource-parser'
import { type Frame, type FrameError, type FrameReader, frameLimit, tooLong } from './frame.ts'

/**
 * Reads server-sent events (WHATWG HTML, section 9.2). Comments are skipped; a last frame without its blank line counts. Fails when a
 * frame is longer than the limit.
 */
export function readSse(longest = frameLimit): FrameReader {
  let frames: Frame[] = []
  let failure: FrameError | undefined
  const parser = createParser({
    onEvent: ({ event, data }) => {
      if (data.length > longest) failure = tooLong('an event', longest)
      else if (!failure) frames.push(event === undefined ? { data } : { event, data })
    },
    onError: ({ type }) => {
      // The standard skips all other invalid lines.
      if (type === 'max-buffer-size-exceeded') failure = tooLong('an event', longest)
    },
    // Of a line that is not complete, the parser also counts the name of its field.
    maxBufferSize: longest + 'event: '.length,
  })
  const decoder = new TextDecoder()
  const framesOf = (text: string) => {
    parser.feed(text)
    const read = frames
    // Until more comes, which may take long, nothing is kept of what was read.
    frames = []
    return read
  }
  return {
    take: (bytes) => framesOf(decoder.decode(bytes, { stream: true })),
    end: () => framesOf(`${decoder.decode()}\n\n`),
    failure: () => failure,
  }
}
