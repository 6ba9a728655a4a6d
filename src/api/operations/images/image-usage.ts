import { isObject, type Json, type JsonObject } from '../../../core/json.ts'
import type { ModelEntry } from '../../../core/models/model.ts'
import type { OperationRequest } from '../../../core/operation.ts'
import type { Usage } from '../../../core/usage.ts'
import { type ImageSize, imageSizeOf } from '../../../media/image-format.ts'
import { onlyNumber, onlyString } from '../../check.ts'
import { tokensOfText } from '../shared.ts'
import { parsedData } from './image-data.ts'
import { sidesOf } from './image-fields.ts'

/** Where no size is known. Pixels. */
const usualPixels = 1024 * 1024
const largestPixels = 1536 * 1024

/** An image that is read, or a preview of one that is drawn, has at most so many tokens. */
const mostReadTokens = 8_192
const mostPreviewTokens = 256
/** Beside the image a model may write: what it thinks, what it says. */
const mostWrittenTokens = 1_024
/** The finest images have a token for this many pixels, and some have more. */
const fewestPixelsPerToken = 160

/** The most that a call can use, whatever the quality of its images. */
export function mostOfImages(request: OperationRequest, entry: ModelEntry | undefined): Usage {
  const { n, read, pixels } = wishOf(request, largestOf(entry))
  const previews = (onlyNumber(request.fields.partial_images) ?? 0) * mostPreviewTokens
  return {
    input: Buffer.byteLength(String(request.fields.prompt)) + 2_048,
    ...(read > 0 && { input_image: read * mostReadTokens, input_images: read }),
    output: n * mostWrittenTokens,
    output_image: n * (Math.ceil(pixels / fewestPixelsPerToken) + previews),
    images: n,
    megapixels: (n * pixels) / 1e6,
  }
}

/** What the router counts itself: images by their size and quality. */
export function countImages(request: OperationRequest, reply?: JsonObject): Usage {
  const { read } = wishOf(request)
  const counted: Usage = read > 0 ? { input_images: read } : {}
  if (!reply) return counted
  const images = itemsOf(reply)
  const sizes = images.map((image) => sizeOf(image) ?? sidesOf(reply.size) ?? sidesOf(request.fields.size))
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
  const { n, read, pixels, quality } = wishOf(request)
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

/** What a request asks for; `pixels` of each image. */
function wishOf({ fields }: OperationRequest, otherwise = usualPixels) {
  const { n = 1, images, mask, size, quality = 'high' } = fields
  const sides = sidesOf(size)
  return {
    n: Number(n),
    read: (Array.isArray(images) ? images.length : 0) + (mask === undefined ? 0 : 1),
    pixels: sides ? sides.width * sides.height : (pixelsByName(size ?? fields.resolution) ?? otherwise),
    quality: String(quality),
  }
}

/** The pixels of a size that has a name: `2K` is a square of 2,048. */
function pixelsByName(size: Json | undefined): number | undefined {
  const [, thousands] = /^(0\.5|1|2|4)k$/i.exec(String(size)) ?? []
  return thousands === undefined ? undefined : (Number(thousands) * 1024) ** 2
}

function largestOf(entry: ModelEntry | undefined): number {
  const sizes = (entry?.sizes ?? []).map((size) => {
    const sides = sidesOf(size)
    return sides ? sides.width * sides.height : (pixelsByName(size) ?? 0)
  })
  return Math.max(...sizes, sizes.some(Boolean) ? 0 : largestPixels)
}

/** The size of an image of a reply: what is said of it, else what its header says. */
export function sizeOf({ width, height, b64_json: data, url }: JsonObject): ImageSize | undefined {
  if (typeof width === 'number' && typeof height === 'number') return { width, height }
  const base64 = onlyString(data) ?? (typeof url === 'string' ? parsedData(url)?.data : undefined)
  return base64 === undefined ? undefined : imageSizeOf(Buffer.from(base64.slice(0, headerLength), 'base64'))
}

/** What cameras write comes before the size in a JPEG. Characters of base64. */
const headerLength = 256 * 1024

/** What names a price of images: their size where all have the same, their quality, and whether they are edits. */
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
