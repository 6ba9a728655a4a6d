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
 * Returns the media type of a media part, a data URL, a file name or an address. The type that the part states counts unless it is too
 * general; then the extension of its name or address does, then the first bytes of its data.
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

/** The name under which a media type is usually known. */
function usualType(type: string): string {
  return aliases.get(type) ?? type
}

/** The media type of a file name's extension, in lower case. */
function typeOfExtension(extension: string): string | undefined {
  return types.get(extension)
}

/** The usual short name of a media type. */
function format(type: string): string | undefined {
  return formats.get(type)
}

const aliases = new Map([
  ['image/jpg', 'image/jpeg'],
  ['image/x-png', 'image/png'],
  ['audio/mp3', 'audio/mpeg'],
  ['audio/x-mp3', 'audio/mpeg'],
  ['audio/x-mpeg', 'audio/mpeg'],
  ['audio/x-wav', 'audio/wav'],
  ['audio/wave', 'audio/wav'],
  ['audio/x-wave', 'audio/wav'],
  ['audio/vnd.wave', 'audio/wav'],
  ['audio/x-m4a', 'audio/m4a'],
  ['audio/x-aac', 'audio/aac'],
  ['audio/x-flac', 'audio/flac'],
  ['audio/pcm16', 'audio/pcm'],
  ['application/csv', 'text/csv'],
  ['application/x-pdf', 'application/pdf'],
  ['text/x-markdown', 'text/markdown'],
])

const office = 'application/vnd.openxmlformats-officedocument'

/** Media types by short name; where several names mean one type, the first is the usual one. */
const types = new Map([
  ['png', 'image/png'],
  ['jpeg', 'image/jpeg'],
  ['jpg', 'image/jpeg'],
  ['gif', 'image/gif'],
  ['webp', 'image/webp'],
  ['heic', 'image/heic'],
  ['heif', 'image/heif'],
  ['avif', 'image/avif'],
  ['bmp', 'image/bmp'],
  ['tiff', 'image/tiff'],
  ['tif', 'image/tiff'],
  ['svg', 'image/svg+xml'],
  ['pdf', 'application/pdf'],
  ['doc', 'application/msword'],
  ['docx', `${office}.wordprocessingml.document`],
  ['xls', 'application/vnd.ms-excel'],
  ['xlsx', `${office}.spreadsheetml.sheet`],
  ['ppt', 'application/vnd.ms-powerpoint'],
  ['pptx', `${office}.presentationml.presentation`],
  ['txt', 'text/plain'],
  ['md', 'text/markdown'],
  ['csv', 'text/csv'],
  ['html', 'text/html'],
  ['htm', 'text/html'],
  ['json', 'application/json'],
  ['xml', 'application/xml'],
  ['yaml', 'application/yaml'],
  ['yml', 'application/yaml'],
  ['mp4', 'video/mp4'],
  ['mov', 'video/quicktime'],
  ['mkv', 'video/x-matroska'],
  ['webm', 'video/webm'],
  ['flv', 'video/x-flv'],
  ['mpeg', 'video/mpeg'],
  ['mpg', 'video/mpeg'],
  ['wmv', 'video/x-ms-wmv'],
  ['avi', 'video/x-msvideo'],
  ['3gp', 'video/3gpp'],
  ['mp3', 'audio/mpeg'],
  ['wav', 'audio/wav'],
  ['aac', 'audio/aac'],
  ['flac', 'audio/flac'],
  ['ogg', 'audio/ogg'],
  ['opus', 'audio/opus'],
  ['m4a', 'audio/m4a'],
  ['pcm', 'audio/pcm'],
])

/** Short names by media type; some names belong to a type of sound and one of pictures. */
const formats = new Map([
  ...[...types].reverse().map(([name, type]) => [type, name] as const),
  ['audio/mp4', 'mp4'],
  ['audio/webm', 'webm'],
])

/** Returns the ratio (`16:9`) that is nearest to that of a size in pixels (`1024x768`); missing for any other text. */
export function nearestRatio(size?: string, ratios: readonly string[] = []): string | undefined {
  const [, width, height] = /^([1-9]\d*)x([1-9]\d*)$/.exec(size ?? '') ?? []
  if (width === undefined) return undefined
  const wanted = Math.log(Number(width) / Number(height))
  const distance = (ratio: string) => {
    const [across = 1, down = 1] = ratio.split(':').map(Number)
    return Math.abs(Math.log(across / down) - wanted)
  }
  return ratios.toSorted((one, other) => distance(one) - distance(other))[0]
}
