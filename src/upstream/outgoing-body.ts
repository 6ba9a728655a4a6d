import { randomBytes } from 'node:crypto'
import { isObject, type Json, type JsonObject } from '../core/json.ts'
import { isLongerThan, jsonPieces, jsonText, wellFormedText, withoutLoneEscapes } from '../core/json-pieces.ts'
import type { UploadedFile } from '../core/operation.ts'
import { maxInOneStep, yieldBetween } from '../runtime/event-loop.ts'

/** Body that is sent to a provider: `contentType` of the request, its bytes anew for every call of `bytes`, `length` where it is known. */
export type OutgoingBody = { contentType: string; length?: number; bytes(): BodyBytes }

/** A text, bytes, bytes in pieces, or bytes that are made as they are sent. */
export type BodyBytes = string | Uint8Array | readonly Uint8Array[] | AsyncIterable<Uint8Array>

/** A field or a file of a form; `pieces` are a text with files in it. */
export type MultipartEntry =
  | { name: string; value: string }
  | { name: string; pieces: readonly (string | Source)[] }
  | { name: string; filename: string; mediaType: string; size: number; read(): AsyncIterable<Uint8Array> }

/** Source of bytes, and their number. */
type Source = { size: number; read(): AsyncIterable<Uint8Array> }

/**
 * Returns a JSON text. Objects `{"$file": <index of a file>}`, which may have the members of a file among a client's fields, stand for the
 * file's bytes in base64, with `data_url: true` for a data URL of them; a text with files is made as it is sent.
 */
export function jsonBody(value: JsonObject, files: readonly UploadedFile[] = []): OutgoingBody {
  const contentType = 'application/json'
  if (files.length > 0) {
    const pieces = withFiles(value, files)
    if (pieces.length > 1) return streamed(contentType, pieces)
  }
  const text = jsonText(value)
  return { contentType, bytes: () => text }
}

/** Returns the JSON text of a value: of a long one its bytes in UTF-8, written in steps between which other calls run. */
export function jsonContent(value: JsonObject): string | Promise<Uint8Array[]> {
  return isLongerThan(value, maxInOneStep) ? jsonBytes(value) : jsonText(value)
}

async function jsonBytes(value: JsonObject): Promise<Uint8Array[]> {
  const yieldToOthers = yieldBetween()
  const pieces = await jsonPieces(value, yieldToOthers)
  const bytes: Uint8Array[] = []
  for (const piece of pieces) {
    bytes.push(Buffer.from(piece))
    await yieldToOthers()
  }
  return bytes
}

/** Returns a form with files (RFC 7578). */
export function multipartBody(entries: readonly MultipartEntry[]): OutgoingBody {
  const boundary = `form-${randomBytes(18).toString('hex')}`
  const pieces = entries.flatMap((entry) => {
    const disposition = `--${boundary}\r\ncontent-disposition: form-data; name="${escaped(entry.name)}"`
    if ('value' in entry) return [`${disposition}\r\n\r\n${entry.value}\r\n`]
    if ('pieces' in entry) return [`${disposition}\r\n\r\n`, ...entry.pieces, '\r\n']
    const type = sendableType(entry.mediaType)
    return [`${disposition}; filename="${escaped(entry.filename)}"\r\ncontent-type: ${type}\r\n\r\n`, entry, '\r\n']
  })
  return streamed(`multipart/form-data; boundary=${boundary}`, [...pieces, `--${boundary}--\r\n`])
}

/** Returns a form without files (application/x-www-form-urlencoded). */
export function formBody(entries: [string, string][]): OutgoingBody {
  const text = new URLSearchParams(entries).toString()
  return { contentType: 'application/x-www-form-urlencoded', bytes: () => text }
}

/** Returns the bytes of a file, as they are. */
export function bytesBody(file: Pick<UploadedFile, 'mediaType' | 'size' | 'read'>): OutgoingBody {
  return { contentType: sendableType(file.mediaType), length: file.size, bytes: () => file.read() }
}

/** Returns all bytes of a body; undefined when they are more than `most`. */
export async function wholeBytes(bytes: BodyBytes, most: number): Promise<string | Uint8Array | undefined> {
  if (typeof bytes === 'string') return bytes
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of bytes instanceof Uint8Array ? [bytes] : bytes) {
    length += chunk.length
    if (length > most) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Returns the JSON text of a value: the pieces around its files, and the files as base64. */
export function withFiles(value: JsonObject | Json[], files: readonly UploadedFile[]): (string | Source)[] {
  // Nobody can guess it: a text that looks like the place of a file is not one.
  const mark = randomBytes(18).toString('hex')
  const marked = (_: string, item: unknown) => {
    const place = placeOf(item, files)
    if (!place) return wellFormedText('', item)
    const type = sendableType((files[place.index] as UploadedFile).mediaType)
    return `${place.dataUrl ? `data:${type};base64,` : ''}${mark}.${place.index}`
  }
  const pieces = withoutLoneEscapes(JSON.stringify(value, marked)).split(new RegExp(`${mark}\\.(\\d+)`))
  return pieces.map((piece, at) => (at % 2 === 0 ? piece : base64Of(files[Number(piece)] as UploadedFile)))
}

/** Returns the file that an object stands for, and whether it becomes a data URL. */
function placeOf(item: unknown, files: readonly UploadedFile[]): { index: number; dataUrl: boolean } | undefined {
  if (!isObject(item)) return undefined
  const { $file: index, data_url: dataUrl = false, filename: _, media_type: __, size: ___, ...others } = item
  if (typeof index !== 'number' || typeof dataUrl !== 'boolean' || Object.keys(others).length > 0) return undefined
  return index in files ? { index, dataUrl } : undefined
}

/** Returns the file that a value in a body stands for. */
export function fileAt(value: unknown, files: readonly UploadedFile[]): UploadedFile | undefined {
  const place = placeOf(value, files)
  return place && files[place.index]
}

function base64Of(file: UploadedFile): Source {
  return {
    size: Math.ceil(file.size / 3) * 4,
    async *read() {
      let rest = Buffer.alloc(0)
      for await (const chunk of file.read()) {
        const bytes = Buffer.concat([rest, chunk])
        const whole = bytes.length - (bytes.length % 3)
        rest = bytes.subarray(whole)
        if (whole > 0) yield Buffer.from(bytes.toString('base64', 0, whole), 'latin1')
      }
      if (rest.length > 0) yield Buffer.from(rest.toString('base64'), 'latin1')
    },
  }
}

/** Escapes a name as browsers write it: https://html.spec.whatwg.org/#multipart-form-data */
function escaped(name: string): string {
  return name.replace(/["\r\n]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`)
}

/** Returns the media type that a client declared if it can go into a header. */
function sendableType(mediaType: string): string {
  return /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:; *[\w-]+=[\w.-]+)*$/.test(mediaType) ? mediaType : 'application/octet-stream'
}

/** Returns a body of texts and files one after the other. */
function streamed(contentType: string, pieces: readonly (string | Source)[]): OutgoingBody {
  const parts = pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece))
  const length = parts.reduce((sum, part) => sum + ('read' in part ? part.size : part.length), 0)
  return {
    contentType,
    length,
    async *bytes() {
      for (const part of parts) {
        if ('read' in part) yield* part.read()
        else if (part.length > 0) yield part
      }
    },
  }
}
