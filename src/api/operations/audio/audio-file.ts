import { RouterError } from '../../../core/errors.ts'
import type { UploadedFile } from '../../../core/upload.ts'
import { type AudioFormat, audioFormatOf, mediaTypes } from '../../../media/audio-format.ts'

/** The endings of file names that can be transcribed. */
const endings = ['flac', 'mp3', 'mp4', 'mpeg', 'mpga', 'm4a', 'ogg', 'wav', 'webm']

/** The file of a form that is to be transcribed, by its name and its first bytes; the one that is sent has both. Throws RouterError 400. */
export function audioFileOf(files: readonly UploadedFile[], isText: boolean): UploadedFile {
  const file = files.find(({ field }) => field === 'file')
  if (!file) {
    const [other] = files
    const found = isText ? 'it is a text' : other ? `the file of this form is '${other.field.slice(0, 80)}'` : ''
    throw refused(`'file' is missing: it must be a file${found && `, but ${found}`}.`)
  }
  if (file.size === 0) throw refused("'file' is empty: it must be a file with sound.")
  const format = audioFormatOf(file.head)
  const [, ending] = /\.([a-z\d]{1,8})$/i.exec(file.filename) ?? []
  const isNamed = ending === undefined || endings.includes(ending.toLowerCase())
  if (format && isNamed) return named(file, { format, ending })
  const what = isNamed ? 'its first bytes are those of no such file' : `not '.${ending}'`
  throw refused(`'file' must be of one of the formats ${endings.join(', ')}: ${what}.`)
}

/** Providers tell formats by the ending of the name. */
function named(file: UploadedFile, { format, ending }: { format: AudioFormat; ending: string | undefined }) {
  const filename = ending === undefined ? `${file.filename || 'audio'}.${format}` : file.filename
  const mediaType = /^(?:audio|video)\//.test(file.mediaType) ? file.mediaType : mediaTypes[format]
  return { ...file, filename, mediaType }
}

function refused(message: string): RouterError {
  return new RouterError('invalid_request', message, { param: 'file' })
}
