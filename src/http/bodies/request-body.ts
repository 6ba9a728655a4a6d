import { constants } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Request as ExpressRequest, Response as ExpressResponse, RequestHandler } from 'express'
import { RouterError } from '../../core/errors.ts'
import { deepest, exceeded, exceededInSteps, type JsonBounds, maxMembers } from '../../core/json.ts'
import { isLong, yieldBetween, yieldToEventLoop } from '../../runtime/event-loop.ts'
import { type Response, wholeExpress } from '../app.ts'
import { headersOf } from '../respond.ts'
import type { RunningRequest } from '../running-requests.ts'

/** Limits of the size of a body. */
export type BodyLimits = {
  /** Bytes beyond it are read for a while, since most clients read a response only after sending. */
  bytes: number
  /** Values of any kind, however deep. */
  values: number
}

/** Limits at which the upload of a body is abandoned. */
type UploadLimits = {
  /** The request that it belongs to. */
  running: RunningRequest
  size: BodyLimits
  /** Maximum time for which the upload may stall. Milliseconds. */
  idleMs: number
  /** Called when it takes longer than uploads that are sent in one go. */
  onSlow?: (() => void) | undefined
}

/** Reads the body as JSON; undefined when there is none. Throws RouterError 400, 413 or 415, or the abort reason. */
export async function readJson(request: IncomingMessage, response: Response, limits: UploadLimits): Promise<unknown> {
  const { 'transfer-encoding': coding, 'content-length': length, 'content-type': type } = request.headers
  if (coding === undefined && length === undefined) return undefined
  if (Number(length) !== 0) requireJson(type)
  try {
    const size = { ...limits.size, bytes: Math.min(limits.size.bytes, maxTextLength) }
    const text = await receive(request, readerOf(request, response, size.bytes), { ...limits, size })
    return isLong(text.length) ? await parseYielding(text, limits.size) : parseBody(text, limits.size)
  } finally {
    // The rest of a body that is not read must not keep the connection open.
    if (!request.complete) closeAfterAnswer(request, response)
  }
}

/** V8 has no longer ones, whatever the limit of the server. */
const maxTextLength = constants.MAX_STRING_LENGTH

/** Throws RouterError 415 for a body that is not declared as JSON. */
function requireJson(type: string | undefined): void {
  if (type !== undefined && isJsonType.test(type)) return
  const is = type === undefined ? 'this one has no Content-Type' : `not ${type.slice(0, maxShownLength)}`
  const message = `The body must be JSON and have the header Content-Type: application/json; ${is}.`
  throw new RouterError('unsupported_media_type', message, { param: 'content-type' })
}

/** `application/json`, and the media types with the suffix of JSON; parameters do not matter. */
const isJsonType = /^\s*application\/(?:[\w!#$&^.+-]+\+)?json\s*(?:;|$)/i
/** Characters of a wrong content type that a message repeats. */
const maxShownLength = 80

/** Makes a text of a body: of its bytes as they come, or by reading the request itself. */
type BodyReader = {
  take?(chunk: Buffer): void
  /** Calls back with the text when the body has been read. */
  whenRead(done: (text: string) => void, fail: (error: RouterError) => void): void
}

/** Returns the reader of a body. Most bodies are plain UTF-8; compressed ones and those in UTF-16 or UTF-32 are left to Express. */
function readerOf(request: IncomingMessage, response: Response, limitBytes: number): BodyReader {
  const { 'content-encoding': coding = 'identity', 'content-type': type = '' } = request.headers
  const charset = /;\s*charset\s*=\s*"?([^\s;"]*)/i.exec(type)?.[1]?.replace(/^utf8$/i, 'utf-8') ?? 'utf-8'
  if (!/^utf-/i.test(charset)) {
    throw new RouterError('unsupported_media_type', `The body cannot be read: unsupported charset "${charset}"`)
  }
  const isPlain = coding.toLowerCase() === 'identity' && charset.toLowerCase() === 'utf-8'
  return isPlain ? plainReader(request, limitBytes) : decodingReader(request, response, limitBytes)
}

function plainReader(request: IncomingMessage, limitBytes: number): BodyReader {
  let chunks: Buffer[] = []
  let apart = 0
  let received = 0
  return {
    take(chunk) {
      received += chunk.length
      if (received > limitBytes) {
        chunks = []
        return
      }
      chunks.push(chunk)
      if (++apart < maxApart) return
      chunks.push(Buffer.concat(chunks.splice(-maxApart)))
      apart = 0
    },
    whenRead(done, fail) {
      // Once: a listener that stayed would keep the chunks as long as the request.
      request.once('end', () => {
        if (received > limitBytes) return fail(tooLarge(limitBytes))
        const [first = noBytes] = chunks
        // Joined as bytes: texts that are joined are copied once more when they are parsed.
        const bytes = chunks.length > 1 ? Buffer.concat(chunks, received) : first
        chunks = []
        done(withoutByteOrderMark(bytes.toString()))
      })
    },
  }
}

/** Maximum number of separate pieces, which are then joined: a body that comes byte by byte would take hundreds of times its length. */
const maxApart = 256
const noBytes = Buffer.alloc(0)

function withoutByteOrderMark(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}

function decodingReader(request: IncomingMessage, response: Response, limitBytes: number): BodyReader {
  const read = decoders.get(limitBytes) ?? wholeExpress().text({ limit: limitBytes, type: () => true })
  decoders.set(limitBytes, read)
  // It reads the headers and the body, and adds the text to the request.
  const whole = request as unknown as ExpressRequest
  return {
    whenRead(done, fail) {
      read(whole, response as unknown as ExpressResponse, (error?: unknown) => {
        if (error) fail(bodyError(error, limitBytes))
        else done(whole.body)
      })
    },
  }
}

/** Express's readers by size limit. */
const decoders = new Map<number, RequestHandler>()

/** Reads the text of a body, unless its upload is too much, stalls or is aborted. */
function receive(
  request: IncomingMessage,
  reader: BodyReader,
  { running, size, idleMs, onSlow }: UploadLimits,
): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = 0
    let quietMs = 0
    let slowMs = 0
    const take = (chunk: Buffer) => {
      quietMs = 0
      received += chunk.length
      if (received > size.bytes * toleratedExcess) fail(tooLarge(size.bytes))
      else reader.take?.(chunk)
    }
    const stop = () => {
      running.transfer = undefined
      request.off('data', take)
    }
    const done = (text: string) => {
      stop()
      running.bodyBytes = received
      resolve(text)
    }
    const fail = (error: RouterError) => {
      stop()
      reject(error)
    }
    const waited = (ms: number) => {
      quietMs += ms
      slowMs += ms
      if (slowMs > atOnceMs && slowMs - ms <= atOnceMs) onSlow?.()
      if (quietMs > idleMs) fail(invalidBody(`The upload stalled: nothing arrived for ${idleMs} ms.`))
    }
    if (running.signal.aborted) return reject(running.signal.reason)
    running.transfer = { waited, fail }
    request.on('data', take)
    reader.whenRead(done, fail)
  })
}

/** Bodies that are sent at once have come by then, and those that are few megabytes large. */
const atOnceMs = 100

/** Number of times that the limit is read before a client that does not stop sending is cut off. */
const toleratedExcess = 4

/** Parses like `parseBody`, but yields to the event loop before each step and after the last one. */
async function parseYielding(text: string, limits: BodyLimits): Promise<unknown> {
  await yieldToEventLoop()
  refuseExceeded(await exceededInSteps(text, jsonBounds(limits), yieldBetween()), limits)
  await yieldToEventLoop()
  try {
    return parsed(text)
  } finally {
    await yieldToEventLoop()
  }
}

/** Parses a body whose bounds hold. Throws RouterError. */
function parseBody(text: string, limits: BodyLimits): unknown {
  refuseExceeded(exceeded(text, jsonBounds(limits)), limits)
  return parsed(text)
}

function jsonBounds({ values }: BodyLimits): JsonBounds {
  return { values, depth: deepest, members: maxMembers }
}

function refuseExceeded(bound: keyof JsonBounds | undefined, { values }: BodyLimits): void {
  if (bound === 'depth') throw invalidBody(`The body is nested deeper than ${deepest} levels.`)
  if (bound === 'members') throw invalidBody(`The body has an object of more than ${maxMembers} members.`)
  if (bound === 'values') {
    throw invalidBody(`The body has more than ${values} values, the max_values of this server: send less at once.`)
  }
}

function parsed(text: string): unknown {
  try {
    return text === '' ? {} : JSON.parse(text)
  } catch (error) {
    throw new RouterError('invalid_request', `The body is not valid JSON: ${(error as Error).message}`, {
      cause: error,
    })
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

/** Returns the error for a body above the limit. */
function tooLarge(limitBytes: number, cause?: unknown): RouterError {
  const limit =
    limitBytes === maxTextLength ? 'the longest JSON text that this server reads' : 'the body_limit of this server'
  const message = `The body is larger than ${limitBytes} bytes, ${limit}.`
  return new RouterError('too_large', message, { cause })
}

function invalidBody(message: string): RouterError {
  return new RouterError('invalid_request', message)
}

/**
 * Closes the connection of a request whose body is read no further, after its answer. A client that is still sending when the connection is
 * closed loses the answer: so incoming data is discarded for some milliseconds before the connection is closed.
 */
export function closeAfterAnswer(request: IncomingMessage, response: Response): void {
  headersOf(response).connection = 'close'
  const { socket } = request
  socket.destroySoon = () => {
    socket.end()
    const close = () => socket.destroy()
    request.on('end', close)
    request.resume()
    setTimeout(close, maxIgnoredLength).unref()
  }
}

const maxIgnoredLength = 1_000
