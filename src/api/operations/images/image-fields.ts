import { RouterError } from '../../../core/errors.ts'
import type { JsonObject } from '../../../core/json.ts'
import type { ModelEntry } from '../../../core/models/model.ts'
import type { OperationRequest } from '../../../core/operation.ts'
import { type Check, fieldsOf, filledText, flag, integer, oneOf, refuse, required } from '../../check.ts'

/** The longest text that describes a picture, in characters. */
const longestPrompt = 32_000

const prompt: Check<string> = (value, path) => {
  const text = filledText(value, path)
  if (text.length <= longestPrompt) return text
  const message = `'${path}' has ${text.length} characters: it must have at most ${longestPrompt}.`
  throw new RouterError('invalid_request', message, { param: path })
}

/** Pixels, or how large by name: `2K`. */
const size: Check<string> = (value, path) => {
  const isSize = typeof value === 'string' && (value === 'auto' || sidesOf(value) || /^(?:0\.5|1|2|4)k$/i.test(value))
  return isSize ? value : refuse(path, `'auto', pixels such as '1024x1024', or '1K', '2K', '4K'`, value)
}

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

/** Those that are whole numbers: forms have them as text. */
export const imageNumbers = ['n', 'output_compression', 'partial_images', 'seed'] as const

/** The fields that generations and edits have in common, each checked. Throws RouterError 400. */
export function readImageFields(body: JsonObject): { fields: JsonObject; stream: boolean } {
  const text = required(body.prompt, 'prompt', 'a text that describes the picture', prompt)
  const { stream, ...fields } = fieldsOf<JsonObject>(body, optionalFields)
  return { fields: { prompt: text, ...fields, ...(stream === true && { stream }) }, stream: stream === true }
}

/** The sides of a size in pixels; undefined where it is none. */
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
