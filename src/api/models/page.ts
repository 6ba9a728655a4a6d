import { RouterError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import type { NamedModel } from './list.ts'

/** The query parameters of a page. */
export type PageQuery = { readonly [name: string]: unknown }

const defaultLimit = 20
const maxLimit = 1_000

/**
 * Chat models in the form of the Messages API, newest first: `{data, has_more, first_id, last_id}`. `limit` is 1 to
 * 1,000 (20 by default); `after_id` and `before_id` name the model where the page begins or ends. Throws RouterError 400.
 */
export function modelPage(models: Iterable<NamedModel>, query: PageQuery): JsonObject {
  const all = [...models].filter(({ entry }) => entry.api === 'chat').sort(newestFirst)
  const limit = limitOf(query.limit)
  const after = positionOf(all, 'after_id', query)
  const before = positionOf(all, 'before_id', query)
  const begin = before === undefined ? (after ?? -1) + 1 : Math.max(0, before - limit, (after ?? -1) + 1)
  const end = Math.min(begin + limit, before ?? all.length)
  const data = all.slice(begin, end).map(({ id, entry }) => pagedModel(id, entry))
  return {
    data,
    has_more: before === undefined ? end < all.length : begin > (after ?? -1) + 1,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  }
}

/** One model in the form of the Messages API. */
export function pagedModel(id: string, { created = 0, description, ...fields }: NamedModel['entry']): JsonObject {
  return {
    id,
    type: 'model',
    display_name: typeof description === 'string' ? description : id,
    created_at: new Date(created * 1_000).toISOString().replace('.000Z', 'Z'),
    max_input_tokens: fields.context_window ?? null,
    max_tokens: fields.max_output_tokens ?? null,
  }
}

function newestFirst(one: NamedModel, other: NamedModel): number {
  return (other.entry.created ?? 0) - (one.entry.created ?? 0) || (one.id < other.id ? -1 : 1)
}

function limitOf(value: unknown): number {
  if (value === undefined) return defaultLimit
  const limit = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : 0
  if (limit >= 1 && limit <= maxLimit) return limit
  throw new RouterError('invalid_request', `'limit' must be a whole number from 1 to ${maxLimit}.`, {
    param: 'limit',
  })
}

function positionOf(models: readonly NamedModel[], name: string, query: PageQuery): number | undefined {
  const id = query[name]
  if (id === undefined) return undefined
  const position = models.findIndex((model) => model.id === id)
  if (position >= 0) return position
  throw new RouterError('invalid_request', `'${name}' must be the id of a listed model.`, { param: name })
}
