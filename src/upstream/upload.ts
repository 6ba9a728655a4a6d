import { isObject, type Json, type JsonObject } from '../core/json.ts'
import type { UploadedFile } from '../core/operation.ts'
import type { Upload } from '../manifest/operation.ts'
import { runMapping } from '../manifest/run/run-mapping.ts'
import type { Target } from '../manifest/target.ts'
import { type AnswerBounds, parseObject, unreadable } from './answer-body.ts'
import type { HttpClient } from './http/types.ts'
import { bytesBody, fileAt, multipartBody, type OutgoingBody } from './outgoing-body.ts'
import { sendRequest, type TimingLimits, textOf } from './provider-request.ts'

/** Options for sending files ahead of a request. */
type UploadOptions = { signal: AbortSignal; bounds: AnswerBounds; limits?: TimingLimits; httpClient: HttpClient }

/**
 * Sends the files that a body names to a target, each once and one after the other, and returns the body with the target's references in
 * their places. Throws RouterError.
 */
export async function withUploads(
  target: Target,
  upload: Upload,
  { body, files }: { body: JsonObject; files: readonly UploadedFile[] },
  options: UploadOptions,
): Promise<JsonObject> {
  const named = new Set<UploadedFile>()
  if (files.length > 0) replaced(body, files, (file) => named.add(file) && '')
  if (named.size === 0) return body
  const references = new Map<UploadedFile, string>()
  for (const file of named) references.set(file, await send(target, upload, file, options))
  return replaced(body, files, (file) => references.get(file) as string) as JsonObject
}

async function send(
  target: Target,
  { path, body: form, field, fields, reference }: Upload,
  file: UploadedFile,
  { signal, bounds, limits, httpClient }: UploadOptions,
): Promise<string> {
  const { provider } = target
  const body =
    form === 'bytes' ? bytesBody({ ...file, mediaType: 'application/octet-stream' }) : formOf(file, field, fields)
  const sent = { path, accept: 'application/json', body, signal, ...(limits && { timing: limits }) }
  const response = await sendRequest(target, sent, httpClient)
  const answer = parseObject(provider, await textOf(provider, response, bounds.bytes), bounds)
  const made = await runMapping(provider, 'upload.reference', reference, answer)
  if (typeof made === 'string' && made !== '') return made
  throw unreadable(provider, 'took a file without an answer that names it')
}

function formOf(file: UploadedFile, name: string, fields: Upload['fields']): OutgoingBody {
  const { filename, mediaType, size } = file
  return multipartBody([
    ...Object.entries(fields).map(([field, value]) => ({ name: field, value })),
    { name, filename: filename || 'file', mediaType, size, read: () => file.read() },
  ])
}

/** Returns a value with something else in place of each file. */
function replaced(value: Json, files: readonly UploadedFile[], by: (file: UploadedFile) => string): Json {
  const file = fileAt(value, files)
  if (file) return by(file)
  if (Array.isArray(value)) return value.map((item) => replaced(item, files, by))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, item]) => (item === undefined ? [] : [[name, replaced(item, files, by)]])),
  )
}
