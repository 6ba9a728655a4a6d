import { format, typeOfExtension, usualType } from './media-types.ts'

/** The data URL of a media part that has data, else its address. */
export function dataUrl(part?: unknown, defaultType = 'application/octet-stream'): string | undefined {
  const data = text(part, 'data')
  return data ? `data:${mediaType(part) ?? defaultType};base64,${data}` : text(part, 'url')
}

/** Characters of a data URL before its data: a media type and its parameters. */
const maxHeadLength = 1_000

/** The media type and the base64 text of a data URL. */
export function parseDataUrl(url?: string): { type: string; body: string } | undefined {
  const match = /^data:([^;,]*)(?:;[^;,]*)*;base64,/i.exec(url?.slice(0, maxHeadLength) ?? '')
  return match && url !== undefined ? { type: match[1] || 'text/plain', body: url.slice(match[0].length) } : undefined
}

/**
 * The media type of a media part, a data URL, a file name or an address. What the part says counts unless it says
 * nothing definite; then the ending of its name or address does, then the first bytes of its data.
 */
export function mediaType(source?: unknown): string | undefined {
  if (typeof source === 'string') return parseType(parseDataUrl(source)?.type) ?? typeOfName(source)
  const stated = parseType(text(source, 'media_type'))
  if (stated !== undefined && !indefinite.has(stated)) return stated
  const url = text(source, 'url')
  return (
    parseType(parseDataUrl(url)?.type) ??
    typeOfName(text(source, 'filename')) ??
    typeOfName(url) ??
    typeOfName(text(source, 'file_id')) ??
    typeOfData(text(source, 'data')) ??
    stated
  )
}

/** The usual short name (`png`, `mp3`, `docx`) of a media type, or of what `mediaType` takes. */
export function mediaFormat(source?: unknown): string | undefined {
  const type = typeof source === 'string' ? (parseType(source) ?? mediaType(source)) : mediaType(source)
  return type === undefined ? undefined : format(type)
}

const indefinite = new Set(['application/octet-stream', 'binary/octet-stream'])

/** A media type in lower case, without parameters, by its usual name. */
function parseType(type: string | undefined): string | undefined {
  const bare = type?.split(';')[0]?.trim().toLowerCase() ?? ''
  return /^[a-z]+\/[^/\s]+$/.test(bare) ? usualType(bare) : undefined
}

function typeOfName(name: string | undefined): string | undefined {
  const extension = /\.([a-z0-9]{2,5})(?:[?#].*)?$/i.exec(name?.slice(-1_000) ?? '')?.[1]
  return extension === undefined ? undefined : typeOfExtension(extension.toLowerCase())
}

/** The type that the first bytes of base64 data give away. */
function typeOfData(data: string | undefined): string | undefined {
  if (data === undefined) return undefined
  const start = Buffer.from(data.slice(0, 16), 'base64').toString('latin1')
  return signatures.find(([pattern]) => pattern.test(start))?.[1]
}

const signatures: readonly (readonly [RegExp, string])[] = [
  [/^\x89PNG/, 'image/png'],
  [/^\xff\xd8\xff/, 'image/jpeg'],
  [/^GIF8/, 'image/gif'],
  [/^RIFF.{4}WEBP/s, 'image/webp'],
  [/^RIFF.{4}WAVE/s, 'audio/wav'],
  [/^%PDF/, 'application/pdf'],
  [/^ID3/, 'audio/mpeg'],
  [/^OggS/, 'audio/ogg'],
  [/^fLaC/, 'audio/flac'],
  [/^.{4}ftyp/s, 'video/mp4'],
]

function text(part: unknown, name: string): string | undefined {
  if (typeof part !== 'object' || part === null || !Object.hasOwn(part, name)) return undefined
  const value: unknown = Reflect.get(part, name)
  return typeof value === 'string' && value !== '' ? value : undefined
}
