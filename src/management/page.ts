import type { JsonObject } from '../core/json.ts'
import type { JsonAnswer } from '../http/types.ts'
import { yieldBetween } from '../runtime/event-loop.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import type { PageOf } from '../store/groups.ts'
import type { ManageRequest } from './manage.ts'
import { invalid, parametersOf } from './read.ts'

/**
 * Returns a page of records, by the query's `limit` (1,000 by default and at most) and `cursor`: `{<name>: […]}`, with
 * `next_cursor` when there are more. A page of large records ends early. Throws RouterError 400.
 */
export async function pageOf<Item>(
  { organization, query }: Pick<ManageRequest, 'organization' | 'query'>,
  { name, read, isCursor, idOf, entry }: Listing<Item>,
): Promise<JsonAnswer> {
  const { limit: requestedLimit, cursor } = parametersOf(query, ['limit', 'cursor'])
  const limit = limitFrom(requestedLimit)
  await requireCursor(cursor, (id) => isCursor(id, organization))
  const yieldToOthers = yieldBetween()
  const texts: string[] = []
  let length = 0
  let after = cursor
  for (let more = true; more; ) {
    await yieldToOthers()
    const count = Math.min(limit - texts.length, itemsAtOnce)
    // One more than is wanted shows whether there are others.
    const found = await read({ organization, limit: count + 1, ...(after !== undefined && { after }) })
    for (const item of found.slice(0, count)) {
      const text = JSON.stringify(await entry(item))
      texts.push(text)
      length += text.length
      after = idOf(item)
    }
    more = found.length > count
    if (more && (texts.length === limit || length > maxLength)) {
      return { text: `{"${name}":[${texts.join(',')}],"next_cursor":${JSON.stringify(after)}}` }
    }
  }
  return { text: `{"${name}":[${texts.join(',')}]}` }
}

/** Number of records that are read at once: one may have a hundred kilobytes. */
const itemsAtOnce = 5
/** Length after which a page ends. Characters. */
const maxLength = 4_000_000

/** Requires the end of an earlier page, or none. Rejects with RouterError 400. */
export async function requireCursor(
  cursor: string | undefined,
  isCursor: (cursor: string) => MaybePromise<boolean>,
): Promise<void> {
  if (cursor === '') throw invalid("'cursor' is empty; leave it out for the first page.", 'cursor')
  if (cursor === undefined || (await isCursor(cursor))) return
  const message = `'cursor' must be the next_cursor of a page of this list, not '${cursor.slice(0, 60)}'.`
  throw invalid(message, 'cursor')
}

/** A list of records: its name, its query, and the representation of a record. */
export type Listing<Item> = {
  name: string
  read(page: PageOf): Promise<readonly Item[]>
  /** Checks whether a page may have ended there; stays true when the record has been deleted since. */
  isCursor(cursor: string, organization: string): MaybePromise<boolean>
  idOf(item: Item): string
  entry(item: Item): MaybePromise<JsonObject>
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
