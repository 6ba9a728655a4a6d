import { crc32 } from 'node:zlib'

/** One frame of an AWS event stream, written from its published layout and by no library: text headers only. */
export function awsFrame(headers: { [name: string]: string }, payload: string | Uint8Array): Buffer {
  const head = Buffer.concat(Object.entries(headers).map(([name, value]) => textHeader(name, value)))
  const body = Buffer.from(payload as string)
  const prelude = Buffer.alloc(12)
  prelude.writeUInt32BE(12 + head.length + body.length + 4, 0)
  prelude.writeUInt32BE(head.length, 4)
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8)
  const checked = Buffer.concat([prelude, head, body])
  const end = Buffer.alloc(4)
  end.writeUInt32BE(crc32(checked), 0)
  return Buffer.concat([checked, end])
}

/** An event with a JSON payload. */
export function awsEvent(type: string, payload: unknown): Buffer {
  const headers = { ':message-type': 'event', ':event-type': type, ':content-type': 'application/json' }
  return awsFrame(headers, JSON.stringify(payload))
}

/** A failure inside the stream. */
export function awsException(type: string, message: string): Buffer {
  const headers = { ':message-type': 'exception', ':exception-type': type, ':content-type': 'application/json' }
  return awsFrame(headers, JSON.stringify({ message }))
}

function textHeader(name: string, value: string): Buffer {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(Buffer.byteLength(value), 0)
  return Buffer.concat([
    Buffer.of(Buffer.byteLength(name)),
    Buffer.from(name),
    Buffer.of(7),
    length,
    Buffer.from(value),
  ])
}
