import express, { type Request, type RequestHandler, type Response } from 'express'
import { RouterError } from '../core/errors.ts'
import { deepest, exceeded, mostMembers } from '../core/json-bounds.ts'
import { turnFor } from '../core/turn.ts'

/** How large a body may be. */
export type BodyLimits = {
  /** Bytes beyond it are read for a while, since most clients read a response only after sending. */
  bytes: number
  /** Values of any kind, however deep. */
  values: number
}

/** When to stop waiting for the upload of a body. */
type UploadLimits = {
  /** Aborted, with a RouterError as the reason, when the call is over. */
  signal: AbortSignal
  size: BodyLimits
  /** How long the upload may stall. Milliseconds. */
  idleMs: number
}

/** The body as JSON; undefined when there is none. Throws RouterError 400, 413 or 415, or the abort reason. */
export async function readJson(request: Request, response: Response, limits: UploadLimits): Promise<unknown> {
  requireJson(request)
  const watch = watchUpload(request, limits)
  try {
    const text = await Promise.race([readText(request, response, limits.size.bytes), watch.broken])
    return text === undefined ? undefined : await parseBody(text, limits.size)
  } finally {
    watch.stop()
    // The rest of a body that is not read must not keep the connection open.
    if (!request.complete) response.setHeader('connection', 'close')
  }
}

/** Throws RouterError 415 when there is a body that is not declared as JSON. */
function requireJson({ headers }: Request): void {
  const type = headers['content-type']
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
  if (!hasBody || (type !== undefined && isJsonType.test(type))) return
  const is = type === undefined ? 'this one has no Content-Type' : `not ${type.slice(0, longestShown)}`
  const message = `The body must be JSON and have the header Content-Type: application/json; ${is}.`
  throw new RouterError('unsupported_media_type', message, { param: 'content-type' })
}

/** `application/json`, and the media types whose suffix says that they are JSON; parameters do not matter. */
const isJsonType = /^\s*application\/(?:[\w!#$&^.+-]+\+)?json\s*(?:;|$)/i
/** Characters of a wrong content type that a message repeats. */
const longestShown = 80

function readText(request: Request, response: Response, limitBytes: number): Promise<string | undefined> {
  requireUnicode(request)
  const read = readers.get(limitBytes) ?? express.text({ limit: limitBytes, type: () => true })
  readers.set(limitBytes, read)
  return new Promise((resolve, reject) => {
    read(request, response, (error?: unknown) => (error ? reject(bodyError(error, limitBytes)) : resolve(request.body)))
  })
}

/** JSON is always UTF-8, UTF-16 or UTF-32. */
function requireUnicode(request: Request): void {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]*)/i.exec(request.get('content-type') ?? '')?.[1]
  if (charset === undefined || /^utf-/i.test(charset)) return
  throw new RouterError('unsupported_media_type', `The body cannot be read: unsupported charset "${charset}"`)
}

/** Parses a body whose bounds hold; a long one leaves the event loop a turn before and after. */
async function parseBody(text: string, { values }: BodyLimits): Promise<unknown> {
  await turnFor(text.length)
  const bound = exceeded(text, { values, depth: deepest, members: mostMembers })
  if (bound === 'depth') throw invalidBody(`The body is nested deeper than ${deepest} levels.`)
  if (bound === 'members') throw invalidBody(`The body has an object of more than ${mostMembers} members.`)
  if (bound === 'values') {
    throw invalidBody(`The body has more than ${values} values, the max_values of this server: send less at once.`)
  }
  await turnFor(text.length)
  try {
    return text === '' ? {} : JSON.parse(text)
  } catch (error) {
    throw new RouterError('invalid_request', `The body is not valid JSON: ${(error as Error).message}`, {
      cause: error,
    })
  } finally {
    await turnFor(text.length)
  }
}

/** Watches an upload: `broken` rejects with a RouterError, or stays pending until `stop`. */
function watchUpload(request: Request, { signal, size, idleMs }: UploadLimits) {
  const { promise: broken, reject } = Promise.withResolvers<never>()
  let received = 0
  const abort = () => reject(signal.reason)
  const idle = () => reject(invalidBody(`The upload stalled: nothing came for ${idleMs} ms.`))
  const count = (chunk: Buffer) => {
    received += chunk.length
    if (received > size.bytes * toleratedExcess) reject(tooLarge(size.bytes))
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

function bodyError(error: unknown, limitBytes: number): RouterError {
  const { type = '', message = '' } = error as { type?: string; message?: string }
  const facts = { cause: error }
  if (type === 'entity.too.large') return tooLarge(limitBytes, error)
  if (type === 'request.aborted') return new RouterError('client_gone', 'The client disconnected.', facts)
  if (type === 'encoding.unsupported' || type === 'charset.unsupported') {
    return new RouterError('unsupported_media_type', `The body cannot be read: ${message}`, facts)
  }
  return new RouterError('invalid_request', `The body cannot be decompressed: ${message}`, facts)
}

/** The error for a body above the limit. */
function tooLarge(limitBytes: number, cause?: unknown): RouterError {
  const message = `The body is larger than ${limitBytes} bytes, the body_limit of this server.`
  return new RouterError('too_large', message, { cause })
}

function invalidBody(message: string): RouterError {
  return new RouterError('invalid_request', message)
}

/** Body readers of Express by size limit. */
const readers = new Map<number, RequestHandler>()

/** How many times the limit is read before a client that does not stop sending is cut off. */
const toleratedExcess = 4
