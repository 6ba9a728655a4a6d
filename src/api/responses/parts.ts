import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { CacheHint, Citation, MediaPart, Part } from '../../core/parts.ts'
import { defined, filledText, list, object, onlyNumber, onlyString, optional, required, text } from '../check.ts'
import { address, fileAt } from '../media-address.ts'

/** The content of a message or a tool's output: a text, or content parts. Throws RouterError 400 that names the part. */
export function readContent(content: Json | undefined, path: string): Part[] {
  const given = required(content, path, 'a string or an array of content parts', (value) => value)
  if (typeof given === 'string') return [{ type: 'text', text: given }]
  return list(given, path).map((part, index) => readPart(object(part, `${path}[${index}]`), `${path}[${index}]`))
}

function readPart(part: JsonObject, path: string): Part {
  const type = required(part.type, `${path}.type`, 'the type of a content part', filledText)
  switch (type) {
    case 'input_text':
    case 'text':
    case 'summary_text':
    case 'reasoning_text':
      return { type: 'text', text: required(part.text, `${path}.text`, 'a string', text), ...cacheOf(part, path) }
    case 'output_text':
      return { type: 'text', text: required(part.text, `${path}.text`, 'a string', text), ...citationsOf(part) }
    case 'refusal':
    case 'output_refusal':
      return { type: 'refusal', text: required(part.refusal ?? part.text, `${path}.refusal`, 'a string', text) }
    case 'input_image':
      return readImage(part, path)
    case 'input_file':
      return readFile(part, path)
    case 'input_audio':
      return readAudio(part, path)
    default:
      return { type: 'opaque', body: part }
  }
}

/** Checks whether a content part is passed on unread. */
export function isOpaquePart({ type }: JsonObject): boolean {
  return typeof type === 'string' && !partTypes.has(type)
}

const partTypes: ReadonlySet<string> = new Set([
  'input_text',
  'text',
  'summary_text',
  'reasoning_text',
  'output_text',
  'refusal',
  'output_refusal',
  'input_image',
  'input_file',
  'input_audio',
])

function cacheOf(part: JsonObject, path: string): { cache?: CacheHint } {
  return optional(part.prompt_cache_breakpoint, `${path}.prompt_cache_breakpoint`, object) ? { cache: {} } : {}
}

function citationsOf({ annotations }: JsonObject): { citations?: Citation[] } {
  const found = (Array.isArray(annotations) ? annotations : []).flatMap((annotation) => {
    if (!isObject(annotation) || annotation.type !== 'url_citation') return []
    const { url, title, start_index: start, end_index: end } = annotation
    return [defined({ url: onlyString(url), title: onlyString(title), start: onlyNumber(start), end: onlyNumber(end) })]
  })
  return found.length > 0 ? { citations: found } : {}
}

function readImage(part: JsonObject, path: string): MediaPart {
  const detail = optional(part.detail, `${path}.detail`, text)
  const from = { ...(detail !== undefined && { detail }), ...cacheOf(part, path) }
  const fileId = optional(part.file_id, `${path}.file_id`, filledText)
  if (fileId !== undefined) return { type: 'image', file_id: fileId, ...from }
  const url = required(part.image_url, `${path}.image_url`, 'an address or a data URL', filledText)
  if (!url.startsWith('data:')) address(url, `${path}.image_url`)
  return { type: 'image', ...addressed(url), ...from }
}

function readFile(part: JsonObject, path: string): MediaPart {
  const filename = optional(part.filename, `${path}.filename`, text)
  const detail = optional(part.detail, `${path}.detail`, text)
  const named = { ...defined({ filename, detail }), ...cacheOf(part, path) }
  const data = optional(part.file_data, `${path}.file_data`, filledText)
  if (data !== undefined) return { type: 'file', ...fileAt(data, filename, `${path}.file_data`), ...named }
  const url = optional(part.file_url, `${path}.file_url`, address)
  if (url !== undefined) return { type: 'file', url, ...named }
  const fileId = required(part.file_id, path, 'a file by file_data, file_url or file_id', filledText)
  return { type: 'file', file_id: fileId, ...named }
}

function readAudio(part: JsonObject, path: string): MediaPart {
  const audio = required(part.input_audio, `${path}.input_audio`, 'an object with data and format', object)
  const data = required(audio.data, `${path}.input_audio.data`, 'base64 text', filledText)
  const format = required(audio.format, `${path}.input_audio.format`, 'the name of an audio format', filledText)
  return { type: 'audio', data, media_type: `audio/${format}` }
}

export function addressed(url: string): { url: string } | { data: string; media_type: string } {
  const match = /^data:([^;,]*)(?:;[^;,]*)*;base64,/i.exec(url)
  return match ? { data: url.slice(match[0].length), media_type: match[1] || 'application/octet-stream' } : { url }
}
