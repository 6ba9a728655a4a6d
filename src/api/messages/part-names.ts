import { isObject, type JsonObject } from '../../core/json.ts'
import type { FetchedFiles } from '../media-address.ts'

/** A content block with the file that was fetched for it in the place of its address. */
export function inlinedBlock(block: JsonObject, files: FetchedFiles): JsonObject {
  const { source } = block
  if (!isObject(source) || source.type !== 'url' || typeof source.url !== 'string') return block
  const file = files.get(source.url)
  if (!file) return block
  const { media_type, data } = file
  return media_type.startsWith('text/')
    ? {
        ...block,
        source: { type: 'text', media_type: 'text/plain', data: Buffer.from(data, 'base64').toString('utf8') },
      }
    : { ...block, source: { type: 'base64', media_type, data } }
}
