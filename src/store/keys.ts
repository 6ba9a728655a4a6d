import { randomUUIDv7 } from 'node:crypto'
import type { Connection } from './connection.ts'

/** What a permission may be, from least to most. */
export const levels = ['none', 'read', 'write'] as const

/** How far a key may go in one area. */
export type Level = (typeof levels)[number]

/** What a key may do: manage the organization, and call models. */
export type Permissions = { manage: Level; completions: Level }

/** A key as it is stored: never its secret, only the SHA-256 of it and a prefix to recognize it by. Times are Unix milliseconds. */
export type KeyRecord = {
  id: string
  organization: string
  hash: Buffer
  prefix: string
  name: string
  permissions: Permissions
  labels: Record<string, string>
  /** Nano-USD; null means unlimited. */
  monthlyLimitNano: bigint | null
  createdBy: { id: string; email: string }
  createdAt: number
  expiresAt: number | null
  revokedAt: number | null
}

/** What a new key is made of; what is left out is empty, unlimited, for ever. */
export type NewKey = Pick<KeyRecord, 'organization' | 'hash' | 'prefix' | 'name' | 'permissions' | 'createdBy'> &
  Partial<Pick<KeyRecord, 'labels' | 'monthlyLimitNano' | 'expiresAt'>>

/** A key is one of these at a moment. */
export type KeyState = 'active' | 'expired' | 'revoked'

/** The state of a key at a moment (Unix milliseconds): it follows from its times, so that it cannot contradict them. */
export function keyState({ revokedAt, expiresAt }: Pick<KeyRecord, 'revokedAt' | 'expiresAt'>, now: number): KeyState {
  if (revokedAt !== null) return 'revoked'
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'active'
}

type Row = {
  id: string
  organization: string
  hash: Buffer
  prefix: string
  name: string
  manage: Level
  completions: Level
  labels: string
  monthly_limit_nano: bigint | null
  created_by_id: string
  created_by_email: string
  created_at: bigint
  expires_at: bigint | null
  revoked_at: bigint | null
}

/** The keys of a database. */
export type Keys = ReturnType<typeof keys>

/** The functions on the table of keys. */
export function keys(db: Connection) {
  const listeners = new Set<(hash: Buffer) => void>()
  const insert = db.prepare(`
    INSERT INTO api_keys (id, organization, hash, prefix, name, manage, completions, labels, monthly_limit_nano,
      created_by_id, created_by_email, created_at, expires_at)
    VALUES (@id, @organization, @hash, @prefix, @name, @manage, @completions, @labels, @limit,
      @createdById, @createdByEmail, @createdAt, @expiresAt)`)
  const byId = db.prepare<[string], Row>('SELECT * FROM api_keys WHERE id = ?').safeIntegers()
  const byHash = db.prepare<[Buffer], Row>('SELECT * FROM api_keys WHERE hash = ?').safeIntegers()
  const all = db.prepare<[], Row>('SELECT * FROM api_keys ORDER BY created_at, rowid').safeIntegers()
  const ofOrganization = db
    .prepare<[string], Row>('SELECT * FROM api_keys WHERE organization = ? ORDER BY created_at, rowid')
    .safeIntegers()
  const any = db.prepare('SELECT 1 FROM api_keys LIMIT 1')
  const revoke = db.prepare('UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL')
  const find = (id: string) => keyRecord(byId.get(id))

  return {
    /** A new, active key. The organization must exist. */
    create(key: NewKey): KeyRecord {
      const id = randomUUIDv7()
      const { labels = {}, monthlyLimitNano: limit = null, expiresAt = null, permissions, createdBy, ...named } = key
      insert.run({
        ...named,
        ...permissions,
        id,
        labels: JSON.stringify(labels),
        limit,
        createdById: createdBy.id,
        createdByEmail: createdBy.email,
        createdAt: Date.now(),
        expiresAt,
      })
      return find(id) as KeyRecord
    },
    find,
    findByHash: (hash: Buffer) => keyRecord(byHash.get(hash)),
    /** All keys, or those of one organization, the oldest first. */
    list(organization?: string): KeyRecord[] {
      const rows = organization === undefined ? all.all() : ofOrganization.all(organization)
      return rows.map((row) => keyRecord(row) as KeyRecord)
    },
    /** Whether there is any key, in whatever state. */
    any: (): boolean => any.get() !== undefined,
    /** Revokes a key for ever; a key that was revoked before keeps its time. Nothing for an unknown id. */
    revoke(id: string): KeyRecord | undefined {
      revoke.run(Date.now(), id)
      const record = find(id)
      if (record) for (const listener of listeners) listener(record.hash)
      return record
    },
    /** Calls the listener with the hash of each key that this process changes from now on. */
    onChange(listener: (hash: Buffer) => void): void {
      listeners.add(listener)
    },
  }
}

function keyRecord(row: Row | undefined): KeyRecord | undefined {
  if (!row) return undefined
  return {
    id: row.id,
    organization: row.organization,
    hash: row.hash,
    prefix: row.prefix,
    name: row.name,
    permissions: { manage: row.manage, completions: row.completions },
    labels: JSON.parse(row.labels),
    monthlyLimitNano: row.monthly_limit_nano,
    createdBy: { id: row.created_by_id, email: row.created_by_email },
    createdAt: Number(row.created_at),
    expiresAt: row.expires_at === null ? null : Number(row.expires_at),
    revokedAt: row.revoked_at === null ? null : Number(row.revoked_at),
  }
}
