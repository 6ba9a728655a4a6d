import { createParser } from 'eventsource-parser'

/** One server-sent event as it stood on the wire. */
export type Frame = { event?: string; data: string }

/** A frame longer than this is not a provider's event: it would only fill the memory. Characters. */
const frameLimit = 64 * 1024 * 1024

/**
 * The frames of a byte stream of server-sent events, as many at a time as one read brought (WHATWG HTML, section 9.2).
 * Comments are skipped; a last frame without its blank line is still delivered. Throws when a frame passes 64 MiB.
 */
export async function* sseFrames(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Frame[], void> {
  let batch: Frame[] = []
  const parser = createParser({
    onEvent: ({ event, data }) => batch.push(event === undefined ? { data } : { event, data }),
    maxBufferSize: frameLimit,
  })
  const decoder = new TextDecoder()
  for await (const chunk of bytes) {
    parser.feed(decoder.decode(chunk, { stream: true }))
    if (batch.length === 0) continue
    const read = batch
    batch = []
    yield read
  }
  parser.feed(`${decoder.decode()}\n\n`)
  if (batch.length > 0) yield batch
}
