import { createParser } from 'eventsource-parser'
import { type Frame, FrameError, frameLimit } from './frame.ts'

/**
 * The frames of server-sent events (WHATWG HTML, section 9.2), in one batch for each chunk. Comments are skipped; a last
 * frame without its blank line counts. Throws FrameError when a frame exceeds 64 MiB.
 */
export async function* sseFrames(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Frame[], void> {
  let batch: Frame[] = []
  let overflow: FrameError | undefined
  const parser = createParser({
    onEvent: ({ event, data }) => batch.push(event === undefined ? { data } : { event, data }),
    onError: ({ type, message }) => {
      // The standard skips all other invalid lines.
      if (type === 'max-buffer-size-exceeded') overflow = new FrameError('unreadable', message)
    },
    maxBufferSize: frameLimit,
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
