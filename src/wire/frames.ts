import { awsEventStreamFrames } from './aws-event-stream.ts'
import type { Frame } from './frame.ts'
import { jsonArrayFrames } from './json-array.ts'
import { ndjsonFrames } from './ndjson.ts'
import { sseFrames } from './sse.ts'

/** The stream formats, with their media types. */
export const streamFormats = {
  sse: { read: sseFrames, mediaType: 'text/event-stream' },
  ndjson: { read: ndjsonFrames, mediaType: 'application/x-ndjson' },
  'aws-event-stream': { read: awsEventStreamFrames, mediaType: 'application/vnd.amazon.eventstream' },
  'json-array': { read: jsonArrayFrames, mediaType: 'application/json' },
} as const satisfies Record<
  string,
  { read(bytes: AsyncIterable<Uint8Array>, longest?: number): AsyncGenerator<Frame[], void>; mediaType: string }
>

/** The name of a stream format. */
export type StreamFormat = keyof typeof streamFormats

/** The frames of a byte stream, in one batch for each chunk; none is longer than the limit. Throws FrameError. */
export function framesOf(
  format: StreamFormat,
  bytes: AsyncIterable<Uint8Array>,
  longest: number,
): AsyncGenerator<Frame[], void> {
  return streamFormats[format].read(bytes, longest)
}
