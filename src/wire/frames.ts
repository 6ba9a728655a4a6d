import { readAwsEventStream } from './aws-event-stream.ts'
import type { FrameReader } from './frame.ts'
import { readJsonArray } from './json-array.ts'
import { readNdjson } from './ndjson.ts'
import { readSse } from './sse.ts'

/** The stream formats, with their media types. `open` returns a reader that accepts no frame longer than this. */
export const streamFormats = {
  sse: { open: readSse, mediaType: 'text/event-stream' },
  ndjson: { open: readNdjson, mediaType: 'application/x-ndjson' },
  'aws-event-stream': { open: readAwsEventStream, mediaType: 'application/vnd.amazon.eventstream' },
  'json-array': { open: readJsonArray, mediaType: 'application/json' },
} as const satisfies Record<string, { open(longest?: number): FrameReader | Promise<FrameReader>; mediaType: string }>

/** The name of a stream format. */
export type StreamFormat = keyof typeof streamFormats
