import { RouterError } from '../../core/errors.ts'
import type { MediaPart, Part } from '../../core/parts.ts'
import type { NeutralRequest } from '../../core/request.ts'
import type { HistoryRules } from '../../manifest/run/repair-history.ts'
import { type Fetched, type FetchMedia, type MediaSettings, safeUrl } from './fetcher.ts'

/** Fetches files for calls, within these limits. */
export type MediaServices = { fetchMedia: FetchMedia; settings: Pick<MediaSettings, 'maxFiles' | 'maxTotalBytes'> }

/** The files of one call: each URL is fetched once, however many targets are tried. Throws RouterError 400. */
export type CallMedia = { fetchAll(urls: Iterable<string>): Promise<ReadonlyMap<string, Fetched>>; param: string }

/** Maximum number of files of one call that are fetched at a time. */
const maxConcurrent = 4

/** Opens the files of one call; errors name `param`, the client's field that holds the messages. */
export function openCallMedia(
  { fetchMedia, settings }: MediaServices,
  { param, signal }: { param: string; signal: AbortSignal },
): CallMedia {
  const { maxFiles, maxTotalBytes } = settings
  const refuse = (message: string) => new RouterError('invalid_request', message, { param })
  let fetched: Map<string, Fetched> | undefined
  let bytes = 0
  const spend = (more: number) => {
    bytes += more
    if (bytes <= maxTotalBytes) return
    throw refuse(
      `The files of this request are larger than ${maxTotalBytes} bytes, the media.max_total_bytes of this router.`,
    )
  }
  const fetchAll = async (urls: Iterable<string>) => {
    fetched ??= new Map()
    const known = fetched
    const missing = [...new Set(urls)].filter((url) => !known.has(url))
    if (known.size + missing.length > maxFiles) {
      throw refuse(`This request has more than ${maxFiles} URLs of files to fetch, the media.max_files of this router.`)
    }
    const others = new AbortController()
    const either = AbortSignal.any([signal, others.signal])
    const queue = missing.values()
    const work = async () => {
      for (const url of queue) known.set(url, await fetchMedia(url, either, spend))
    }
    try {
      await Promise.all(Array.from({ length: Math.min(maxConcurrent, missing.length) }, work))
    } catch (thrown) {
      others.abort(thrown)
      throw thrown instanceof RouterError && thrown.code === 'invalid_request' ? refuse(thrown.message) : thrown
    }
    return known
  }
  return { fetchAll, param }
}

/** Returns the request with the media that the rule selects as data instead of URLs. The client's own object is never changed. */
export async function inlineMedia(
  request: NeutralRequest,
  rule: HistoryRules['inline_media'],
  media: CallMedia,
  takes?: Takes,
): Promise<NeutralRequest> {
  const files = await fetchMedia(request, rule, media, takes)
  if (!files) return request
  const inlined = (part: Part): Part => {
    if (part.type === 'tool_result') return { ...part, parts: part.parts.map(inlined) }
    const file = isMedia(part) && part.url !== undefined ? files.get(part.url) : undefined
    if (!file) return part
    const { url: _url, ...rest } = part as MediaPart
    return { ...rest, ...file }
  }
  const messages = request.messages.map((message) => ({ ...message, parts: message.parts.map(inlined) }))
  return { ...request, messages, ...(request.system && { system: request.system.map(inlined) }) }
}

/**
 * Returns the files by URL that the rule selects, in instructions, messages and tool results; undefined when there are none. Throws
 * RouterError 400 when a file cannot be fetched, or is not of its kind.
 */
export async function fetchMedia(
  request: NeutralRequest,
  rule: HistoryRules['inline_media'],
  media: CallMedia,
  takes: Takes = () => true,
): Promise<ReadonlyMap<string, InlineFile> | undefined> {
  if (!rule) return undefined
  const parts = [...(request.system ?? []), ...request.messages.flatMap((message) => message.parts)]
  const isSelected = selectedBy(rule)
  const selected = selectedIn(parts, (part) => isSelected(part) && takes(part.type))
  if (selected.length === 0) return undefined
  const found = await media.fetchAll(selected.map(({ url }) => url))
  return new Map(
    selected.map((part) => [part.url, fileFor(part, part.url, found.get(part.url) as Fetched, media.param)]),
  )
}

/** Check of whether a provider takes media of a type at all: others need not be fetched. */
type Takes = (type: MediaPart['type']) => boolean

type InlineFile = Required<Pick<MediaPart, 'data' | 'media_type'>>
type Linked = MediaPart & { url: string }

type Selects = (part: MediaPart) => boolean

function selectedBy(rule: NonNullable<HistoryRules['inline_media']>): Selects {
  const { kinds, except } = typeof rule === 'boolean' ? {} : rule
  return ({ type, url }) => url !== undefined && (!kinds || kinds.includes(type)) && !except?.test(url)
}

function selectedIn(parts: readonly Part[], isSelected: Selects): Linked[] {
  return parts.flatMap((part) => {
    if (part.type === 'tool_result') return selectedIn(part.parts, isSelected)
    return isMedia(part) && part.url !== undefined && isSelected(part) ? [part as Linked] : []
  })
}

function isMedia(part: Part): part is MediaPart {
  return kindNames[part.type as MediaPart['type']] !== undefined
}

const kindNames = {
  image: 'an image',
  audio: 'audio',
  video: 'a video',
  file: 'a file',
} as const satisfies { [kind in MediaPart['type']]: string }

/** Returns the file for a part. A "not found" or login page with status 200 must not pass for a picture. */
function fileFor(
  { type, media_type }: MediaPart,
  url: string,
  { data, media_type: found }: Fetched,
  param: string,
): InlineFile {
  const mediaType = found === 'application/octet-stream' ? (media_type ?? found) : found
  const isText =
    mediaType.startsWith('text/') || /[/+](?:json|xml|javascript)$/.test(mediaType.replace('svg+xml', 'svg'))
  if (type === 'file' || !(isText || mediaType === 'application/octet-stream')) return { data, media_type: mediaType }
  const message = `The file at ${safeUrl(url)} is ${mediaType}, not ${kindNames[type]}.`
  throw new RouterError('invalid_request', message, { param })
}
