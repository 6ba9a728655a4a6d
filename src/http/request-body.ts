import type { IncomingMessage } from 'node:http'
import { RouterError } from '../core/errors.ts'

/** When a body is not waited for any longer. */
export type UploadLimits = {
  /** Aborted, with a RouterError as the reason, when the call is over. */
  signal: AbortSignal
  /** The size that is too large; what comes beyond is read for a while, since most clients listen only when they are done. */
  limitBytes: number
  /** How long nothing may come. Milliseconds. */
  idleMs: number
}

/** Watches over the coming of a body: `broken` rejects with a RouterError, or stays pending until `stop`. */
export function watchUpload(request: IncomingMessage, { signal, limitBytes, idleMs }: UploadLimits) {
  const { promise: broken, reject } = Promise.withResolvers<never>()
  let received = 0
  const leave = () => reject(signal.reason)
  const idle = () => reject(refusal(`The body stopped coming: nothing for ${idleMs} ms.`))
  const count = (chunk: Buffer) => {
    received += chunk.length
    if (received > limitBytes * patience) reject(tooLarge(limitBytes))
  }
  request.on('data', count)
  request.setTimeout(idleMs, idle)
  if (signal.aborted) leave()
  else signal.addEventListener('abort', leave, { once: true })
  return {
    broken,
    stop() {
      signal.removeEventListener('abort', leave)
      request.off('data', count).off('timeout', idle).setTimeout(0)
    },
  }
}

/** A body of more than the limit. */
export function tooLarge(limitBytes: number, cause?: unknown): RouterError {
  const message = `The body is larger than ${limitBytes} bytes, the body_limit of this server.`
  return new RouterError('too_large', message, { cause })
}

/** Throws RouterError 400 when lists and objects stand in each other deeper than any reader could follow. */
export function refuseDeep(body: unknown, depth = 0): void {
  if (typeof body !== 'object' || body === null) return
  if (depth === deepest) throw refusal(`The body is nested deeper than ${deepest} levels.`)
  if (Array.isArray(body)) for (const item of body) refuseDeep(item, depth + 1)
  else for (const name in body) refuseDeep(body[name as keyof typeof body], depth + 1)
}

/** How many times the limit is read before a client that sends on and on is cut off. */
const patience = 4
/** Real bodies stay below 50; what reads and writes them calls itself for each level. */
const deepest = 200

function refusal(message: string): RouterError {
  return new RouterError('invalid_request', message)
}
