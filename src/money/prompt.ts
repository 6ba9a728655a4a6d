import type { Json } from '../core/json.ts'
import type { CacheHint, Part } from '../core/parts.ts'
import type { NeutralRequest } from '../core/request.ts'

/** What a request is taken to count, and what in it has a price of its own. */
export type PromptSize = {
  tokens: number
  audio: boolean
  images: boolean
  /** The longest lifetime for which the prompt is to be kept in the provider's cache. */
  caches: '5m' | '1h' | undefined
}

/** Sizes up a request in one walk: about four ASCII characters are a token, and so is each other character. */
export function sizeUp(request: NeutralRequest): PromptSize {
  const { system, messages, tools, response_format: format, cache } = request
  const size: Walk = { ascii: 0, other: 0, media: 0, audio: false, images: false, caches: undefined }
  if (system) takeParts(size, system)
  for (const { parts } of messages) {
    size.ascii += charactersPerTurn
    takeParts(size, parts)
  }
  for (const tool of tools ?? []) {
    takeHint(size, tool.cache)
    takeText(size, tool.name)
    takeText(size, tool.description)
    takeJson(size, tool.parameters)
    takeJson(size, tool.format)
  }
  if (format?.type === 'json_schema') takeJson(size, format.schema)
  if (cache?.options || cache?.retention) takeHint(size, lifetimeOf(cache))
  const { ascii, other, media, audio, images, caches } = size
  return { tokens: Math.ceil(ascii / charactersPerToken) + other + media * tokensPerMedium, audio, images, caches }
}

/** Tokens of what is written in these parts, visible or not. */
export function writtenTokens(parts: readonly Part[]): number {
  const size: Walk = { ascii: 0, other: 0, media: 0, audio: false, images: false, caches: undefined }
  takeParts(size, parts)
  return Math.ceil(size.ascii / charactersPerToken) + size.other
}

/** A token is about four characters of English text or JSON: the usual estimate where nobody counted. */
const charactersPerToken = 4
/** What an image, a recording or a document is taken to count where nobody counted. Tokens. */
const tokensPerMedium = 1_000
/** Who speaks and where a turn ends is told in tokens as well. Characters. */
const charactersPerTurn = 16

type Walk = Omit<PromptSize, 'tokens'> & { ascii: number; other: number; media: number }

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
      case 'image':
      case 'audio':
      case 'video':
      case 'file':
        size.media++
        if (part.type === 'audio') size.audio = true
        if (part.type === 'image') size.images = true
        break
    }
  }
}

/** The length in UTF-8 is counted many characters at a time, and tells text without any other character apart. */
function takeText(size: Walk, text: string | undefined): void {
  if (!text) return
  const { length } = text
  if (Buffer.byteLength(text) === length) {
    size.ascii += length
    return
  }
  let other = 0
  for (let place = 0; place < length; place++) {
    const unit = text.charCodeAt(place)
    // The second half of a pair belongs to the character that was counted with the first.
    if (unit > lastAscii && (unit & 0xfc00) !== 0xdc00) other++
    else if (unit <= lastAscii) size.ascii++
  }
  size.other += other
}

const lastAscii = 0x7f

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

/** Any lifetime in words that is not a short one counts as a long one: `24h`, `12h`, `1h`. */
function lifetimeOf({ retention, options }: NonNullable<NeutralRequest['cache']>): CacheHint {
  const told = [retention, options?.ttl].filter((one) => typeof one === 'string')
  return { ttl: told.some((one) => /^\d+(h|d)$/.test(one)) ? '1h' : '5m' }
}
