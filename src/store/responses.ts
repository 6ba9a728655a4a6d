import type { CreationLimits } from '../core/creation-limits.ts'
import { isObject } from '../core/json.ts'
import type { Connection } from './sqlite/connection.ts'

/**
 * One response that a conversation can continue from by its id. `input` is the JSON text of the items that were new in this turn,
 * `response` that of the whole response object. `provider` made it; `native` when the provider stores it too, under the
 * same id. Times are Unix milliseconds.
 */
export type StoredResponse = {
  id: string
  organization: string
  createdAt: number
  expiresAt: number
  previous: string | null
  model: string
  provider: string
  native: boolean
  input: string
  response: string
}

/** A response on its way to the database: a long `input` is UTF-8 in shared memory, which no thread on the way copies. */
export type SentResponse = Omit<StoredResponse, 'input'> & { input: string | Uint8Array }

type Row = {
  id: string
  organization: string
  created_at: number
  expires_at: number
  previous: string | null
  model: string
  provider: string
  native: number
  input: string
  response: string
}

/** The stored responses of a database; each belongs to one organization and expires. */
export type Responses = ReturnType<typeof responses>

/** Queries of the stored responses. */
export function responses(db: Connection) {
  const byId = db.prepare<[string, string, number], Row>(
    'SELECT * FROM responses WHERE organization = ? AND id = ? AND expires_at > ?',
  )
  const withoutInput = db.prepare<[string, string, number], Row>(`
    SELECT organization, id, created_at, expires_at, previous, model, provider, native, '' AS input, response
    FROM responses WHERE organization = ? AND id = ? AND expires_at > ?`)
  const byItem = db.prepare<[string, string, number], Row>(`
    SELECT responses.organization, responses.id, created_at, expires_at, previous, model, provider, native,
      '' AS input, responses.response AS response
    FROM response_items AS items
    JOIN responses ON responses.organization = items.organization AND responses.id = items.response
    WHERE items.organization = ? AND items.id = ? AND responses.expires_at > ?`)
  const remove = db.prepare('DELETE FROM responses WHERE organization = ? AND id = ? AND expires_at > ?')
  const purge = db.prepare(`
    DELETE FROM responses WHERE rowid IN (SELECT rowid FROM responses WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`)
  const above = db
    .prepare<[number, number], string>(
      'SELECT organization FROM response_sums WHERE responses > ? OR bytes > ? LIMIT 1',
    )
    .pluck()
  const trim = db.prepare(`
    DELETE FROM responses WHERE rowid IN (SELECT rowid FROM responses WHERE organization = ? ORDER BY created_at LIMIT ?)`)
  const write = responseWriter(db)
  return {
    /** A response of an organization; nothing when it is unknown, deleted, expired, or of another one. */
    find(organization: string, id: string, now = Date.now()): StoredResponse | undefined {
      const row = byId.get(organization, id, now)
      return row && storedResponse(row)
    },
    /** The same without its input, which may be long. */
    findResponse(organization: string, id: string, now = Date.now()): StoredResponse | undefined {
      const row = withoutInput.get(organization, id, now)
      return row && storedResponse(row)
    },
    /** The response of an organization that has an item of this id in its output, without its input. */
    findByItem(organization: string, item: string, now = Date.now()): StoredResponse | undefined {
      const row = byItem.get(organization, item, now)
      return row && storedResponse(row)
    },
    /** Deletes a response. Returns whether it existed. */
    delete: (organization: string, id: string, now = Date.now()): boolean =>
      remove.run(organization, id, now).changes === 1,
    /** Deletes at most `most` that have expired. Returns how many. */
    purge: (most: number, now = Date.now()): number => purge.run(now, most).changes,
    /** Deletes at most `most` of the oldest responses of an organization that stores too many. Returns which one, if any does. */
    trim(limits: Pick<CreationLimits, 'responses' | 'responseBytes'>, most: number): string | undefined {
      const organization = above.get(limits.responses, limits.responseBytes)
      if (organization !== undefined) trim.run(organization, most)
      return organization
    },
    write,
  }
}

/** Length from which texts are shared: shorter ones are copied faster. Characters. */
const longText = 64 * 1024

/** The form of a response for another thread. */
export function sentResponse(response: SentResponse): SentResponse {
  const { input } = response
  return typeof input !== 'string' || input.length < longText ? response : { ...response, input: sharedText(input) }
}

function sharedText(text: string): Uint8Array {
  const bytes = Buffer.from(new SharedArrayBuffer(Buffer.byteLength(text)))
  // ASCII, as most are.
  bytes.write(text, bytes.length === text.length ? 'latin1' : 'utf8')
  return bytes
}

/** A function that writes a response; one with the same id in the same organization is replaced. */
export function responseWriter(db: Connection): (response: SentResponse) => void {
  const insert = db.prepare(`
    INSERT INTO responses
      (organization, id, created_at, expires_at, previous, model, provider, native, input, response)
    VALUES (@organization, @id, @createdAt, @expiresAt, @previous, @model, @provider, @native, CAST(@input AS TEXT), @response)`)
  // Not by a conflict of the insert: that would run no triggers.
  const replace = db.prepare('DELETE FROM responses WHERE organization = ? AND id = ?')
  const insertItem = db.prepare('INSERT OR REPLACE INTO response_items (organization, id, response) VALUES (?, ?, ?)')
  return (response) => {
    replace.run(response.organization, response.id)
    insert.run({ ...response, native: response.native ? 1 : 0 })
    for (const item of itemIds(response.response)) insertItem.run(response.organization, item, response.id)
  }
}

function itemIds(response: string): string[] {
  const { output } = JSON.parse(response)
  if (!Array.isArray(output)) return []
  return output.flatMap((item: unknown) => (isObject(item) && typeof item.id === 'string' ? [item.id] : []))
}

function storedResponse({ created_at: createdAt, expires_at: expiresAt, native, ...row }: Row): StoredResponse {
  return { ...row, createdAt, expiresAt, native: native === 1 }
}
