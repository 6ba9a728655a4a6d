import { randomUUIDv7 } from 'node:crypto'
import type { JsonObject } from '../core/json.ts'
import type { Database } from './database.ts'
import { storedJson } from './store-error.ts'

/**
 * A change and who made it. `actor` is the id of a key, or `cli`; `action` is `<what>.<verb>`, as `apikey.create`; `subject`
 * is the id of what was changed. `before` and `after` never hold a secret; null where there was or is nothing.
 */
export type AuditEntry = {
  id: string
  /** Unix milliseconds. */
  at: number
  organization: string
  actor: string
  action: string
  subject: string
  before: JsonObject | null
  after: JsonObject | null
}

/** The fields of a new entry; `before` and `after` are null unless given. */
export type NewAuditEntry = Pick<AuditEntry, 'organization' | 'actor' | 'action' | 'subject'> &
  Partial<Pick<AuditEntry, 'before' | 'after'>>

type Row = Omit<AuditEntry, 'at' | 'before' | 'after'> & { at: bigint; before: string | null; after: string | null }

/** A store whose changes can be recorded. */
type AuditedStore<Tx> = { atomically<Result>(change: (tx: Tx) => Promise<Result>): Promise<Result> }

/**
 * Makes a change and appends its audit entry in the same transaction. `actor` is the id of a key, or `cli`; the change
 * returns its result and the rest of the entry.
 */
export function audited<Result, Tx extends { audit: Pick<AuditLog, 'append'> }>(
  store: AuditedStore<Tx>,
  actor: string,
  change: (tx: Tx) => Promise<{ result: Result } & Omit<NewAuditEntry, 'actor'>>,
): Promise<Result> {
  return store.atomically(async (tx) => {
    const { result, ...entry } = await change(tx)
    await tx.audit.append({ actor, ...entry })
    return result
  })
}

/** The audit logs of a database. */
export type AuditLog = ReturnType<typeof audit>

const select = 'SELECT id, at, organization, actor, action, subject, before, after FROM audit'

/** Queries of the audit log; entries are never changed or deleted. */
export function audit(db: Database) {
  // The order in which entries were written.
  const place = { sqlite: 'rowid', postgres: 'position' }[db.dialect]
  return {
    /** Checks whether the log of an organization has an entry with this id. */
    has: async (id: string, organization: string): Promise<boolean> =>
      (await db.get('SELECT 1 FROM audit WHERE id = @id AND organization = @organization', { id, organization })) !==
      undefined,
    /** Appends an entry; called in the transaction of the change itself. */
    async append({ before = null, after = null, ...entry }: NewAuditEntry): Promise<AuditEntry> {
      const id = randomUUIDv7()
      const at = Date.now()
      const text = (value: JsonObject | null) => (value === null ? null : JSON.stringify(value))
      await db.run(
        `INSERT INTO audit (id, at, organization, actor, action, subject, before, after)
          VALUES (@id, @at, @organization, @actor, @action, @subject, @before, @after)`,
        { ...entry, id, at, before: text(before), after: text(after) },
      )
      return { ...entry, id, at, before, after }
    },
    /** The newest entries of an organization, or those older than the one with the id `after`; none when it is unknown. */
    async page({
      organization,
      after,
      limit,
    }: {
      organization: string
      after?: string
      limit: number
    }): Promise<AuditEntry[]> {
      const isOlder =
        after === undefined
          ? ''
          : `AND ${place} < (SELECT ${place} FROM audit WHERE organization = @organization AND id = @after)`
      const rows = await db.all<Row>(
        `${select} WHERE organization = @organization ${isOlder} ORDER BY ${place} DESC LIMIT @limit`,
        { organization, limit, ...(after !== undefined && { after }) },
      )
      return rows.map(auditEntry)
    },
  }
}

function auditEntry({ at, before, after, ...row }: Row): AuditEntry {
  const value = (text: string | null) => (text === null ? null : storedJson<JsonObject>(text))
  return { ...row, at: Number(at), before: value(before), after: value(after) }
}
