import { createParser } from 'eventsource-parser'
import { type Frame, type FrameError, frameLimit, tooLong } from './frame.ts'

/**
 * The frames of server-sent events (WHATWG HTML, section 9.2), in one batch for each chunk. Comments are skipped; a last
 * frame without its blank line counts. Throws FrameError when a frame is longer than the limit.
 */
export async function* sseFrames(
  bytes: AsyncIterable<Uint8Array>,
  longest = frameLimit,
): AsyncGenerator<Frame[], void> {
  let batch: Frame[] = []
  let overflow: FrameError | undefined
  const parser = createParser({
    onEvent: ({ event, data }) => {
      if (data.length > longest) overflow = tooLong('an event', longest)
      else if (!overflow) batch.push(event === undefined ? { data } : { event, data })
    },
    onError: ({ type }) => {
      // The standard skips all other invalid lines.
      if (type === 'max-buffer-size-exceeded') overflow = tooLong('an event', longest)
    },
    // Of a line that is not complete, the parser also counts the name of its field.
    maxBufferSize: longest + 'event: '.length,
  })
  const decoder = new TextDecoder()
  for await (const chunk of bytes) {
    parser.feed(decoder.decode(chunk, { stream: true }))
    if (batch.length > 0) {
      const read = batch
      batch = []
      yield read
    }
    if (overflow) throw overflow
  }
  parser.feed(`${decoder.decode()}\n\n`)
  if (batch.length > 0) yield batch
  if (overflow) throw overflow
}
