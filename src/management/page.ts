import type { JsonObject } from '../core/json.ts'
import type { Asked } from './manage.ts'
import { invalid, parametersOf } from './read.ts'

/** What a page of records is read from: those of an organization after an id or name. */
export type PageOf = { organization: string; after?: string; limit: number }

/**
 * A page of records by the query's `limit` (1,000 unless said, and at most) and `cursor`: `{<name>: […]}`, with
 * `next_cursor` when there is more. Throws RouterError 400.
 */
export function pageOf<Item>(
  { organization, query }: Pick<Asked, 'organization' | 'query'>,
  { name, read, isCursor, idOf, entry }: Listing<Item>,
): JsonObject {
  const { limit: wanted, cursor } = parametersOf(query, ['limit', 'cursor'])
  const limit = limitFrom(wanted)
  if (cursor === '') throw invalid("'cursor' is empty; leave it out for the first page.", 'cursor')
  if (cursor !== undefined && !isCursor(cursor, organization)) {
    const message = `'cursor' must be the next_cursor of a page of this list, not '${cursor.slice(0, 60)}'.`
    throw invalid(message, 'cursor')
  }
  // One more than is shown tells whether there is another page.
  const found = read({ organization, limit: limit + 1, ...(cursor !== undefined && { after: cursor }) })
  const shown = found.slice(0, limit)
  const last = shown.at(-1)
  const more = found.length > limit && last !== undefined
  return { [name]: shown.map(entry), ...(more && { next_cursor: idOf(last) }) }
}

/** A kind of records: what the list is called, where its pages come from, and how a record is shown. */
export type Listing<Item> = {
  name: string
  read(page: PageOf): readonly Item[]
  /** Whether a page of this list may have ended there: also true when the record has been deleted since. */
  isCursor(cursor: string, organization: string): boolean
  idOf(item: Item): string
  entry(item: Item): JsonObject
}

/** Whether a text looks like the ids that records are given. */
export function isRecordId(text: string): boolean {
  return /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(text)
}

const mostAtOnce = 1_000

function limitFrom(text: string | undefined): number {
  if (text === undefined) return mostAtOnce
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= mostAtOnce) return limit
  throw invalid(`'limit' must be a whole number from 1 to ${mostAtOnce}, not '${text.slice(0, 40)}'.`, 'limit')
}
