import type { JsonObject } from '../../../core/json.ts'
import { imageFormatOf } from '../../../media/image-format.ts'
import { onlyString } from '../../check.ts'
import { type FetchedFiles, type FileData, isAddress } from '../../media-address.ts'
import { unreadableReply } from '../shared.ts'

/** What a data URL holds; undefined for any other text. */
export function parsedData(url: string): FileData | undefined {
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
export function imageAs(image: JsonObject, format: unknown): JsonObject {
  const { url, b64_json: data, width: _, height: __, media_type: type, ...others } = image
  const held = typeof url === 'string' && url !== '' ? parsedData(url) : undefined
  const base64 = onlyString(data) || held?.data
  if (!base64 && (typeof url !== 'string' || url === '')) throw unreadableReply('an image without data and address')
  if (format === 'url') return { ...others, url: url || `data:${typeOf(base64 as string, type)};base64,${base64}` }
  return base64 ? { ...others, b64_json: base64 } : { ...others, url: url as string }
}

function typeOf(base64: string, stated: unknown): string {
  const format = imageFormatOf(Buffer.from(base64.slice(0, 64), 'base64'))
  return format ? `image/${format}` : (onlyString(stated as string) ?? 'image/png')
}
