import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { SearchPart } from '../../core/parts.ts'
import { defined } from '../check.ts'
import { readForeignSignature, writeForeignSignature } from '../foreign-signature.ts'

/** The prefix of the ids of searches in this API. */
const prefix = 'srvtoolu_'

/**
 * A search that the provider ran, as two blocks: the query and the results. The search's own id and its provider are
 * encoded in the block's id, and the results in the provider's form in the first result that the client sees.
 */
export function searchBlocks({ id, by, query, status, results }: SearchPart): JsonObject[] {
  const found = (Array.isArray(results) ? results : []).flatMap(resultOf)
  const own = defined({ by, id, ...(results !== undefined && found.length === 0 && { body: results }) })
  const called = prefix + (writeForeignSignature(own) ?? 'search')
  const [first, ...others] = found
  const withOriginal = first && {
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
        : withOriginal
          ? [withOriginal, ...others]
          : [],
      caller: { type: 'direct' },
    },
  ]
}

/** The query of a search, the provider's own or one that this router wrote. */
export function readQuery(id: Json | undefined, input: Json | undefined): SearchPart {
  const query = isObject(input) && typeof input.query === 'string' ? input.query : undefined
  return { type: 'search', ...identity(id), ...defined({ query }) }
}

/** The results of a search, in their provider's form when this router wrote them. */
export function readResults(id: Json | undefined, content: Json | undefined): SearchPart {
  const first = Array.isArray(content) ? content[0] : undefined
  const foreign = isObject(first) ? readForeignSignature(first.encrypted_content) : undefined
  const failed = isObject(content)
  const isForeign = isForeignSearch(id)
  const results = foreign?.body ?? (isForeign ? undefined : (content ?? []))
  return { type: 'search', ...identity(id), ...defined({ results }), status: failed ? 'failed' : 'completed' }
}

/** Checks whether this router wrote a search, so that no provider of this format knows it. */
export function isForeignSearch(id: Json | undefined): boolean {
  return typeof id === 'string' && id.startsWith(prefix) && readForeignSignature(id.slice(prefix.length)) !== undefined
}

function identity(id: Json | undefined): Pick<SearchPart, 'id' | 'by' | 'results'> {
  if (typeof id !== 'string') return {}
  const foreign = id.startsWith(prefix) ? readForeignSignature(id.slice(prefix.length)) : undefined
  return foreign ? defined({ id: foreign.id, by: foreign.by, results: foreign.body }) : { id }
}

/** A result of any provider: only the URL is required. */
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
