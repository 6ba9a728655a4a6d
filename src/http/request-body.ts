import express, { type Request, type RequestHandler, type Response } from 'express'
import { RouterError } from '../core/errors.ts'

/** When to stop waiting for the upload of a body. */
type UploadLimits = {
  /** Aborted, with a RouterError as the reason, when the call is over. */
  signal: AbortSignal
  /** The size limit. Bytes beyond it are read for a while, since most clients read a response only after sending. */
  limitBytes: number
  /** How long the upload may stall. Milliseconds. */
  idleMs: number
}

/** The body as JSON, whatever its content type. Throws RouterError 400, 413 or 415, or the abort reason. */
export async function readJson(request: Request, response: Response, limits: UploadLimits): Promise<unknown> {
  const { limitBytes } = limits
  const parse = parsers.get(limitBytes) ?? express.json({ limit: limitBytes, strict: false, type: () => true })
  parsers.set(limitBytes, parse)
  const parsed = new Promise<unknown>((resolve, reject) => {
    parse(request, response, (error?: unknown) =>
      error ? reject(bodyError(error, limitBytes)) : resolve(request.body),
    )
  })
  const watch = watchUpload(request, limits)
  try {
    const body = await Promise.race([parsed, watch.broken])
    refuseDeep(body)
    return body
  } finally {
    watch.stop()
    // The rest of a body that is not read must not keep the connection open.
    if (!request.complete) response.setHeader('connection', 'close')
  }
}

/** Watches an upload: `broken` rejects with a RouterError, or stays pending until `stop`. */
function watchUpload(request: Request, { signal, limitBytes, idleMs }: UploadLimits) {
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

/** Throws RouterError 400 when a body is nested too deeply for recursive readers. */
function refuseDeep(body: unknown, depth = 0): void {
  if (typeof body !== 'object' || body === null) return
  if (depth === maxDepth) throw invalidBody(`The body is nested deeper than ${maxDepth} levels.`)
  if (Array.isArray(body)) for (const item of body) refuseDeep(item, depth + 1)
  else for (const name in body) refuseDeep(body[name as keyof typeof body], depth + 1)
}

function bodyError(error: unknown, limitBytes: number): RouterError {
  const { type = '', message = '', code } = error as { type?: string; message?: string; code?: unknown }
  const facts = { cause: error }
  if (type === 'entity.too.large') return tooLarge(limitBytes, error)
  if (type === 'request.aborted') return new RouterError('client_gone', 'The client disconnected.', facts)
  if (type === 'encoding.unsupported' || type === 'charset.unsupported') {
    return new RouterError('unsupported_media_type', `The body cannot be read: ${message}`, facts)
  }
  // Errors of decompressors have a code, errors of JSON.parse have none.
  const what = code === undefined ? 'is not valid JSON' : 'cannot be decompressed'
  return new RouterError('invalid_request', `The body ${what}: ${message}`, facts)
}

/** The error for a body above the limit. */
function tooLarge(limitBytes: number, cause?: unknown): RouterError {
  const message = `The body is larger than ${limitBytes} bytes, the body_limit of this server.`
  return new RouterError('too_large', message, { cause })
}

function invalidBody(message: string): RouterError {
  return new RouterError('invalid_request', message)
}

/** Body parsers of Express by size limit. */
const parsers = new Map<number, RequestHandler>()

/** How many times the limit is read before a client that does not stop sending is cut off. */
const toleratedExcess = 4
/** Real bodies stay below 50; readers and writers recurse once per level. */
const maxDepth = 200
