import { randomUUIDv7 } from 'node:crypto'
import type { JsonObject } from '../core/json.ts'
import type { Changes } from './changes.ts'
import type { Connection } from './sqlite/connection.ts'
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

type Row = Omit<AuditEntry, 'before' | 'after'> & { before: string | null; after: string | null }

/**
 * Makes a change and appends its audit entry in the same transaction. `actor` is the id of a key, or `cli`; the change
 * returns its result and the rest of the entry.
 */
export function audited<Result>(
  store: Pick<Changes, 'atomically'> & { audit: Pick<ReturnType<typeof audit>, 'append'> },
  actor: string,
  change: () => { result: Result } & Omit<NewAuditEntry, 'actor'>,
): Result {
  return store.atomically(() => {
    const { result, ...entry } = change()
    store.audit.append({ actor, ...entry })
    return result
  })
}

/** Queries of the audit log; entries are never changed or deleted. */
export function audit(db: Connection) {
  const insert = db.prepare(`
    INSERT INTO audit (id, at, organization, actor, action, subject, before, after)
    VALUES (@id, @at, @organization, @actor, @action, @subject, @before, @after)`)
  const select = 'SELECT id, at, organization, actor, action, subject, before, after FROM audit WHERE organization = ?'
  const newest = db.prepare<[string, number], Row>(`${select} ORDER BY rowid DESC LIMIT ?`)
  const older = db.prepare<[string, string, string, number], Row>(`
    ${select} AND rowid < (SELECT rowid FROM audit WHERE organization = ? AND id = ?) ORDER BY rowid DESC LIMIT ?`)
  const known = db.prepare<[string, string]>('SELECT 1 FROM audit WHERE id = ? AND organization = ?')
  return {
    /** Checks whether the log of an organization has an entry with this id. */
    has: (id: string, organization: string): boolean => known.get(id, organization) !== undefined,
    /** Appends an entry; called in the transaction of the change itself. */
    append({ before = null, after = null, ...entry }: NewAuditEntry): AuditEntry {
      const id = randomUUIDv7()
      const at = Date.now()
      const text = (value: JsonObject | null) => (value === null ? null : JSON.stringify(value))
      insert.run({ ...entry, id, at, before: text(before), after: text(after) })
      return { ...entry, id, at, before, after }
    },
    /** The newest entries of an organization, or those older than the one with the id `after`; none when it is unknown. */
    page({ organization, after, limit }: { organization: string; after?: string; limit: number }): AuditEntry[] {
      const rows =
        after === undefined ? newest.all(organization, limit) : older.all(organization, organization, after, limit)
      return rows.map(auditEntry)
    },
  }
}

function auditEntry({ before, after, ...row }: Row): AuditEntry {
  const value = (text: string | null) => (text === null ? null : storedJson<JsonObject>(text))
  return { ...row, before: value(before), after: value(after) }
}
