import { itemIds, responseChanges, type SentResponse } from '../../responses.ts'
import type { Connection } from '../connection.ts'

/** A function that writes a response; one with the same id in the same organization is replaced. */
export function responseWriter(db: Connection): (response: SentResponse) => void {
  const remove = db.prepare(responseChanges.remove)
  const insert = db.prepare(responseChanges.insert)
  const insertItem = db.prepare(responseChanges.insertItem)
  return (response) => {
    const { organization, id, native } = response
    remove.run({ organization, id })
    insert.run({ ...response, native: native ? 1 : 0 })
    for (const item of itemIds(response)) insertItem.run({ organization, item, id })
  }
}
