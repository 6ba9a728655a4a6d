import type { JsonObject } from '../../core/json.ts'
import { onlyString } from '../check.ts'
import { type FetchedFiles, fileDataUrl, isAddress, linkOrData } from '../media-address.ts'

/** A content part as its provider reads it: addresses under their own name, and fetched files in the place of theirs. */
export function standardPart(part: JsonObject, files?: FetchedFiles): JsonObject {
  if (part.type === 'input_file') return standardFile(part, files)
  if (part.type !== 'input_image' || typeof part.image_url !== 'string' || !files?.has(part.image_url)) return part
  return { ...part, image_url: linkOrData(part.image_url, files) }
}

/** A link excludes a name; data need one. */
function standardFile(part: JsonObject, files: FetchedFiles | undefined): JsonObject {
  const { file_data, file_url, filename, ...others } = part
  const given = onlyString(file_data) ?? onlyString(file_url)
  if (given === undefined) return part
  const whole = fileDataUrl(linkOrData(given, files), onlyString(filename))
  if (isAddress(whole)) return whole === file_url ? part : { ...others, file_url: whole }
  return whole === file_data ? part : { ...others, filename: filename ?? nameOf(given), file_data: whole }
}

/** The last step of an address, as a file's name. */
function nameOf(given: string): string {
  return (isAddress(given) && /([^/?#]+)\/?(?:[?#].*)?$/.exec(given)?.[1]) || 'document.pdf'
}
