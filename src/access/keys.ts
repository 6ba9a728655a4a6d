import { hash, timingSafeEqual } from 'node:crypto'
import { RouterError } from '../core/errors.ts'
import { andThen, type MaybePromise } from '../runtime/maybe-promise.ts'
import { allAreas, type KeyRecord, keyState, type Level, levels, type Permissions } from '../store/keys.ts'
import type { Store } from '../store/open.ts'
import { ReadCache } from './read-cache.ts'
import { newSecret, storedSecret } from './secrets.ts'

/** An authenticated key. */
export type Key = Pick<
  KeyRecord,
  | 'id'
  | 'organization'
  | 'name'
  | 'prefix'
  | 'permissions'
  | 'labels'
  | 'monthlyLimitNano'
  | 'groupId'
  | 'accessList'
  | 'limits'
  | 'plugins'
  | 'createdAt'
  | 'expiresAt'
>

/** Looks up and checks API keys: at once where a key is known, and with a promise where it has to be read. */
export type Access = {
  /** Returns the key of a secret that may call models. Throws or rejects with RouterError: missing_key, invalid_key, forbidden. */
  authenticate(secret: string | undefined): MaybePromise<Key>
  /** Returns the key of this id that may call models. Rejects with RouterError: invalid_key, forbidden. */
  authenticateById(id: string): Promise<Key>
  /** Returns the key of a secret, whatever its permissions. Throws or rejects with RouterError: missing_key, invalid_key. */
  identify(secret: string | undefined): MaybePromise<Key>
  /** Returns the current state of an authenticated key. Throws or rejects with RouterError: invalid_key, forbidden. */
  revalidate(key: Key): MaybePromise<Key>
}

/** The result of the first start; the secret is not stored anywhere. */
export type FirstKey = { created: true; secret: string } | { created: false }

/** Opens the cached access to the keys of a store. `now` returns Unix milliseconds. */
export function openAccess({ keys }: Pick<Store, 'keys'>, { now = Date.now, rereadMs = defaultRereadMs } = {}): Access {
  const digests = new WeakMap<Key, string>()

  const read = async (digest: string): Promise<KeyRecord> => {
    const digestBytes = Buffer.from(digest, 'hex')
    const found = await keys.findByHash(digestBytes)
    if (found && timingSafeEqual(found.hash, digestBytes)) {
      digests.set(found, digest)
      return found
    }
    throw new RouterError('invalid_key', `This API key is unknown. ${howToSend}`)
  }

  const known = new ReadCache({ read, now, rereadMs, max: maxKnown })
  keys.onChange((changed) => {
    if (changed) known.invalidate(changed.toString('hex'))
    else known.invalidateAll()
  })

  const allowed = (key: KeyRecord): Key => {
    requirePermission(requireActive(key, now()), ['completions'], 'write')
    return key
  }

  const recordOf = (secret: string | undefined): MaybePromise<KeyRecord> => {
    if (!secret) throw new RouterError('missing_key', `No API key. ${howToSend}`)
    return known.get(hash('sha256', secret, 'hex'))
  }

  return {
    identify: (secret) => andThen(recordOf(secret), (key) => requireActive(key, now())),
    authenticate: (secret) => andThen(recordOf(secret), allowed),
    async authenticateById(id) {
      const found = await keys.find(id)
      if (!found) throw new RouterError('invalid_key', 'The key of this caller does not exist.')
      return allowed(await known.get(found.hash.toString('hex')))
    },
    revalidate: (key) => andThen(known.get(digests.get(key) ?? ''), allowed),
  }
}

/** Returns a key that is active at a time (Unix milliseconds). Throws RouterError `invalid_key`, also for one that was deleted. */
export function requireActive(key: KeyRecord | undefined, at: number): KeyRecord {
  const state = key ? keyState(key, at) : 'revoked'
  if (key && state === 'active') return key
  throw new RouterError('invalid_key', `This API key is ${state}. Use another key.`)
}

/** Throws RouterError `forbidden` unless the key has the permission in one of the areas: `none` < `read` < `write`. */
export function requirePermission({ permissions }: Key, areas: readonly (keyof Permissions)[], level: Level): void {
  if (areas.some((area) => rank(permissions[area] ?? 'none') >= rank(level))) return
  const has = areas.map((area) => `${area}: ${permissions[area] ?? 'none'}`).join(' and ')
  const needs = areas.map((area) => `${area}: ${level}`).join(' or ')
  throw new RouterError('forbidden', `This API key has the permission ${has}; this request needs ${needs}.`)
}

/** Returns the first area in which permissions are more than those of a key; undefined when there is none. */
export function areaBeyond({ permissions }: Key, others: Permissions): keyof Permissions | undefined {
  return allAreas.find((area) => rank(others[area] ?? 'none') > rank(permissions[area] ?? 'none'))
}

function rank(level: Level): number {
  return levels.indexOf(level)
}

/**
 * Creates a key with full permissions when a database has none, in its first organization or a new one named `default`.
 * `chosen` is its secret, which `requireUsableSecret` has accepted, else a new one.
 */
export function ensureFirstKey(store: Store, chosen?: string): Promise<FirstKey> {
  return store.atomically(async ({ keys, organizations, audit }) => {
    if (await keys.any()) return { created: false }
    const [first] = await organizations.list()
    const organization = first ?? (await organizations.create('default'))
    const secret = chosen || newSecret()
    const { id, name, permissions } = await keys.create({
      ...storedSecret(secret),
      organization: organization.id,
      name: 'first key',
      permissions: { manage: 'write', completions: 'write', operate: 'write', instance: 'read' },
      createdBy: { id: actor, email: '' },
    })
    const change = { actor, action: 'apikey.create', subject: id, after: { name, permissions } }
    await audit.append({ ...change, organization: organization.id })
    return { created: true, secret }
  })
}

const actor = 'first-start'
/** Maximum time for which a key still works after another process has revoked it. */
const defaultRereadMs = 2_000
/** Maximum number of known keys, of about 1 KB each. */
const maxKnown = 10_000

const howToSend = 'Send it as "Authorization: Bearer <key>" or "x-api-key: <key>".'
