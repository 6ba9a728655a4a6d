import { RouterError } from '../../../core/errors.ts'
import { isObject, type Json, type JsonObject } from '../../../core/json.ts'
import type { ModelEntry } from '../../../core/models/model.ts'
import type { OperationRequest, UploadedFile } from '../../../core/operation.ts'
import { imageFormatOf } from '../../../media/image-format.ts'
import { type Check, fieldsOf, filledText, flag, integer, oneOf, refuse, required } from '../../check.ts'
import { dataOf, isAddress } from '../../media-address.ts'
import { fileField } from '../form-fields.ts'

/** Maximum length of a text that describes an image. Characters. */
const maxPromptLength = 32_000

const prompt: Check<string> = (value, path) => {
  const text = filledText(value, path)
  if (text.length <= maxPromptLength) return text
  const message = `'${path}' has ${text.length} characters: it must have at most ${maxPromptLength}.`
  throw new RouterError('invalid_request', message, { param: path })
}

/** Pixels, or how large by name: `2K`. */
const size: Check<string> = (value, path) => {
  const sides = sidesOf(value)
  if (sides && Math.min(sides.width, sides.height) < minSide) {
    return refuse(path, `at least ${minSide} pixels wide and high: no model draws a smaller image`, value)
  }
  const isSize = typeof value === 'string' && (value === 'auto' || sides || /^(?:0\.5|1|2|4)k$/i.test(value))
  return isSize ? value : refuse(path, `'auto', pixels such as '1024x1024', or '1K', '2K', '4K'`, value)
}

/** The shorter side of the smallest images that models draw. Pixels. */
const minSide = 64

const ratio: Check<string> = (value, path) => {
  const isRatio = typeof value === 'string' && /^(?:auto|[1-9]\d{0,2}(?:\.\d+)?:[1-9]\d{0,2}(?:\.\d+)?)$/.test(value)
  return isRatio ? value : refuse(path, `'auto' or a ratio such as '16:9'`, value)
}

const optionalFields = [
  ['n', integer(1, 10)],
  ['size', size],
  ['quality', oneOf(['auto', 'low', 'medium', 'high', 'standard', 'hd', 'premium'])],
  ['style', oneOf(['vivid', 'natural'])],
  ['background', oneOf(['transparent', 'opaque', 'auto'])],
  ['moderation', oneOf(['low', 'auto'])],
  ['output_format', oneOf(['png', 'jpeg', 'webp'])],
  ['output_compression', integer(0, 100)],
  ['partial_images', integer(0, 3)],
  ['response_format', oneOf(['url', 'b64_json'])],
  ['stream', flag],
  ['seed', integer(0, 2 ** 32 - 1)],
  ['aspect_ratio', ratio],
  ['resolution', oneOf(['0.5k', '1k', '2k', '4k'])],
] as const

/** The names of the fields that generations and edits have in common. */
export const imageFieldNames: readonly string[] = ['prompt', ...optionalFields.map(([name]) => name)]

/** Fields that are whole numbers: forms have them as text. */
export const imageNumbers = ['n', 'output_compression', 'partial_images', 'seed'] as const

/** The fields that generations and edits have in common, each checked. Throws RouterError 400. */
export function readImageFields(body: JsonObject): { fields: JsonObject; stream: boolean } {
  const text = required(body.prompt, 'prompt', 'a text that describes the image', prompt)
  const { stream, ...fields } = fieldsOf<JsonObject>(body, optionalFields)
  return { fields: { prompt: text, ...fields, ...(stream === true && { stream }) }, stream: stream === true }
}

/** Parses a size into its sides in pixels; undefined for any other text. */
export function sidesOf(size: unknown): { width: number; height: number } | undefined {
  const [, width, height] = (typeof size === 'string' && /^([1-9]\d{1,4})x([1-9]\d{1,4})$/.exec(size)) || []
  return width === undefined ? undefined : { width: Number(width), height: Number(height) }
}

/** Throws RouterError 400 for a size or a quality that a model does not have, as far as the catalog knows. */
export function checkImageModel({ fields }: OperationRequest, { sizes = [], qualities = [] }: ModelEntry): void {
  refuseOther('quality', fields.quality, qualities)
  // Models whose sizes have other names get pixels as the nearest of these.
  const isConverted = sidesOf(fields.size) !== undefined && !sizes.some(sidesOf)
  if (!isConverted) refuseOther('size', fields.size, sizes)
}

function refuseOther(param: string, value: unknown, known: readonly string[]): void {
  if (typeof value !== 'string' || value === 'auto' || known.length === 0) return
  if (known.some((one) => one.toLowerCase() === value.toLowerCase())) return
  const message = `'${param}' of this model must be ${[...known].join(', ')}, not '${value}'.`
  throw new RouterError('invalid_request', message, { param })
}

/** Maximum size of one image, the same as OpenAI's. Bytes. */
export const maxImageBytes = 50 * 1024 * 1024
/** Maximum number of images in one edit, besides its mask. */
export const maxImages = 16

/**
 * The images of an edit, as its fields have them: each a file `{"$file": …}`, `{"image_url": <address>}` or `{"file_id": …}`; and the
 * files that they refer to.
 */
export type ImageInputs = { fields: { images: JsonObject[]; mask?: JsonObject }; files: UploadedFile[] }

/** Reads the images of a JSON body: `images` or `image`, and `mask`. Throws RouterError 400, 413. */
export function inputsOfJson({ images, image, mask }: JsonObject): ImageInputs {
  const files: UploadedFile[] = []
  const name = images === undefined || images === null ? 'image' : 'images'
  const given = images ?? image
  if (given === undefined || given === null) throw missing('images')
  const isList = Array.isArray(given)
  const read = (value: Json, path: string) => readInput(value, { path, files })
  const list = (isList ? given : [given]).map((value, index) => read(value, isList ? `${name}[${index}]` : name))
  checkCount(list, name)
  const covered = mask === undefined || mask === null ? undefined : read(mask, 'mask')
  return { fields: { images: list, ...(covered && { mask: covered }) }, files }
}

/** Reads the images of a form: files of the name `image` or `image[]`, and `mask`. Throws RouterError 400. */
export function inputsOfForm(uploaded: readonly UploadedFile[], texts: JsonObject): ImageInputs {
  for (const name of ['image', 'images', 'mask']) {
    if (texts[name] !== undefined) throw refused(name, `'${name}' must be a file in a form, not text.`)
  }
  const other = uploaded.find(({ field }) => !/^(?:images?(?:\[\d*\])?|mask)$/.test(field))
  if (other) {
    const name = other.field.slice(0, 80)
    throw refused(name, `'${name}' must not be a file: the files of an edit are 'image' and 'mask'.`)
  }
  const files: UploadedFile[] = []
  const images = uploaded.filter(({ field }) => field !== 'mask')
  if (images.length === 0) throw missing('image')
  const list = images.map((file, index) => takeFile(file, images.length > 1 ? `image[${index}]` : 'image', files))
  checkCount(list, 'image')
  const [mask, another] = uploaded.filter(({ field }) => field === 'mask')
  if (another) throw refused('mask', "'mask' is given several times: send it once.")
  return { fields: { images: list, ...(mask && { mask: takeFile(mask, 'mask', files) }) }, files }
}

/** Returns an image in base64 as a file. Throws RouterError 400 for one that is not an image, 413 for one that is too large. */
export function fileOfData(data: string, path: string): UploadedFile {
  const bytes = Buffer.from(data, 'base64')
  return checkedFile(
    {
      field: 'image',
      filename: '',
      mediaType: '',
      size: bytes.length,
      head: bytes.subarray(0, 4_096),
      async *read() {
        yield bytes
      },
    },
    path,
  )
}

function readInput(value: Json, { path, files }: { path: string; files: UploadedFile[] }): JsonObject {
  if (isObject(value) && typeof value.file_id === 'string' && value.file_id !== '') return { file_id: value.file_id }
  const { at, address } = addressOf(value, path)
  if (address.slice(0, 5).toLowerCase() === 'data:')
    return takeFile(fileOfData(dataOf(address, at).data, at), at, files)
  if (/^https?:/i.test(address) && isAddress(address)) return { image_url: address }
  return refuse(at, 'a data URL such as data:image/png;base64,… or an http(s) URL', address)
}

/** A text, or an object that has it: `{image_url}`, `{image_url: {url}}`, `{url}`. */
function addressOf(value: Json, path: string): { at: string; address: string } {
  if (typeof value === 'string') return { at: path, address: value }
  if (!isObject(value)) return refuse(path, 'a URL, or an object with `image_url` or `file_id`', value)
  const { image_url: link, url } = value
  if (isObject(link)) return { at: `${path}.image_url`, address: textOf(link.url, `${path}.image_url.url`) }
  const name = link === undefined && url !== undefined ? 'url' : 'image_url'
  return { at: `${path}.${name}`, address: textOf(link ?? url, `${path}.${name}`) }
}

function textOf(value: Json | undefined, path: string): string {
  return typeof value === 'string' ? value : refuse(path, 'a URL', value)
}

function takeFile(file: UploadedFile, path: string, files: UploadedFile[]): JsonObject {
  files.push(checkedFile(file, path))
  return fileField(files.at(-1) as UploadedFile, files.length - 1)
}

/** Returns a file with the type of its first bytes, and a matching name. */
function checkedFile(file: UploadedFile, path: string): UploadedFile {
  if (file.size > maxImageBytes) {
    throw new RouterError('too_large', `'${path}' is larger than ${maxImageBytes} bytes.`, { param: path })
  }
  const format = imageFormatOf(file.head)
  if (!format) {
    throw refused(path, `'${path}' must be a PNG, JPEG or WebP image: its first bytes match none of them.`)
  }
  const filename = file.filename || `${file.field === 'mask' ? 'mask' : 'image'}.${format}`
  return { ...file, filename, mediaType: `image/${format}` }
}

function checkCount(images: readonly JsonObject[], path: string): void {
  if (images.length > 0 && images.length <= maxImages) return
  throw refused(path, `'${path}' must have from 1 to ${maxImages} images, not ${images.length}.`)
}

function missing(path: string): RouterError {
  return refused(path, `'${path}' is missing: an edit needs from 1 to ${maxImages} images.`)
}

function refused(param: string, message: string): RouterError {
  return new RouterError('invalid_request', message, { param })
}
