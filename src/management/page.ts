import type { JsonObject } from '../core/json.ts'
import type { PageOf } from '../store/groups.ts'
import type { ManageRequest } from './manage.ts'
import { invalid, parametersOf } from './read.ts'

/**
 * Returns a page of records, by the query's `limit` (1,000 by default and at most) and `cursor`: `{<name>: […]}`, with
 * `next_cursor` when there are more. Throws RouterError 400.
 */
export function pageOf<Item>(
  { organization, query }: Pick<ManageRequest, 'organization' | 'query'>,
  { name, read, isCursor, idOf, entry }: Listing<Item>,
): JsonObject {
  const { limit: requestedLimit, cursor } = parametersOf(query, ['limit', 'cursor'])
  const limit = limitFrom(requestedLimit)
  requireCursor(cursor, (id) => isCursor(id, organization))
  // One more than the page holds shows whether there is another page.
  const found = read({ organization, limit: limit + 1, ...(cursor !== undefined && { after: cursor }) })
  const items = found.slice(0, limit)
  const last = items.at(-1)
  const more = found.length > limit && last !== undefined
  return { [name]: items.map(entry), ...(more && { next_cursor: idOf(last) }) }
}

/** Requires the end of an earlier page, or none. Throws RouterError 400. */
export function requireCursor(cursor: string | undefined, isCursor: (cursor: string) => boolean): void {
  if (cursor === '') throw invalid("'cursor' is empty; leave it out for the first page.", 'cursor')
  if (cursor === undefined || isCursor(cursor)) return
  const message = `'cursor' must be the next_cursor of a page of this list, not '${cursor.slice(0, 60)}'.`
  throw invalid(message, 'cursor')
}

/** A list of records: its name, its query, and the representation of a record. */
export type Listing<Item> = {
  name: string
  read(page: PageOf): readonly Item[]
  /** Checks whether a page may have ended there; stays true when the record has been deleted since. */
  isCursor(cursor: string, organization: string): boolean
  idOf(item: Item): string
  entry(item: Item): JsonObject
}

/** Checks whether a text has the form of a record's id. */
export function isRecordId(text: string): boolean {
  return /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(text)
}

const maxAtOnce = 1_000

/** Returns the number of records of a page: `usual` where the query does not set it. Throws RouterError 400. */
export function limitFrom(text: string | undefined, usual = maxAtOnce): number {
  if (text === undefined) return usual
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= maxAtOnce) return limit
  throw invalid(`'limit' must be a whole number from 1 to ${maxAtOnce}, not '${text.slice(0, 40)}'.`, 'limit')
}
