import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { onlyString } from '../check.ts'
import { type FetchedFiles, fileDataUrl, linkOrData } from '../media-address.ts'

/** Files in the words of the described service and of gateways; a file of this API is `{type: file, file: {…}}`. */
const fileTypes: ReadonlySet<Json | undefined> = new Set(['file', 'input_file', 'file_input'])
const linkTypes: ReadonlySet<Json | undefined> = new Set(['image_url', 'video_url', 'document_url'])

/** A content part in this API's own words, with the files that were fetched for it in the place of their addresses. */
export function standardPart(part: JsonObject, files?: FetchedFiles): JsonObject {
  const { type } = part
  if (fileTypes.has(type)) return standardFile(part, files)
  return files && typeof type === 'string' && linkTypes.has(type) ? withFetched(part, type, files) : part
}

function standardFile(part: JsonObject, files: FetchedFiles | undefined): JsonObject {
  const { type, file, filename, file_data, file_url, file_id, ...others } = part
  const given = type === 'file' ? file : { filename, file_data, file_url, file_id }
  if (!isObject(given)) return part
  const { file_url: link, ...members } = given
  const data = onlyString(given.file_data) ?? onlyString(link)
  const whole = data === undefined ? undefined : linkOrData(fileDataUrl(data, onlyString(given.filename)), files)
  if (type === 'file' && whole === given.file_data && link === undefined) return part
  const kept = Object.entries({ ...members, file_data: whole }).filter(
    ([, value]) => value !== undefined && value !== null,
  )
  return { ...others, type: 'file', file: Object.fromEntries(kept) as JsonObject }
}

function withFetched(part: JsonObject, name: string, files: FetchedFiles): JsonObject {
  const link = part[name]
  const url = isObject(link) ? link.url : link
  if (typeof url !== 'string' || !files.has(url)) return part
  const data = linkOrData(url, files)
  return { ...part, [name]: isObject(link) ? { ...link, url: data } : data }
}
