import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { SearchPart } from '../../core/parts.ts'
import { defined } from '../check.ts'
import { readForeignSignature, writeForeignSignature } from '../foreign-signature.ts'

/** Before a sealed id in the ids of searches. */
const prefix = 'srvtoolu_'

/**
 * A search that the provider ran: the asking and the results. Its own id and whose it is travel in the id; results in
 * the maker's form travel sealed in the first of those that the client sees.
 */
export function searchBlocks({ id, by, query, status, results }: SearchPart): JsonObject[] {
  const found = (Array.isArray(results) ? results : []).flatMap(resultOf)
  const own = defined({ by, id, ...(results !== undefined && found.length === 0 && { body: results }) })
  const called = prefix + (writeForeignSignature(own) ?? 'search')
  const [first, ...others] = found
  const sealed = first && {
    ...first,
    encrypted_content: writeForeignSignature({ ...defined({ by }), body: results ?? null }) ?? '',
  }
  const failed = status === 'failed' && found.length === 0
  const input: JsonObject = query === undefined ? {} : { query }
  return [
    { type: 'server_tool_use', id: called, name: 'web_search', input, caller: { type: 'direct' } },
    {
      type: 'web_search_tool_result',
      tool_use_id: called,
      content: failed
        ? { type: 'web_search_tool_result_error', error_code: 'unavailable' }
        : sealed
          ? [sealed, ...others]
          : [],
      caller: { type: 'direct' },
    },
  ]
}

/** The asking of a search, as it came or as this router wrote it. */
export function readAsking(id: Json | undefined, input: Json | undefined): SearchPart {
  const query = isObject(input) && typeof input.query === 'string' ? input.query : undefined
  return { type: 'search', ...identity(id), ...defined({ query }) }
}

/** The results of a search, in the form of their maker when this router wrote them. */
export function readResults(id: Json | undefined, content: Json | undefined): SearchPart {
  const first = Array.isArray(content) ? content[0] : undefined
  const seal = isObject(first) ? readForeignSignature(first.encrypted_content) : undefined
  const failed = isObject(content)
  const ofOthers = isForeignSearch(id)
  const results = seal?.body ?? (ofOthers ? undefined : (content ?? []))
  return { type: 'search', ...identity(id), ...defined({ results }), status: failed ? 'failed' : 'completed' }
}

/** Whether a search was written by this router for a client, so that no provider of this format knows it. */
export function isForeignSearch(id: Json | undefined): boolean {
  return typeof id === 'string' && id.startsWith(prefix) && readForeignSignature(id.slice(prefix.length)) !== undefined
}

function identity(id: Json | undefined): Pick<SearchPart, 'id' | 'by' | 'results'> {
  if (typeof id !== 'string') return {}
  const seal = id.startsWith(prefix) ? readForeignSignature(id.slice(prefix.length)) : undefined
  return seal ? defined({ id: seal.id, by: seal.by, results: seal.body }) : { id }
}

/** Whatever a maker calls the parts of a result, it has an address. */
function resultOf(result: Json): JsonObject[] {
  if (!isObject(result)) return []
  const { url, title, page_age } = result
  if (typeof url !== 'string' || url === '') return []
  return [
    {
      type: 'web_search_result',
      url,
      title: typeof title === 'string' ? title : url,
      encrypted_content: '',
      page_age: typeof page_age === 'string' ? page_age : null,
    },
  ]
}
