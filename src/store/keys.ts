import { randomUUIDv7 } from 'node:crypto'
import type { Changes } from './changes.ts'
import type { Database, Parameters } from './database.ts'
import { storedJson } from './store-error.ts'

/** The levels of a permission, from least to most. */
export const levels = ['none', 'read', 'write'] as const

/** The level of one permission. */
export type Level = (typeof levels)[number]

/** Permissions of a key: to manage keys and names, to call models, and to operate the organization's own money and limits. */
export const areas = ['manage', 'completions', 'operate'] as const

/**
 * The permissions of a key. `instance` is set where it may read all organizations and the sums over them; only the command line on the machine
 * grants it, and no permission within an organization includes it. `content` is set where it may read what plugins have stored of calls, or
 * delete it as well; no other permission includes it.
 */
export type Permissions = Record<(typeof areas)[number], Level> & { instance?: 'read'; content?: 'read' | 'write' }

/** All permissions, also those that most keys do not have. */
export const allAreas = [...areas, 'instance', 'content'] as const

/** A stored key: not its secret but the SHA-256 of it and a recognizable prefix. Times are Unix milliseconds. */
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
  /** The group whose monthly limit it shares. */
  groupId: string | null
  /** Models, aliases and policies that it may call; null means all that its organization may. */
  accessList: readonly string[] | null
  limits: RateLimits
  /** Plugins that are switched on or off for its calls, by name. */
  plugins: Readonly<Record<string, boolean>>
  createdBy: { id: string; email: string }
  createdAt: number
  expiresAt: number | null
  revokedAt: number | null
  /** A deleted key is on no list; its secret is reported as revoked. */
  deletedAt: number | null
}

/** The properties of a key that can be changed. */
export type KeyChanges = Partial<
  Pick<
    KeyRecord,
    | 'name'
    | 'permissions'
    | 'labels'
    | 'monthlyLimitNano'
    | 'groupId'
    | 'accessList'
    | 'limits'
    | 'plugins'
    | 'expiresAt'
  >
>

/** The properties of a new key; without other permissions, labels, limits and an expiry than those given. */
export type NewKey = Pick<KeyRecord, 'organization' | 'hash' | 'prefix' | 'name' | 'createdBy'> &
  Omit<KeyChanges, 'permissions'> & { permissions: Partial<Permissions> }

/** The state of a key. */
type KeyState = 'active' | 'expired' | 'revoked'

/** The state of a key at a time (Unix milliseconds), derived from its times. */
export function keyState({ revokedAt, expiresAt }: Pick<KeyRecord, 'revokedAt' | 'expiresAt'>, now: number): KeyState {
  if (revokedAt !== null) return 'revoked'
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'active'
}

/** A page of keys: of one organization or of all, after an id. */
type KeyPage = { organization?: string; after?: string; limit: number }

/** Rate limits of a key without any. */
export const noLimits: RateLimits = { requestsPerMinute: null, tokensPerMinute: null, concurrentCalls: null }

/** The keys of a database. */
export type Keys = ReturnType<typeof keys>

/** Queries of the keys. */
export function keys(db: Database, changes: Changes) {
  const notify = (before: KeyRecord | undefined): void => {
    if (before) changes.keys.notify(before.hash)
  }
  /** Changes a key that is not deleted. Returns it as it was and as it is then. */
  const changed = async (id: string, sql: string, valuesFor: (before: KeyRecord) => Parameters) => {
    const found = await db.transaction(async (tx) => {
      const before = await keyById(tx, id)
      if (before) await tx.run(sql, { ...valuesFor(before), id })
      return { before, after: before && (await keyById(tx, id)) }
    })
    notify(found.before)
    return found
  }
  return {
    ...keyReader(db),
    /** Creates an active key. The organization must exist, and the group must belong to it. */
    async create({ createdBy, ...key }: NewKey): Promise<KeyRecord> {
      const { organization, hash, prefix } = key
      const made = { id: randomUUIDv7(), organization, hash, prefix, createdAt: Date.now() }
      const creator = { createdById: createdBy.id, createdByEmail: createdBy.email }
      const properties = columns({ ...unset, ...key, permissions: { ...noPermissions, ...key.permissions } })
      return keyRecord(await db.get<Row>(insert, { ...made, ...creator, ...properties })) as KeyRecord
    },
    /** Changes the given properties. A new group must belong to the key's organization. Undefined for an unknown id. */
    update: async (id: string, properties: KeyChanges): Promise<KeyRecord | undefined> =>
      (await changed(id, change, (before) => columns({ ...before, ...properties }))).after,
    /** Replaces the secret of a key; the old one stops working at once. Undefined for an unknown id. */
    rotate: async (id: string, { hash, prefix }: Pick<KeyRecord, 'hash' | 'prefix'>): Promise<KeyRecord | undefined> =>
      (await changed(id, 'UPDATE api_keys SET hash = @hash, prefix = @prefix WHERE id = @id', () => ({ hash, prefix })))
        .after,
    /** Revokes a key for good; a revoked key keeps its time of revocation. Undefined for an unknown id. */
    revoke: async (id: string): Promise<KeyRecord | undefined> =>
      (await changed(id, `${revoke} WHERE id = @id AND revoked_at IS NULL`, () => ({ now: Date.now() }))).after,
    /** Revokes all keys of a group for good. */
    async revokeGroup(group: string): Promise<void> {
      await db.run(`${revoke} WHERE group_id = @group AND revoked_at IS NULL`, { group, now: Date.now() })
      changes.keys.notify(undefined)
    },
    /** Revokes a key and removes it from all lists. Returns the key as it was, undefined for an unknown id. */
    remove: async (id: string): Promise<KeyRecord | undefined> =>
      (await changed(id, remove, () => ({ now: Date.now() }))).before,
    /** Calls the listener with the hash of each key that this process changes, undefined when many keys change. */
    onChange: changes.keys.listen,
  }
}

const revoke = 'UPDATE api_keys SET revoked_at = @now'
const remove = 'UPDATE api_keys SET revoked_at = coalesce(revoked_at, @now), deleted_at = @now WHERE id = @id'

async function keyById(db: Database, id: string): Promise<KeyRecord | undefined> {
  return keyRecord(await db.get<Row>('SELECT * FROM api_keys WHERE id = @id AND deleted_at IS NULL', { id }))
}

function keyReader(db: Database) {
  const count = async (where: string, parameters: Parameters = {}): Promise<number> => {
    const row = await db.get<{ keys: bigint }>(`SELECT count(*) AS keys FROM api_keys WHERE ${where}`, parameters)
    return Number(row?.keys)
  }
  return {
    /** A key by id, unless it is deleted. */
    find: (id: string): Promise<KeyRecord | undefined> => keyById(db, id),
    /** A key by the hash of its secret, also a deleted one. */
    findByHash: async (hash: Buffer): Promise<KeyRecord | undefined> =>
      keyRecord(await db.get<Row>('SELECT * FROM api_keys WHERE hash = @hash', { hash })),
    /** The organization of a key, also of a deleted one. */
    ownerOf: async (id: string): Promise<string | undefined> =>
      (await db.get<{ organization: string }>('SELECT organization FROM api_keys WHERE id = @id', { id }))
        ?.organization,
    /** Keys that are not deleted, by id: the oldest first. */
    async page({ organization, after = '', limit }: KeyPage): Promise<KeyRecord[]> {
      const isOwn = organization === undefined ? '' : 'organization = @organization AND'
      const rows = await db.all<Row>(
        `SELECT * FROM api_keys WHERE ${isOwn} id > @after AND deleted_at IS NULL ORDER BY id LIMIT @limit`,
        { ...(organization !== undefined && { organization }), after, limit },
      )
      return rows.map((row) => keyRecord(row) as KeyRecord)
    },
    /** The number of keys of an organization that are not deleted. */
    count: (organization: string): Promise<number> =>
      count('organization = @organization AND deleted_at IS NULL', { organization }),
    /** The number of the keys of all organizations that are not deleted. */
    countAll: (): Promise<number> => count('deleted_at IS NULL'),
    /** Checks whether there is any key, deleted ones included. */
    any: async (): Promise<boolean> => (await db.get('SELECT 1 FROM api_keys LIMIT 1')) !== undefined,
    /** Checks whether another key of its organization is active at a time (Unix milliseconds) and may change what the area has. */
    async anotherMay(
      area: 'manage' | 'operate',
      { organization, id }: Pick<KeyRecord, 'organization' | 'id'>,
      at: number,
    ): Promise<boolean> {
      const another = await db.get(
        `SELECT 1 FROM api_keys WHERE organization = @organization AND id <> @id AND ${area} = 'write' AND revoked_at IS NULL
          AND deleted_at IS NULL AND (expires_at IS NULL OR expires_at > @at) LIMIT 1`,
        { organization, id, at },
      )
      return another !== undefined
    },
    /** The number of the keys of a group that are neither deleted nor revoked. */
    countOfGroup: (group: string): Promise<number> => count(members, { group }),
    /** The permissions of the keys of a group, each combination once. */
    async permissionsOfGroup(group: string): Promise<Permissions[]> {
      const sql = `SELECT DISTINCT ${permissionColumns} FROM api_keys WHERE ${members}`
      return (await db.all<PermissionColumns>(sql, { group })).map(permissionsIn)
    },
    /** The keys of a group that are neither deleted nor revoked, the oldest first. */
    async ofGroup(group: string): Promise<GroupKey[]> {
      const sql = `SELECT id, organization, ${permissionColumns}, expires_at, revoked_at FROM api_keys WHERE ${members} ORDER BY id`
      return (await db.all<GroupRow>(sql, { group })).map(({ id, organization, expires_at, revoked_at, ...row }) => ({
        id,
        organization,
        permissions: permissionsIn(row),
        expiresAt: numberOrNull(expires_at),
        revokedAt: numberOrNull(revoked_at),
      }))
    },
  }
}

const members = 'group_id = @group AND deleted_at IS NULL AND revoked_at IS NULL'
const permissionColumns = 'manage, completions, operate, instance, content'

/** The facts of a key on which its end depends. */
export type GroupKey = Pick<KeyRecord, 'id' | 'organization' | 'permissions' | 'expiresAt' | 'revokedAt'>

type PermissionColumns = Record<(typeof areas)[number], Level> & { instance: 'none' | 'read'; content: Level }

function permissionsIn({ manage, completions, operate, instance, content }: PermissionColumns): Permissions {
  return {
    manage,
    completions,
    operate,
    ...(instance === 'read' && { instance }),
    ...(content !== 'none' && { content }),
  }
}

type GroupRow = Pick<KeyRecord, 'id' | 'organization'> &
  PermissionColumns & { expires_at: bigint | null; revoked_at: bigint | null }

/** The columns that can be changed. */
const changeable =
  'name, manage, completions, operate, instance, content, labels, monthly_limit_nano, group_id, access_list, requests_per_minute, ' +
  'tokens_per_minute, concurrent_calls, plugins, expires_at'
const boundChangeable = changeable.replace(/\w+/g, '@$&')

const insert = `
  INSERT INTO api_keys (id, organization, hash, prefix, created_by_id, created_by_email, created_at, ${changeable})
  VALUES (@id, @organization, @hash, @prefix, @createdById, @createdByEmail, @createdAt, ${boundChangeable}) RETURNING *`
const change = `UPDATE api_keys SET (${changeable}) = (${boundChangeable}) WHERE id = @id`

const noPermissions: Permissions = { manage: 'none', completions: 'none', operate: 'none' }

const unset = {
  labels: {},
  monthlyLimitNano: null,
  groupId: null,
  accessList: null,
  limits: noLimits,
  plugins: {},
  expiresAt: null,
}

function columns(key: Required<KeyChanges>) {
  const { limits, permissions, accessList } = key
  return {
    name: key.name,
    manage: permissions.manage,
    completions: permissions.completions,
    operate: permissions.operate,
    instance: permissions.instance ?? 'none',
    content: permissions.content ?? 'none',
    labels: JSON.stringify(key.labels),
    monthly_limit_nano: key.monthlyLimitNano,
    group_id: key.groupId,
    access_list: accessList === null ? null : JSON.stringify(accessList),
    requests_per_minute: limits.requestsPerMinute,
    tokens_per_minute: limits.tokensPerMinute,
    concurrent_calls: limits.concurrentCalls,
    plugins: JSON.stringify(key.plugins),
    expires_at: key.expiresAt,
  }
}

type Row = PermissionColumns & {
  id: string
  organization: string
  hash: Buffer
  prefix: string
  name: string
  labels: string
  monthly_limit_nano: bigint | null
  group_id: string | null
  access_list: string | null
  requests_per_minute: bigint | null
  tokens_per_minute: bigint | null
  concurrent_calls: bigint | null
  plugins: string
  created_by_id: string
  created_by_email: string
  created_at: bigint
  expires_at: bigint | null
  revoked_at: bigint | null
  deleted_at: bigint | null
}

function keyRecord(row: Row | undefined): KeyRecord | undefined {
  if (!row) return undefined
  return {
    id: row.id,
    organization: row.organization,
    hash: row.hash,
    prefix: row.prefix,
    name: row.name,
    permissions: permissionsIn(row),
    labels: storedJson(row.labels),
    monthlyLimitNano: row.monthly_limit_nano,
    groupId: row.group_id,
    accessList: row.access_list === null ? null : storedJson(row.access_list),
    limits: rateLimits(row),
    plugins: storedJson(row.plugins),
    createdBy: { id: row.created_by_id, email: row.created_by_email },
    createdAt: Number(row.created_at),
    expiresAt: numberOrNull(row.expires_at),
    revokedAt: numberOrNull(row.revoked_at),
    deletedAt: numberOrNull(row.deleted_at),
  }
}

/** The columns of rate limits, which keys and organizations share. */
export type LimitColumns = Pick<Row, 'requests_per_minute' | 'tokens_per_minute' | 'concurrent_calls'>

/** The rate limits of a row. */
export function rateLimits(row: LimitColumns): RateLimits {
  return {
    requestsPerMinute: numberOrNull(row.requests_per_minute),
    tokensPerMinute: numberOrNull(row.tokens_per_minute),
    concurrentCalls: numberOrNull(row.concurrent_calls),
  }
}

function numberOrNull(value: bigint | null): number | null {
  return value === null ? null : Number(value)
}

/** Maximum numbers of requests and tokens per minute, and of concurrent calls; null is no limit. */
export type RateLimits = {
  requestsPerMinute: number | null
  tokensPerMinute: number | null
  concurrentCalls: number | null
}
