/** The name under which a media type is usually known. */
export function usualType(type: string): string {
  return aliases.get(type) ?? type
}

/** The media type of a file name's extension, in lower case. */
export function typeOfExtension(extension: string): string | undefined {
  return types.get(extension)
}

/** The usual short name of a media type. */
export function format(type: string): string | undefined {
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
