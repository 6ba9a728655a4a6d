import type { Json } from '../core/json.ts'
import type { CacheHint, MediaPart, Part } from '../core/parts.ts'
import { isProviderTool, type NeutralRequest } from '../core/request.ts'

/** The estimated tokens of a prompt, and the kinds of content in it that have prices of their own. */
export type PromptSize = {
  tokens: number
  audio: boolean
  images: boolean
  /** The longest requested lifetime in the provider's cache. */
  caches: '5m' | '1h' | undefined
}

/** Estimates the tokens of a prompt in one walk: four ASCII characters are a token, and so is each other character. */
export function estimateTokens(request: NeutralRequest): PromptSize {
  const { system, messages, tools, response_format: format, cache, extensions } = request
  const size = emptyWalk()
  if (system) takeParts(size, system)
  for (const { parts } of messages) {
    size.ascii += charactersPerTurn
    takeParts(size, parts)
  }
  for (const tool of tools ?? []) {
    takeHint(size, tool.cache)
    if (isProviderTool(tool)) {
      takeJson(size, tool.definition)
      continue
    }
    takeText(size, tool.name)
    takeText(size, tool.description)
    takeJson(size, tool.parameters)
    takeJson(size, tool.format)
  }
  if (format?.type === 'json_schema') takeJson(size, format.schema)
  if (extensions) takeJson(size, extensions)
  if (cache?.options || cache?.retention) takeHint(size, lifetimeOf(cache))
  const { audio, images, caches } = size
  return { tokens: tokensIn(size), audio, images, caches }
}

/** The estimated tokens of a model's output, visible or not; results of the provider's own tools are not output. */
export function estimateOutputTokens(parts: readonly Part[]): number {
  const size = emptyWalk()
  takeParts(
    size,
    parts.filter(({ type }) => type !== 'search' && type !== 'opaque'),
  )
  return tokensIn({ ...size, media: 0 })
}

/** A token is about four characters of English text or JSON: the usual estimate where there is no tokenizer. */
const charactersPerToken = 4
/** The smallest estimate for an image, a recording or a document. Tokens. */
const tokensPerMedium = 1_000
/** Base64 of text is a third longer than the text; that of pages, audio and video has far fewer tokens. Characters. */
const base64PerToken = { text: 5, other: 64 }
/** The markup of a message: its role and end. Characters. */
const charactersPerTurn = 16

/** Characters, and the tokens of media. */
type Walk = Omit<PromptSize, 'tokens'> & { ascii: number; other: number; media: number }

function emptyWalk(): Walk {
  return { ascii: 0, other: 0, media: 0, audio: false, images: false, caches: undefined }
}

function tokensIn({ ascii, other, media }: Walk): number {
  return Math.ceil(ascii / charactersPerToken) + other + media
}

function takeParts(size: Walk, parts: readonly Part[]): void {
  for (const part of parts) {
    if ('cache' in part) takeHint(size, part.cache)
    switch (part.type) {
      case 'text':
      case 'refusal':
        takeText(size, part.text)
        break
      case 'reasoning':
        takeText(size, part.text ?? part.summary)
        break
      case 'tool_call':
        takeText(size, part.name)
        takeText(size, part.arguments)
        break
      case 'tool_result':
        takeParts(size, part.parts)
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

function takeMedium(size: Walk, { type, data, media_type: kind }: MediaPart): void {
  if (type === 'audio') size.audio = true
  if (type === 'image') size.images = true
  const length = type === 'image' || !data ? 0 : data.length
  const isText = kind?.startsWith('text/') === true
  size.media += Math.max(tokensPerMedium, Math.ceil(length / base64PerToken[isText ? 'text' : 'other']))
}

/** Compares the length with that in UTF-8, which is fast to compute: plain ASCII has the same. */
function takeText(size: Walk, text: unknown): void {
  // Values from providers may have any type.
  if (typeof text !== 'string' || text === '') return
  const beyond = Buffer.byteLength(text) - text.length
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

/** A schema counts about as its text does. */
function takeJson(size: Walk, value: Json | undefined): void {
  if (value === undefined) return
  if (typeof value === 'string') {
    size.ascii += 2
    takeText(size, value)
  } else if (value === null || typeof value !== 'object') {
    size.ascii += charactersPerToken
  } else if (Array.isArray(value)) {
    size.ascii += 2
    for (const member of value) takeJson(size, member)
  } else {
    size.ascii += 2
    for (const name in value) {
      size.ascii += name.length + 4
      takeJson(size, value[name])
    }
  }
}

function takeHint(size: Walk, hint: CacheHint | undefined): void {
  if (!hint) return
  if (hint.ttl === '1h' || size.caches === undefined) size.caches = hint.ttl === '1h' ? '1h' : '5m'
}

/** Every lifetime in hours or days counts as the long one: `24h`, `12h`, `1h`. */
function lifetimeOf({ retention, options }: NonNullable<NeutralRequest['cache']>): CacheHint {
  const lifetimes = [retention, options?.ttl].filter((one) => typeof one === 'string')
  return { ttl: lifetimes.some((one) => /^\d+(h|d)$/.test(one)) ? '1h' : '5m' }
}
