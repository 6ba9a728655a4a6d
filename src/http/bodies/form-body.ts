import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { RouterError } from '../../core/errors.ts'
import type { UploadedFile } from '../../core/operation.ts'
import type { Response } from '../app.ts'
import type { RunningRequest } from '../running-requests.ts'
import { FormParser } from './form-parser.ts'
import { closeAfterAnswer } from './request-body.ts'

/** A form in the order of its parts. Its files can be read until `dispose`, which must be called. */
export type Form = {
  fields: readonly (readonly [name: string, value: string])[]
  files: readonly UploadedFile[]
  dispose(): Promise<void>
}

/** Limits at which a form is refused or its upload is abandoned. */
export type FormLimits = {
  /** The request that it belongs to. */
  running: RunningRequest
  /** Maximum time for which the upload may stall. Milliseconds. */
  idleMs: number
  /** Maximum size of the whole body. */
  bytes: number
  /** Maximum size of each file. */
  fileBytes: number
  files: number
  fields: number
  /** Maximum size of the values of all fields together. */
  fieldBytes: number
  /** Called as soon as a field has come; may throw RouterError, which ends the upload. */
  onField?(name: string, value: string): void
  /** Folder that keeps large files meanwhile; by default that of the system. */
  folder?: string
}

/**
 * Reads a body of the type multipart/form-data; large files go to the disk. Throws RouterError 400, 413 or 415, or the abort
 * reason: then nothing that has arrived is left.
 */
export async function readForm(request: IncomingMessage, response: Response, limits: FormLimits): Promise<Form> {
  try {
    const boundary = boundaryOf(request)
    if (Number(request.headers['content-length']) > limits.bytes) throw tooLarge(limits)
    return await receive(request, new FormParser(boundary, { folder: tmpdir(), ...limits }), limits)
  } finally {
    // The rest of a body that is not read must not keep the connection open.
    if (!request.complete) closeAfterAnswer(request, response)
  }
}

/** Throws RouterError for a body that is not a form. */
function boundaryOf({ headers }: IncomingMessage): string {
  const { 'content-type': type, 'content-encoding': coding = 'identity' } = headers
  const facts = { param: 'content-type' }
  if (type === undefined || !/^\s*multipart\/form-data\s*(?:;|$)/i.test(type)) {
    const is = type === undefined ? 'this one has no Content-Type' : `not ${type.slice(0, 80)}`
    const message = `The body must be a form of the Content-Type multipart/form-data; ${is}.`
    throw new RouterError('unsupported_media_type', message, facts)
  }
  if (coding.toLowerCase() !== 'identity') {
    const message = `A multipart/form-data body cannot be read in the content encoding "${coding.slice(0, 80)}".`
    throw new RouterError('unsupported_media_type', message, { param: 'content-encoding' })
  }
  const [, quoted, plain] = /;\s*boundary\s*=\s*(?:"([^"]+)"|([^\s;"]+))/i.exec(type) ?? []
  const boundary = quoted ?? plain
  // RFC 2046 allows 70 characters.
  if (boundary !== undefined && /^[\x20-\x7e]{1,200}$/.test(boundary)) return boundary
  throw new RouterError('invalid_request', 'The Content-Type multipart/form-data needs a boundary=...', facts)
}

/** Gives the bytes to the parser, unless the upload is too much, stalls or is aborted. */
function receive(request: IncomingMessage, parser: FormParser, limits: FormLimits): Promise<Form> {
  const { running, idleMs } = limits
  const { promise, resolve, reject } = Promise.withResolvers<Form>()
  let received = 0
  let quietMs = 0
  const end = () => parser.end()
  const stop = () => {
    running.transfer = undefined
    request.off('data', take).off('end', end)
  }
  const fail = (error: RouterError) => {
    stop()
    request.pause()
    const refuse = () => reject(error)
    parser.dispose().then(refuse, refuse)
  }
  const take = (chunk: Buffer) => {
    quietMs = 0
    received += chunk.length
    if (received > limits.bytes) fail(tooLarge(limits))
    else if (!parser.write(chunk)) request.pause()
  }
  const waited = (ms: number) => {
    // Then the disk is waited for, not the client.
    quietMs = request.isPaused() || request.complete ? 0 : quietMs + ms
    const message = `The upload stalled: nothing arrived for ${idleMs} ms.`
    if (quietMs > idleMs) fail(new RouterError('invalid_request', message))
  }
  parser.onReady = () => request.resume()
  parser.onError = fail
  parser.onForm = (fields, files) => {
    stop()
    resolve({ fields, files, dispose: () => parser.dispose() })
  }
  if (running.signal.aborted) throw running.signal.reason
  running.transfer = { waited, fail }
  request.on('data', take).on('end', end)
  return promise
}

function tooLarge({ bytes }: FormLimits): RouterError {
  return new RouterError('too_large', `The form is larger than ${bytes} bytes, the limit of this server.`)
}
