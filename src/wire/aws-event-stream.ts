import { crc32 } from 'node:zlib'
import { RouterError } from '../core/errors.ts'
import { type Frame, FrameError, type FrameReader, failureOf, frameLimit, tooLong } from './frame.ts'

/**
 * Reads AWS's binary event stream, with both checksums verified. A frame's name is its `:event-type`, or the `:exception-type` or
 * `:error-code` of an error. Fails for wrong checksums or lengths, above the limit as well, and when the bytes end inside a frame.
 */
export async function readAwsEventStream(longest = frameLimit): Promise<FrameReader> {
  const decode = await loadDecoder()
  let needed = prelude
  // The pieces of a frame are joined once, when it is complete.
  let pieces: Uint8Array[] = []
  let length = 0
  let failure: FrameError | undefined
  const framesIn = (bytes: Uint8Array): Frame[] => {
    const frames: Frame[] = []
    let rest = bytes
    failure = failureOf(() => {
      for (needed = lengthOf(rest, longest); rest.length >= needed; needed = lengthOf(rest, longest)) {
        frames.push(frameOf(decode(rest.subarray(0, needed))))
        rest = rest.subarray(needed)
      }
    })
    pieces = [rest]
    length = rest.length
    return frames
  }
  return {
    take(bytes) {
      pieces.push(bytes)
      length += bytes.length
      return length < needed ? [] : framesIn(pieces.length === 1 ? bytes : Buffer.concat(pieces))
    },
    end() {
      if (length > 0) failure = new FrameError('cut', 'the stream ended in the middle of a frame')
      return []
    },
    failure: () => failure,
  }
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
