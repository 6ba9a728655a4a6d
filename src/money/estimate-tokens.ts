import { hasMember, type Json, type JsonObject } from '../core/json.ts'
import { jsonLength } from '../core/json-pieces.ts'
import type { CacheHint, MediaPart, NativeItem, Part } from '../core/parts.ts'
import { type ClientTool, isProviderTool, type NeutralRequest, type ProviderTool } from '../core/request.ts'
import { audioFormatOf } from '../media/audio-format.ts'
import { wavRate } from '../media/wav.ts'

/** The estimated tokens of a prompt, what bounds them, and the kinds of content in it that have prices of their own. */
export type PromptSize = {
  tokens: number
  /** The text in UTF-8, with room for its markup: no text has more tokens than bytes. */
  bytes: number
  /** Number of these bytes that are text, and number of its characters that are not ASCII. */
  text: number
  other: number
  /** Images; how many tokens each has at most depends on the model. */
  images: number
  /** Maximum number of tokens of recordings and documents, as far as their data determines it. */
  media: number
  /** True if something may be as long as the model's context: a file by URL or id, a packed document. */
  boundless: boolean
  audio: boolean
  /** The longest requested lifetime in the provider's cache. */
  caches: '5m' | '1h' | undefined
}

/** Estimates the tokens of a prompt in one walk: four ASCII characters are a token, and so is each other character. */
export function estimateTokens(request: NeutralRequest): PromptSize {
  const size = emptyWalk()
  const tokens = walk(size, request)
  const { bytes, text, other, images, media, boundless, audio, caches } = size
  return { tokens, bytes, text, other, images, media, boundless, audio, caches }
}

/** The texts of a prompt, with JSON as one text each: what a tokenizer counts. */
export function promptTexts(request: NeutralRequest): string[] {
  const texts: string[] = []
  walk({ ...emptyWalk(), texts }, request)
  return texts
}

/** Sizes up a whole prompt; returns the estimated tokens. */
function walk(size: Walk, request: NeutralRequest): number {
  const { system, messages, tools, response_format: format, cache, extensions } = request
  if (system) takeParts(size, system)
  for (const { parts } of messages) {
    size.ascii += charactersPerTurn
    size.bytes += bytesPerNode
    takeParts(size, parts)
  }
  for (const tool of tools ?? []) {
    takeHint(size, tool.cache)
    size.bytes += bytesPerNode
    if (isProviderTool(tool)) takeProviderTool(size, tool)
    else takeTool(size, tool)
  }
  if (format?.type === 'json_schema') takeJson(size, format.schema)
  if (extensions) takeJson(size, extensions)
  if (cache?.options || cache?.retention) takeHint(size, lifetimeOf(cache))
  const tokens = tokensIn(size)
  size.bytes += inlinedBytes(request)
  takeRemaining(size, request)
  return tokens
}

/** A provider of the client's API gets the definition, every other one the functions in its place: the longer of both counts. */
function takeProviderTool(size: Walk, { definition, functions }: ProviderTool): void {
  if (functions && jsonLength(functions as Json) >= jsonLength(definition))
    for (const one of functions) takeTool(size, one)
  else takeJson(size, definition)
}

/** A call or result in the client's own form goes to a provider of that API as it is. */
function takesNative(native: NativeItem | undefined, other: Json): native is NativeItem {
  return native !== undefined && jsonLength(native.body) > jsonLength(other)
}

function takeTool(size: Walk, { name, description, parameters, format }: ClientTool): void {
  takeText(size, name)
  takeText(size, description)
  takeJson(size, parameters)
  takeJson(size, format)
}

/** Bytes that definitions add where a provider takes no references beside which something stands. */
function inlinedBytes({ tools = [], response_format: format }: NeutralRequest): number {
  const schemas = tools.flatMap((tool) => ('parameters' in tool && tool.parameters ? [tool.parameters] : []))
  if (format?.type === 'json_schema' && format.schema) schemas.push(format.schema)
  return schemas.some((schema) => hasMember(schema, '$ref')) ? maxInlinedBytes : 0
}

/** Adds what is too small or too rare to be estimated, but may become a part of the prompt. */
function takeRemaining(size: Walk, { web_search, prediction, unread, origin }: NeutralRequest): void {
  if (web_search) takeJson(size, web_search as JsonObject)
  if (prediction) takeJson(size, prediction)
  // Members that only an edited body keeps: which ones a provider reads is not known.
  if (unread) takeJson(size, origin.body)
}

/** The bytes of texts, and how many of their characters are not ASCII. */
export function sizeOfTexts(texts: readonly string[]): Pick<PromptSize, 'text' | 'other'> {
  const size = emptyWalk()
  for (const text of texts) takeText(size, text)
  return { text: size.text, other: size.other }
}

/** The estimated tokens of a model's output, visible or not; results of the provider's own tools are not output. */
export function estimateOutputTokens(parts: readonly Part[]): number {
  const size = emptyWalk()
  takeParts(
    size,
    parts.filter(({ type }) => type !== 'search' && type !== 'opaque'),
  )
  return tokensIn({ ...size, files: 0 })
}

/** A token is about four characters of English text or JSON: the usual estimate where there is no tokenizer. */
const charactersPerToken = 4
/** The smallest estimate for an image, a recording or a document. Tokens. */
const tokensPerMedium = 1_000
/** Base64 of text is a third longer than the text; that of pages, audio and video has far fewer tokens. Characters. */
const base64PerToken = { text: 5, other: 64 }
/** The markup of a message: its role and end. Characters. */
const charactersPerTurn = 16

/** Bytes of definitions that are put in the places of references, at most, in a request. */
const maxInlinedBytes = 16_384

/** Bytes that a provider may write around a message, a part or a tool. */
const bytesPerNode = 32

/** Characters, and the estimated tokens of media, beside what bounds the size. */
type Walk = Omit<PromptSize, 'tokens'> & { ascii: number; files: number; texts?: string[] }

function emptyWalk(): Walk {
  return {
    ...{ ascii: 0, other: 0, files: 0, bytes: 0, text: 0, images: 0, media: 0 },
    boundless: false,
    audio: false,
    caches: undefined,
  }
}

function tokensIn({ ascii, other, files }: Walk): number {
  return Math.ceil(ascii / charactersPerToken) + other + files
}

function takeParts(size: Walk, parts: readonly Part[]): void {
  for (const part of parts) {
    size.bytes += bytesPerNode
    if ('cache' in part) takeHint(size, part.cache)
    switch (part.type) {
      case 'text':
      case 'refusal':
        takeText(size, part.text)
        break
      case 'reasoning':
        takeText(size, part.text ?? part.summary)
        // What is encrypted was thought in the same tokens: a byte of it is more than enough for each.
        size.bytes += part.encrypted?.length ?? 0
        break
      case 'tool_call':
        takeText(size, part.name)
        if (takesNative(part.native, part.arguments)) takeJson(size, part.native.body)
        else takeText(size, part.arguments)
        break
      case 'tool_result':
        // Media count as such; the client's own form says the same of them.
        if (part.parts.every(isText) && takesNative(part.native, textsOf(part.parts))) takeJson(size, part.native.body)
        else takeParts(size, part.parts)
        break
      case 'search':
        takeJson(size, part.results)
        break
      case 'opaque':
        takeJson(size, part.body)
        break
      default:
        takeMedium(size, part)
    }
  }
}

function isText({ type }: Part): boolean {
  return type === 'text'
}

function textsOf(parts: readonly Part[]): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

function takeMedium(size: Walk, part: MediaPart): void {
  const { type, data, media_type: kind } = part
  if (type === 'audio') size.audio = true
  const length = type === 'image' || !data ? 0 : data.length
  const isText = kind?.startsWith('text/') === true
  size.files += Math.max(tokensPerMedium, Math.ceil(length / base64PerToken[isText ? 'text' : 'other']))
  if (type === 'image' || kind?.startsWith('image/')) size.images++
  else if (data === undefined) size.boundless = true
  else if (isText) size.media += tokensPerMedium + length
  else if (isEvenRecording(part)) size.media += tokensPerMedium + Math.ceil(length / recordedPerToken)
  else size.boundless = true
  takeText(size, part.filename)
  takeText(size, part.transcript)
}

/**
 * Checks for recordings whose length follows from their bytes: the lowest rate of MP3 is 1,000 bytes a second, and PCM has more, unless its
 * header states that it has not. Data of another format than the one that is declared may last longer.
 */
function isEvenRecording({ media_type: kind = '', data = '' }: MediaPart): boolean {
  if (!evenRecordings.has(kind.replace(/^audio\/(x-)?/, ''))) return false
  const head = Buffer.from(data.slice(0, headCharacters), 'base64')
  const format = audioFormatOf(head)
  // What is shorter than a header lasts for a moment.
  if (format === 'wav') return data.length < shortestCharacters || wavRate(head) >= minBytesPerSecond
  return format === undefined || format === 'mp3'
}

/** Characters of base64: of a beginning that is searched for the description of the samples, and of the shortest file that has one. */
const headCharacters = 8_192
const shortestCharacters = 64
const minBytesPerSecond = 1_000

const evenRecordings: ReadonlySet<string> = new Set(['wav', 'wave', 'mp3', 'mpeg', 'l16', 'pcm', 'pcm16'])
/** A second has at most 40 tokens. Characters of base64. */
const recordedPerToken = 32

/** Compares the length with that in UTF-8, which is fast to compute: plain ASCII has the same. */
function takeText(size: Walk, text: unknown): void {
  // Values from providers may have any type.
  if (typeof text !== 'string' || text === '') return
  const bytes = Buffer.byteLength(text)
  size.bytes += bytes
  size.text += bytes
  size.texts?.push(text)
  const beyond = bytes - text.length
  const other = beyond === 0 ? 0 : Math.min(Math.ceil(beyond / bytesBeyond(text)), text.length)
  size.ascii += text.length - other
  size.other += other
}

/** The average number of bytes beyond one of characters that are not ASCII, from a sample: 1 (Cyrillic) to 2 (Chinese). */
function bytesBeyond(text: string): number {
  const step = Math.max(1, Math.floor(text.length / sampledCharacters))
  let characters = 0
  let bytes = 0
  for (let place = 0; place < text.length; place += step) {
    const unit = text.charCodeAt(place)
    if (unit <= lastAscii) continue
    characters++
    // Two halves of a pair share four bytes.
    bytes += unit > lastOfTwoBytes && (unit & surrogateMask) !== surrogate ? 2 : 1
  }
  return characters === 0 ? 1 : bytes / characters
}

const sampledCharacters = 512
const lastAscii = 0x7f
const lastOfTwoBytes = 0x7ff
const surrogateMask = 0xf800
const surrogate = 0xd800

/** `-1.2345678901234567e+123`. */
const maxNumberLength = 24

/** A schema counts about as its text does. */
function takeJson(size: Walk, value: Json | undefined): void {
  if (value === undefined) return
  if (size.texts) {
    size.texts.push(JSON.stringify(value))
    return
  }
  if (typeof value === 'string') {
    size.ascii += 2
    size.bytes += 4
    takeText(size, value)
  } else if (value === null || typeof value !== 'object') {
    size.ascii += charactersPerToken
    size.bytes += maxNumberLength
  } else if (Array.isArray(value)) {
    size.ascii += 2
    size.bytes += 4
    for (const member of value) takeJson(size, member)
  } else {
    size.ascii += 2
    size.bytes += 4
    for (const name in value) {
      size.ascii += name.length + 4
      const bytes = Buffer.byteLength(name) + 6
      size.bytes += bytes
      size.text += bytes
      takeJson(size, value[name])
    }
  }
}

function takeHint(size: Walk, hint: CacheHint | undefined): void {
  if (!hint) return
  if (hint.ttl === '1h' || size.caches === undefined) size.caches = hint.ttl === '1h' ? '1h' : '5m'
}

/** Returns a lifetime: every one in hours or days counts as the long one: `24h`, `12h`, `1h`. */
function lifetimeOf({ retention, options }: NonNullable<NeutralRequest['cache']>): CacheHint {
  const lifetimes = [retention, options?.ttl].filter((one) => typeof one === 'string')
  return { ttl: lifetimes.some((one) => /^\d+(h|d)$/.test(one)) ? '1h' : '5m' }
}
