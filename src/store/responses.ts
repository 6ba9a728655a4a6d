import type { CreationLimits } from '../core/creation-limits.ts'
import { isObject } from '../core/json.ts'
import type { Database, Parameters } from './database.ts'

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
  created_at: bigint
  expires_at: bigint
  previous: string | null
  model: string
  provider: string
  native: bigint
  input: string
  response: string
}

/** The stored responses of a database; each belongs to one organization and expires. */
export type Responses = ReturnType<typeof responses>

const facts = 'responses.organization, responses.id, created_at, expires_at, previous, model, provider, native'
const isValid = 'responses.organization = @organization AND responses.id = @id AND expires_at > @now'

const byItem = `
  SELECT ${facts}, '' AS input, responses.response FROM response_items AS items
  JOIN responses ON responses.organization = items.organization AND responses.id = items.response
  WHERE items.organization = @organization AND items.id = @item AND responses.expires_at > @now`

const purge = `
  DELETE FROM responses WHERE (organization, id) IN
    (SELECT organization, id FROM responses WHERE expires_at <= @now ORDER BY expires_at LIMIT @most)`

const trim = `
  DELETE FROM responses WHERE (organization, id) IN
    (SELECT organization, id FROM responses WHERE organization = @organization ORDER BY created_at LIMIT @most)`

/** An organization that stores too many. */
const above = {
  sqlite: 'SELECT organization FROM response_sums WHERE responses > @responses OR bytes > @bytes LIMIT 1',
  postgres: `
    SELECT organization FROM responses GROUP BY organization
    HAVING count(*) > @responses OR sum(octet_length(input) + octet_length(response)) > @bytes LIMIT 1`,
}

/** Queries of the stored responses. */
export function responses(db: Database) {
  const find = async (sql: string, parameters: Parameters): Promise<StoredResponse | undefined> => {
    const row = await db.get<Row>(sql, parameters)
    return row && storedResponse(row)
  }
  return {
    /** A response of an organization; nothing when it is unknown, deleted, expired, or of another one. */
    find: (organization: string, id: string, now = Date.now()): Promise<StoredResponse | undefined> =>
      find(`SELECT ${facts}, input, response FROM responses WHERE ${isValid}`, { organization, id, now }),
    /** The same without its input, which may be long. */
    findResponse: (organization: string, id: string, now = Date.now()): Promise<StoredResponse | undefined> =>
      find(`SELECT ${facts}, '' AS input, response FROM responses WHERE ${isValid}`, { organization, id, now }),
    /** The response of an organization that has an item of this id in its output, without its input. */
    findByItem: (organization: string, item: string, now = Date.now()): Promise<StoredResponse | undefined> =>
      find(byItem, { organization, item, now }),
    /** Deletes a response. Returns whether it existed. */
    delete: async (organization: string, id: string, now = Date.now()): Promise<boolean> =>
      (await db.run(`DELETE FROM responses WHERE ${isValid}`, { organization, id, now })) === 1,
    /** Deletes at most `most` that have expired. Returns how many. */
    purge: (most: number, now = Date.now()): Promise<number> => db.run(purge, { now, most }),
    /** Deletes at most `most` of the oldest responses of an organization that stores too many. Returns which one, if any does. */
    async trim(limits: Pick<CreationLimits, 'responses' | 'responseBytes'>, most: number): Promise<string | undefined> {
      const values = { responses: limits.responses, bytes: limits.responseBytes }
      const { organization } = (await db.get<{ organization: string }>(above[db.dialect], values)) ?? {}
      if (organization !== undefined) await db.run(trim, { organization, most })
      return organization
    },
    /** Writes a response; one with the same id in the same organization is replaced. */
    write: (response: SentResponse): Promise<void> =>
      db.transaction(async (tx) => {
        const { organization, id, input, native } = response
        const text = typeof input === 'string' ? input : Buffer.from(input).toString()
        await tx.run(responseChanges.remove, { organization, id })
        await tx.run(responseChanges.insert, { ...response, input: text, native: native ? 1 : 0 })
        for (const item of itemIds(response)) await tx.run(responseChanges.insertItem, { organization, item, id })
      }),
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

/** The statements that write a response in the place of one with the same id in the same organization, in their order. */
export const responseChanges = {
  // Not by a conflict of the insert: that would run no triggers.
  remove: 'DELETE FROM responses WHERE organization = @organization AND id = @id',
  insert: `
    INSERT INTO responses
      (organization, id, created_at, expires_at, previous, model, provider, native, input, response)
    VALUES (@organization, @id, @createdAt, @expiresAt, @previous, @model, @provider, @native, CAST(@input AS TEXT), @response)`,
  /** Insertion of one item. */
  insertItem: `
    INSERT INTO response_items (organization, id, response) VALUES (@organization, @item, @id)
    ON CONFLICT (organization, id) DO UPDATE SET response = excluded.response`,
}

/** Returns the ids of the items in the output of a response. */
export function itemIds({ response }: Pick<StoredResponse, 'response'>): string[] {
  const { output } = JSON.parse(response)
  if (!Array.isArray(output)) return []
  return output.flatMap((item: unknown) => (isObject(item) && typeof item.id === 'string' ? [item.id] : []))
}

function storedResponse({ created_at: createdAt, expires_at: expiresAt, native, ...row }: Row): StoredResponse {
  return { ...row, createdAt: Number(createdAt), expiresAt: Number(expiresAt), native: native === 1n }
}
