import { crc32 } from 'node:zlib'
import { RouterError } from '../core/errors.ts'
import { type Frame, FrameError, frameLimit, tooLong } from './frame.ts'

/**
 * The frames of AWS's binary event stream, in one batch for each chunk, with both checksums verified. A frame's name is its
 * `:event-type`, or the `:exception-type` or `:error-code` of an error. Throws FrameError for wrong checksums or lengths,
 * above the limit as well, and when the bytes end inside a frame.
 */
export async function* awsEventStreamFrames(
  bytes: AsyncIterable<Uint8Array>,
  longest = frameLimit,
): AsyncGenerator<Frame[], void> {
  const decode = await loadDecoder()
  let rest: Uint8Array = new Uint8Array()
  let needed = prelude
  // The pieces of a frame are joined once, when it is complete.
  let pieces: Uint8Array[] = []
  let length = 0
  for await (const chunk of bytes) {
    pieces.push(chunk)
    length += chunk.length
    if (length < needed) continue
    rest = pieces.length === 1 ? chunk : Buffer.concat(pieces)
    const batch: Frame[] = []
    let failure: unknown
    try {
      for (needed = lengthOf(rest, longest); rest.length >= needed; needed = lengthOf(rest, longest)) {
        batch.push(frameOf(decode(rest.subarray(0, needed))))
        rest = rest.subarray(needed)
      }
    } catch (error) {
      failure = error
    }
    if (batch.length > 0) yield batch
    if (failure) throw failure
    pieces = rest.length > 0 ? [rest] : []
    length = rest.length
  }
  if (length > 0) throw new FrameError('cut', 'the stream ended in the middle of a frame')
}

/** Total length, header length, and a checksum of both: four bytes each. */
const prelude = 12
/** An empty frame: the prelude and the checksum of the whole. */
const minFrame = 16

/** The length of the next frame, or of the prelude while that is incomplete. */
function lengthOf(bytes: Uint8Array, longest: number): number {
  if (bytes.length < prelude) return prelude
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  const length = view.getUint32(0)
  // Checked before the frame is complete: a wrong length must not be waited for.
  const isIntact = crc32(bytes.subarray(0, 8)) === view.getUint32(8)
  if (length < minFrame || (length > longest && !isIntact)) {
    throw new FrameError('unreadable', `a frame length of ${length} bytes is invalid: this is not an AWS event stream`)
  }
  if (!isIntact) throw new FrameError('unreadable', 'the checksum of a frame is wrong')
  if (length > longest) throw tooLong('a frame', longest)
  return length
}

type Message = { headers: { [name: string]: { type: string; value: unknown } }; body: Uint8Array }

function frameOf({ headers, body }: Message): Frame {
  const header = (name: string) => {
    const value = headers[name]?.value
    return typeof value === 'string' ? value : undefined
  }
  const payload = Buffer.from(body.buffer, body.byteOffset, body.length).toString('utf8')
  // An error may have headers only: its message becomes a payload like that of an exception.
  const data = payload === '' ? JSON.stringify({ message: header(':error-message') }) : payload
  const event = header(':exception-type') ?? header(':error-code') ?? header(':event-type')
  return event === undefined ? { data } : { event, data }
}

/** Imported by the first such stream. */
async function loadDecoder(): Promise<(frame: Uint8Array) => Message> {
  let codec: typeof import('@smithy/eventstream-codec')
  try {
    codec = await import('@smithy/eventstream-codec')
  } catch (cause) {
    const message =
      'AWS event streams need the optional package @smithy/eventstream-codec: install it beside the router.'
    throw new RouterError('provider_unreadable', message, { cause })
  }
  const messages = new codec.EventStreamCodec(
    (bytes) => (typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('utf8')),
    (text) => Buffer.from(text, 'utf8'),
  )
  return (frame) => {
    try {
      return messages.decode(frame)
    } catch (error) {
      throw new FrameError('unreadable', (error as Error).message, error)
    }
  }
}
