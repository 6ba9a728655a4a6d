/**
 * The media type of a file: by its first bytes, else by its server's content type unless that means "anything", else by
 * the extension of its path; undefined when none of them is known.
 */
export function mediaTypeOf(bytes: Uint8Array, contentType: string | undefined, path: string): string | undefined {
  const signature = signatures.find(({ at = 0, marks }) =>
    marks.some((mark) => asciiAt(bytes, at, mark.length) === mark),
  )
  const bySignature = typeof signature?.type === 'function' ? signature.type(bytes) : signature?.type
  if (bySignature) return bySignature
  const type = contentType?.split(';')[0]?.trim().toLowerCase()
  if (type && /^[\w.+-]+\/[\w.+-]+$/.test(type) && !genericTypes.has(type)) return canonicalTypes.get(type) ?? type
  return typesByExtension.get(/\.(\w+)$/.exec(path)?.[1]?.toLowerCase() ?? '')
}

/** `marks` are bytes as Latin-1: one character per byte. */
type Signature = { at?: number; marks: readonly string[]; type: string | ((bytes: Uint8Array) => string | undefined) }

const signatures: readonly Signature[] = [
  { marks: ['\x89PNG\r\n\x1a\n'], type: 'image/png' },
  { marks: ['\xff\xd8\xff'], type: 'image/jpeg' },
  { marks: ['GIF87a', 'GIF89a'], type: 'image/gif' },
  { at: 8, marks: ['WEBP'], type: 'image/webp' },
  { marks: ['II*\0', 'MM\0*'], type: 'image/tiff' },
  { marks: ['%PDF-'], type: 'application/pdf' },
  { at: 8, marks: ['WAVE'], type: 'audio/wav' },
  { marks: ['ID3', '\xff\xfb', '\xff\xf3', '\xff\xf2'], type: 'audio/mpeg' },
  { marks: ['\xff\xf1', '\xff\xf9'], type: 'audio/aac' },
  { marks: ['fLaC'], type: 'audio/flac' },
  { marks: ['OggS'], type: 'audio/ogg' },
  { marks: ['\x1aE\xdf\xa3'], type: 'video/webm' },
  { at: 4, marks: ['ftyp'], type: (bytes) => brands.get(asciiAt(bytes, 8, 4)) ?? 'video/mp4' },
  // Two letters alone would match too much: the reserved bytes after the length must be zero.
  { marks: ['BM'], type: (bytes) => (asciiAt(bytes, 6, 4) === '\0\0\0\0' ? 'image/bmp' : undefined) },
]

/** Major brands of ISO media files (`ftyp`) that are not video/mp4. */
const brands: ReadonlyMap<string, string> = new Map([
  ['avif', 'image/avif'],
  ['avis', 'image/avif'],
  ['heic', 'image/heic'],
  ['heix', 'image/heic'],
  ['mif1', 'image/heif'],
  ['msf1', 'image/heif'],
  ['M4A ', 'audio/mp4'],
  ['M4B ', 'audio/mp4'],
  ['qt  ', 'video/quicktime'],
])

/** Content types of servers that do not know the type. */
const genericTypes: ReadonlySet<string> = new Set([
  'application/octet-stream',
  'binary/octet-stream',
  'application/binary',
  'application/force-download',
  'application/x-download',
  'application/unknown',
  'application/zip',
])

/** Aliases, and the name that providers know. */
const canonicalTypes: ReadonlyMap<string, string> = new Map([
  ['image/jpg', 'image/jpeg'],
  ['application/x-pdf', 'application/pdf'],
])

/** Types that the first bytes do not identify, or only as an archive. */
const typesByExtension: ReadonlyMap<string, string> = new Map([
  ['txt', 'text/plain'],
  ['md', 'text/markdown'],
  ['csv', 'text/csv'],
  ['html', 'text/html'],
  ['xml', 'text/xml'],
  ['json', 'application/json'],
  ['svg', 'image/svg+xml'],
  ['docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
  ['xlsx', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'],
  ['pptx', 'application/vnd.openxmlformats-officedocument.presentationml.presentation'],
])

function asciiAt(bytes: Uint8Array, at: number, length: number): string {
  return String.fromCharCode(...bytes.subarray(at, at + length))
}
