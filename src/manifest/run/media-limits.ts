import type { MediaPart, Part } from '../../core/parts.ts'
import type { Message, NeutralRequest } from '../../core/request.ts'
import { isTextType } from '../../core/text-files.ts'
import { imageSizeOf } from '../../media/image-format.ts'
import type { Limits, MediaLimit } from '../limits.ts'

/** The part of a request beyond a limit: its neutral field, the reason, and whether it is the kind of a file. */
export type Excess = { field: string; reason: string; isKind?: true }

type Kind = 'image' | 'file'

/** Returns the first thing about the images and files of a request that a provider does not take. */
export function mediaExcess({ messages }: NeutralRequest, { images, files, media }: Limits): Excess | undefined {
  if ((!images && !files && !media) || !messages.some(hasMedia)) return undefined
  const all = messages.map(({ parts }) => parts.flatMap(mediaIn))
  const excess = excessOf(all, 'image', images) ?? excessOf(all, 'file', files)
  if (excess || !media) return excess
  let characters = 0
  for (const { data = '' } of all.flat()) characters += data.length
  if (characters <= media.bytes) return undefined
  return {
    field: 'parts.image',
    reason: `takes at most ${inMegabytes(media.bytes)} of files as data, not ${inMegabytes(characters)}`,
  }
}

function hasMedia({ parts }: Message): boolean {
  return parts.some((part) => part.type !== 'text' && mediaIn(part).length > 0)
}

function mediaIn(part: Part): MediaPart[] {
  if (part.type === 'tool_result') return part.parts.flatMap(mediaIn)
  return part.type === 'image' || part.type === 'file' || part.type === 'audio' || part.type === 'video' ? [part] : []
}

function excessOf(all: readonly MediaPart[][], kind: Kind, limit: MediaLimit | undefined): Excess | undefined {
  if (!limit) return undefined
  const field = `parts.${kind}`
  const { count = Infinity, message_count = Infinity } = limit
  const byMessage = all.map((parts) => parts.filter((part) => part.type === kind && !isTextFile(part)))
  const shown = byMessage.flat()
  if (shown.length > count) return { field, reason: `takes at most ${count} ${kind}s, not ${shown.length}` }
  const most = Math.max(0, ...byMessage.map(({ length }) => length))
  if (most > message_count)
    return { field, reason: `takes at most ${message_count} ${kind}s in a message, not ${most}` }
  for (const part of shown) {
    const excess = excessOfPart(part, limit, kind)
    if (excess) return { field, ...excess }
  }
  return undefined
}

/** Checks for a file of text: many providers get it as text. */
function isTextFile({ type, media_type = '' }: MediaPart): boolean {
  return type === 'file' && isTextType(media_type)
}

/** Returns what a provider does not take about one file. Where a link leads is not known. */
function excessOfPart(
  { data, media_type }: MediaPart,
  { bytes = Infinity, types, side, pixels }: MediaLimit,
  kind: Kind,
): Omit<Excess, 'field'> | undefined {
  const type = media_type === undefined ? undefined : typeName(media_type)
  if (types && type !== undefined && !types.some((taken) => typeName(taken) === type))
    return { reason: `takes ${kind}s of the types ${types.join(', ')}, not ${type}`, isKind: true }
  if (data === undefined) return undefined
  const size = bytesOf(data)
  if (size > bytes) return { reason: `takes ${kind}s of at most ${inMegabytes(bytes)}, not ${inMegabytes(size)}` }
  if (side === undefined && pixels === undefined) return undefined
  const { width, height } = sizeOf(data) ?? { width: 0, height: 0 }
  if (Math.max(width, height) > (side ?? Infinity))
    return { reason: `takes images of at most ${side} pixels on a side, not ${width} x ${height}` }
  if (width * height > (pixels ?? Infinity))
    return { reason: `takes images of at most ${pixels} pixels, not ${width} x ${height}` }
  return undefined
}

/** Number of bytes that a base64 text stands for. */
function bytesOf(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0
  return Math.floor((base64.length * 3) / 4) - padding
}

/** Base64 characters within which the header of an image is: it follows what cameras write about themselves. */
const headerLength = 262_144

function sizeOf(data: string) {
  return imageSizeOf(Buffer.from(data.slice(0, headerLength), 'base64'))
}

/** Returns the subtype of a media type, without what different names for it differ in. */
function typeName(type: string): string {
  const subtype = type
    .toLowerCase()
    .replace(/^[^/]*\//, '')
    .replace(/;.*$/, '')
    .trim()
  return subtype === 'jpg' ? 'jpeg' : subtype
}

function inMegabytes(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(2).replace(/\.?0+$/, '')} MB`
}
