import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { CacheHint, MediaPart, Part, TextPart } from '../../core/parts.ts'
import { defined, filledText, list, object, optional, refuse, required, text } from '../check.ts'
import { dataOf, fileAt, isAddress } from '../media-address.ts'

/** The types of parts that a message may have, by its role. */
const partsOf = {
  system: ['text'],
  user: ['text', 'image_url', 'input_audio', 'file', 'video_url', 'document_url', 'input_file', 'file_input'],
  assistant: ['text', 'refusal', 'thinking', 'image_url'],
  tool: ['text', 'image_url', 'input_audio', 'file', 'input_file', 'file_input'],
} as const satisfies { [role: string]: readonly PartType[] }

type PartType =
  | 'text'
  | 'image_url'
  | 'input_audio'
  | 'file'
  | 'input_file'
  | 'file_input'
  | 'video_url'
  | 'document_url'
  | 'refusal'
  | 'thinking'

/** The content of a message, text or parts, as neutral parts. Throws RouterError 400 that names the field. */
export function readContent(value: Json, path: string, role: keyof typeof partsOf): Part[] {
  if (typeof value === 'string') return [{ type: 'text', text: value }]
  if (!Array.isArray(value)) return refuse(path, 'a string or an array of content parts', value)
  if (value.length === 0 && (role === 'user' || role === 'system')) refuse(path, 'at least one content part', value)
  return value.map((item, index) => readPart(item, `${path}[${index}]`, partsOf[role]))
}

function readPart(value: Json, path: string, allowed: readonly PartType[]): Part {
  const part = object(value, path)
  const type = required(part.type, `${path}.type`, 'the kind of the content part', text)
  const known = allowed.find((name) => name === type)
  if (known) return readers[known](part, path)
  // What nobody here knows may be known where the format is the same.
  return Object.hasOwn(readers, type)
    ? refuse(`${path}.type`, `one of ${quoted(allowed)}`, type)
    : { type: 'opaque', body: part }
}

function quoted(types: readonly string[]): string {
  return types.map((type) => `'${type}'`).join(', ')
}

/** The marker of the end of a prefix worth caching, in either of its two spellings. */
export function cacheHint(part: JsonObject, path: string): CacheHint | undefined {
  const control = optional(part.cache_control, `${path}.cache_control`, object)
  const breakpoint = optional(part.prompt_cache_breakpoint, `${path}.prompt_cache_breakpoint`, object)
  if (!control && !breakpoint) return undefined
  return control?.ttl === '5m' || control?.ttl === '1h' ? { ttl: control.ttl } : {}
}

const readers: { [type in PartType]: (part: JsonObject, path: string) => Part } = {
  text: readText,
  image_url: (part, path) => hinted(readImage(part, path), part, path),
  input_audio: (part, path) => hinted(readAudio(part, path), part, path),
  file: (part, path) => hinted(readFile(part, path), part, path),
  input_file: (part, path) => hinted(fileOf(part, path), part, path),
  file_input: (part, path) => hinted(fileOf(part, path), part, path),
  video_url: (part, path) => hinted({ type: 'video', ...readAddress(part, 'video_url', path) }, part, path),
  document_url: (part, path) => hinted({ type: 'file', ...readAddress(part, 'document_url', path) }, part, path),
  refusal: (part, path) => {
    return { type: 'refusal', text: required(part.refusal, `${path}.refusal`, 'a string', text) }
  },
  thinking: readThinking,
}

function readText(part: JsonObject, path: string): TextPart {
  const cache = cacheHint(part, path)
  return { type: 'text', text: required(part.text, `${path}.text`, 'a string', text), ...(cache && { cache }) }
}

function hinted(media: MediaPart, part: JsonObject, path: string): MediaPart {
  const cache = cacheHint(part, path)
  return cache ? { ...media, cache } : media
}

function readImage(part: JsonObject, path: string): MediaPart {
  const nested = isObject(part.image_url) ? part.image_url : part
  const detail = optional(nested.detail, `${path}.image_url.detail`, text)
  return { type: 'image', ...readAddress(part, 'image_url', path), ...(detail !== undefined && { detail }) }
}

/** `{image_url: {url}}`, or the bare URL, as some compatible clients write it. */
function readAddress(part: JsonObject, name: string, path: string): Pick<MediaPart, 'url' | 'data' | 'media_type'> {
  const at = `${path}.${name}`
  const given = required(part[name], at, 'an object with a url', (value) => value)
  if (typeof given === 'string') return mediaAt(given, at)
  return mediaAt(required(object(given, at).url, `${at}.url`, addressExpected, text), `${at}.url`)
}

const addressExpected = 'an http(s) URL or a data URL'

/** A data URL is split into its data and media type; any other URL stays one. */
function mediaAt(url: string, path: string): Pick<MediaPart, 'url' | 'data' | 'media_type'> {
  if (url.startsWith('data:')) return dataOf(url, path)
  return isAddress(url) ? { url } : refuse(path, addressExpected, url)
}

function readAudio(part: JsonObject, path: string): MediaPart {
  const at = `${path}.input_audio`
  const audio = required(part.input_audio, at, 'an object with data and format', object)
  const data = required(audio.data, `${at}.data`, 'base64 audio', filledText)
  const format = required(audio.format, `${at}.format`, "the name of an audio format such as 'wav'", filledText)
  if (data.startsWith('data:')) return { type: 'audio', ...dataOf(data, `${at}.data`) }
  return { type: 'audio', data, media_type: format === 'mp3' ? 'audio/mpeg' : `audio/${format}` }
}

function readFile(part: JsonObject, path: string): MediaPart {
  const at = `${path}.file`
  return fileOf(required(part.file, at, 'an object with file_data or file_id', object), at)
}

/** Reads the members of a file, which are in an object of their own or, as other gateways write them, in the part itself. */
function fileOf(file: JsonObject, at: string): MediaPart {
  const filename = optional(file.filename, `${at}.filename`, text)
  const id = optional(file.file_id, `${at}.file_id`, filledText)
  const data = optional(file.file_data, `${at}.file_data`, filledText)
  const url = optional(file.file_url, `${at}.file_url`, filledText)
  const named = defined({ filename })
  if (data !== undefined) return { type: 'file', ...fileAt(data, filename, `${at}.file_data`), ...named }
  if (url !== undefined) return { type: 'file', ...mediaAt(url, `${at}.file_url`), ...named }
  if (id !== undefined) return { type: 'file', file_id: id, ...named }
  return refuse(at, 'an object with file_data or file_id', file)
}

/** Reasoning as a content part: `thinking` is text, or a list of text parts. */
function readThinking(part: JsonObject, path: string): Part {
  const at = `${path}.thinking`
  const given = required(part.thinking, at, 'a string or an array of text parts', (value) => value)
  const signature = optional(part.signature, `${path}.signature`, text)
  const texts = typeof given === 'string' ? [given] : list(given, at).map((item) => (isObject(item) ? item.text : ''))
  const joined = texts.filter((item) => typeof item === 'string').join('')
  return { type: 'reasoning', ...(joined && { text: joined }), ...(signature && { signature }) }
}
