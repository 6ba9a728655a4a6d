import { errorBody } from '../../../core/errors.ts'
import { isObject, type Json, type JsonObject } from '../../../core/json.ts'
import type { ModelEntry } from '../../../core/models/model.ts'
import type { OperationRequest } from '../../../core/operation.ts'
import { completionTokens, promptTokens, type Usage } from '../../../core/usage.ts'
import { type ImageSize, imageFormatOf, imageSizeOf } from '../../../media/image-format.ts'
import { onlyNumber, onlyString } from '../../check.ts'
import { type FetchedFiles, type FileData, isAddress } from '../../media-address.ts'
import type { OperationEvents, OperationFacts } from '../../operation-api.ts'
import { tokensOfText, unreadableReply } from '../shared.ts'
import { sidesOf } from './request.ts'

/** The images of a reply. Throws RouterError for one without images. */
export function imagesIn(reply: JsonObject): JsonObject[] {
  const images = itemsOf(reply)
  if (images.length === 0) throw unreadableReply('no images')
  return images
}

/** A reply with its images as the client wants them. Throws RouterError for one without images. */
export function writeImages(reply: JsonObject, facts: OperationFacts): JsonObject {
  const { created, data: _, usage: __, model: ___, ...others } = reply
  return {
    created: typeof created === 'number' ? created : facts.now,
    data: imagesIn(reply).map((image) => imageAs(image, facts.request.fields.response_format)),
    ...others,
    usage: imageUsage(facts.usage, facts.costUsd),
  }
}

/** Tokens of text and of images, both ways. */
function imageUsage(usage: Usage, costUsd: number | undefined): JsonObject {
  const input = promptTokens(usage)
  const output = completionTokens(usage)
  const { input_image: read = 0, output_image: drawn = 0 } = usage
  return {
    input_tokens: input,
    input_tokens_details: { text_tokens: input - read, image_tokens: read },
    output_tokens: output,
    output_tokens_details: { image_tokens: drawn, text_tokens: output - drawn },
    total_tokens: input + output,
    ...(costUsd !== undefined && { cost: costUsd }),
  }
}

/** The events of generations or edits, whose types begin with `name`. */
export function imageEvents(name: 'image_generation' | 'image_edit'): OperationEvents {
  const completed = `${name}.completed`
  return {
    ofWhole: (reply, { fields }) => {
      const { created, data: _, usage: __, model: ___, ...others } = reply
      const images = imagesIn(reply)
      const { size = 'auto', quality = 'auto', background = 'auto', output_format = 'png' } = fields
      const facts = { created_at: created ?? null, size, quality, background, output_format, ...others }
      return images.map((image) => ({ type: completed, ...imageAs(image, 'b64_json'), ...facts }))
    },
    isEnd: ({ type }) => type === completed,
    write: (event, { usage, costUsd, now }) => {
      if (event.type !== completed) return event
      const created_at = event.created_at ?? now ?? Math.floor(Date.now() / 1_000)
      return { ...event, created_at, ...(usage && { usage: imageUsage(usage, costUsd) }) }
    },
    named: true,
    fail: errorBody,
    collect: (known, event) => {
      if (event.type !== completed) return { ...known, begun: true }
      const image = { ...sizeOf(event) }
      const { size = null, quality = null } = event
      return { data: [...itemsOf(known), image], size, quality }
    },
  }
}

/** Size that is assumed where none is known. Pixels. */
const usualPixels = 1024 * 1024
const maxPixels = 1536 * 1024
/** The smallest image that models usually draw. Pixels. */
const minPixels = 512 * 256

/** Maximum number of tokens of an image that is read, or of a preview of one that is drawn. */
const maxReadTokens = 8_192
const maxPreviewTokens = 256
/** Tokens that a model may write besides the image: its reasoning and its text. */
const maxWrittenTokens = 1_024
/** The finest images have a token for this many pixels, and some have more. */
const minPixelsPerToken = 160

/** Returns the maximum that a call can use, regardless of the quality of its images. */
export function maxUsageOfImages(request: OperationRequest, entry: ModelEntry | undefined): Usage {
  const { n, read, pixels } = requestedImages(request, maxPixelsOf(entry))
  const previews = (onlyNumber(request.fields.partial_images) ?? 0) * maxPreviewTokens
  return {
    input: Buffer.byteLength(String(request.fields.prompt)) + 2_048,
    ...(read > 0 && { input_image: read * maxReadTokens, input_images: read }),
    output: n * maxWrittenTokens,
    output_image: n * (Math.ceil(pixels / minPixelsPerToken) + previews),
    images: n,
    megapixels: (n * pixels) / 1e6,
  }
}

/** Counts the units that the router measures itself: images by their size and quality. */
export function countImages(request: OperationRequest, reply?: JsonObject): Usage {
  const { read } = requestedImages(request)
  const counted: Usage = read > 0 ? { input_images: read } : {}
  if (!reply) return counted
  const images = itemsOf(reply)
  const sizes = images.map((image) => sizeOf(image) ?? sidesOf(reply.size) ?? believedSides(request.fields.size))
  const modes = modesOf(request, reply, sizes)
  const known = sizes.filter((size) => size !== undefined)
  const megapixels = known.reduce((sum, { width, height }) => sum + (width * height) / 1e6, 0)
  return {
    ...counted,
    images: images.length,
    ...(images.length > 0 && known.length === images.length && { megapixels }),
    ...(modes.length > 0 && { modes }),
  }
}

/** The tokens, and the megapixels, of a call whose provider counted none. */
export function estimateImages(request: OperationRequest, reply?: JsonObject): Usage {
  const { n, read, pixels, quality } = requestedImages(request)
  const drawn = reply ? itemsOf(reply).length || Number(reply.begun === true) : n
  const perToken = pixelsPerToken[onlyString(reply?.quality) ?? quality] ?? pixelsPerToken.high
  return {
    input: tokensOfText(String(request.fields.prompt)),
    ...(read > 0 && { input_image: read * usualReadTokens }),
    output_image: drawn * Math.ceil(pixels / perToken),
    ...(drawn > 0 && { megapixels: (drawn * pixels) / 1e6 }),
  }
}

const usualReadTokens = 1_024
const pixelsPerToken: { [quality: string]: number } & { high: number } = { low: 3_855, medium: 993, high: 252 }

/** The images of a reply. */
export function itemsOf({ data }: JsonObject): JsonObject[] {
  return Array.isArray(data) ? data.filter(isObject) : []
}

/** Reads the number and quality of the images that a request asks for; `pixels` of each image. */
function requestedImages({ fields }: OperationRequest, otherwise = usualPixels) {
  const { n = 1, images, mask, size, quality = 'high' } = fields
  const sides = believedSides(size)
  return {
    n: Number(n),
    read: (Array.isArray(images) ? images.length : 0) + (mask === undefined ? 0 : 1),
    pixels:
      largest([sides && sides.width * sides.height, pixelsByName(size), pixelsByName(fields.resolution)]) ?? otherwise,
    quality: String(quality),
  }
}

/** Returns the sides of a size; undefined for one that is smaller than what models draw, which may draw their usual one then. */
function believedSides(size: Json | undefined): ImageSize | undefined {
  const sides = sidesOf(size)
  return sides && sides.width * sides.height >= minPixels ? sides : undefined
}

/** Returns the largest of the sizes that a request names: which of them a provider uses is not known. */
function largest(pixels: readonly (number | undefined)[]): number | undefined {
  const known = pixels.filter((one) => one !== undefined)
  return known.length > 0 ? Math.max(...known) : undefined
}

/** The pixels of a size that has a name: `2K` is a square of 2,048. */
function pixelsByName(size: Json | undefined): number | undefined {
  const [, thousands] = /^(0\.5|1|2|4)k$/i.exec(String(size)) ?? []
  return thousands === undefined ? undefined : (Number(thousands) * 1024) ** 2
}

function maxPixelsOf(entry: ModelEntry | undefined): number {
  const sizes = (entry?.sizes ?? []).map((size) => {
    const sides = sidesOf(size)
    return sides ? sides.width * sides.height : (pixelsByName(size) ?? 0)
  })
  return Math.max(...sizes, sizes.some(Boolean) ? 0 : maxPixels)
}

/** Returns the size of an image of a reply: the one that the provider reports, else the one in its header. */
function sizeOf({ width, height, b64_json: data, url }: JsonObject): ImageSize | undefined {
  if (typeof width === 'number' && typeof height === 'number') return { width, height }
  const base64 = onlyString(data) ?? (typeof url === 'string' ? parsedData(url)?.data : undefined)
  return base64 === undefined ? undefined : imageSizeOf(Buffer.from(base64.slice(0, headerLength), 'base64'))
}

/** Length that is searched for the size of a JPEG: cameras write metadata before it. Characters of base64. */
const headerLength = 256 * 1024

/** Returns the modes that a price of images depends on: their size where all have the same, their quality, and whether they are edits. */
function modesOf(
  { operation, fields }: OperationRequest,
  reply: JsonObject,
  sizes: (ImageSize | undefined)[],
): string[] {
  const [first] = sizes
  const isSame = first && sizes.every((size) => size?.width === first.width && size.height === first.height)
  const named = fields.resolution ?? (sidesOf(fields.size) ? undefined : fields.size)
  const quality = onlyString(reply.quality) ?? onlyString(fields.quality)
  return [
    isSame ? `${first.width}x${first.height}` : undefined,
    typeof named === 'string' && named !== 'auto' ? named.toLowerCase() : undefined,
    quality === 'auto' ? undefined : quality,
    operation === 'image_edit' ? 'edit' : undefined,
  ].filter((mode) => mode !== undefined)
}

/** Reads the data in a data URL; undefined for any other text. */
function parsedData(url: string): FileData | undefined {
  const [head, type = ''] = /^data:([^;,]{0,100})(?:;[^;,]{0,100}){0,4};base64,/i.exec(url.slice(0, 1_000)) ?? []
  return head === undefined ? undefined : { data: url.slice(head.length), media_type: type.toLowerCase() }
}

/** The addresses of the images of a reply that must be fetched, because the client wants them as data. */
export function linksIn(images: readonly JsonObject[], format: unknown): string[] {
  if (format !== 'b64_json') return []
  return images.flatMap(({ url, b64_json: data }) => {
    return data === undefined && typeof url === 'string' && isAddress(url) ? [url] : []
  })
}

/** The images of a reply with what was fetched of them. */
export function withFetched(images: readonly JsonObject[], files: FetchedFiles): JsonObject[] {
  return images.map((image) => {
    const file = typeof image.url === 'string' ? files.get(image.url) : undefined
    if (!file) return image
    const { url: _, ...others } = image
    return { ...others, b64_json: file.data }
  })
}

/** An image of a reply as the client wants it: data, an address (a data URL where there is none), or as it came. */
function imageAs(image: JsonObject, format: unknown): JsonObject {
  const { url, b64_json: data, width: _, height: __, media_type: type, ...others } = image
  const held = typeof url === 'string' && url !== '' ? parsedData(url) : undefined
  const base64 = onlyString(data) || held?.data
  if (!base64 && (typeof url !== 'string' || url === '')) throw unreadableReply('an image with neither data nor a URL')
  if (format === 'url') return { ...others, url: url || `data:${typeOf(base64 as string, type)};base64,${base64}` }
  return base64 ? { ...others, b64_json: base64 } : { ...others, url: url as string }
}

function typeOf(base64: string, stated: unknown): string {
  const format = imageFormatOf(Buffer.from(base64.slice(0, 64), 'base64'))
  return format ? `image/${format}` : (onlyString(stated as string) ?? 'image/png')
}
