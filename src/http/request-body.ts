import type { IncomingMessage } from 'node:http'
import { RouterError } from '../core/errors.ts'

/** When to give up the upload of a body. */
export type UploadLimits = {
  /** Aborted, with a RouterError as the reason, when the call is over. */
  signal: AbortSignal
  /** The size limit; what comes beyond is read for a while, since most clients read a response only after sending. */
  limitBytes: number
  /** How long the upload may stall. Milliseconds. */
  idleMs: number
}

/** Watches an upload: `broken` rejects with a RouterError, or stays pending until `stop`. */
export function watchUpload(request: IncomingMessage, { signal, limitBytes, idleMs }: UploadLimits) {
  const { promise: broken, reject } = Promise.withResolvers<never>()
  let received = 0
  const abort = () => reject(signal.reason)
  const idle = () => reject(invalidBody(`The upload stalled: nothing came for ${idleMs} ms.`))
  const count = (chunk: Buffer) => {
    received += chunk.length
    if (received > limitBytes * toleratedExcess) reject(tooLarge(limitBytes))
  }
  request.on('data', count)
  request.setTimeout(idleMs, idle)
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  return {
    broken,
    stop() {
      signal.removeEventListener('abort', abort)
      request.off('data', count).off('timeout', idle).setTimeout(0)
    },
  }
}

/** The error for a body above the limit. */
export function tooLarge(limitBytes: number, cause?: unknown): RouterError {
  const message = `The body is larger than ${limitBytes} bytes, the body_limit of this server.`
  return new RouterError('too_large', message, { cause })
}

/** Throws RouterError 400 when a body is nested too deeply for recursive readers. */
export function refuseDeep(body: unknown, depth = 0): void {
  if (typeof body !== 'object' || body === null) return
  if (depth === maxDepth) throw invalidBody(`The body is nested deeper than ${maxDepth} levels.`)
  if (Array.isArray(body)) for (const item of body) refuseDeep(item, depth + 1)
  else for (const name in body) refuseDeep(body[name as keyof typeof body], depth + 1)
}

/** How many times the limit is read before a client that does not stop sending is cut off. */
const toleratedExcess = 4
/** Real bodies stay below 50; readers and writers recurse once per level. */
const maxDepth = 200

function invalidBody(message: string): RouterError {
  return new RouterError('invalid_request', message)
}
