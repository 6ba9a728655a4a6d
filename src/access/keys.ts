import { hash, timingSafeEqual } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { LRUCache } from 'lru-cache'
import { RouterError } from '../core/errors.ts'
import { allAreas, type KeyRecord, keyState, type Level, levels, type Permissions } from '../store/keys.ts'
import type { Store } from '../store/open.ts'
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

/** Looks up and checks API keys. */
export type Access = {
  /** Returns the key of a secret that may call models. Throws RouterError: missing_key, invalid_key, forbidden. */
  authenticate(secret: string | undefined): Key
  /** Returns the key of this id that may call models. Throws RouterError: invalid_key, forbidden. */
  authenticateById(id: string): Key
  /** Returns the key of a secret, whatever its permissions. Throws RouterError: missing_key, invalid_key. */
  identify(secret: string | undefined): Key
  /** Returns the current state of an authenticated key. Throws RouterError: invalid_key, forbidden. */
  revalidate(key: Key): Key
}

/** The result of the first start; the secret is not stored anywhere. */
export type FirstKey = { created: true; secret: string } | { created: false }

/** Opens the cached access to the keys of a store. `now` returns Unix milliseconds. */
export function openAccess(store: Pick<Store, 'keys'>, { now = Date.now, rereadMs = defaultRereadMs } = {}): Access {
  const known = new LRUCache<string, { key: KeyRecord; readAt: number }>({ max: maxKnown })
  store.keys.onChange((changed) => {
    if (changed) known.delete(changed.toString('hex'))
    else known.clear()
  })

  const digests = new WeakMap<Key, string>()

  const identify = (secret: string | undefined): Key => {
    if (!secret) throw new RouterError('missing_key', `No API key. ${howToSend}`)
    return keyOf(hash('sha256', secret, 'hex'))
  }

  const keyOf = (digest: string): Key => {
    const at = now()
    let entry = known.get(digest)
    // `at < readAt`: the clock was set back.
    if (!entry || at - entry.readAt >= rereadMs || at < entry.readAt) {
      const key = read(digest)
      // An unchanged key stays the same object, as values derived from it are cached by it.
      entry = { key: entry && isDeepStrictEqual(key, entry.key) ? entry.key : key, readAt: at }
      known.set(digest, entry)
      digests.set(entry.key, digest)
    }
    const { key } = entry
    const state = keyState(key, at)
    if (state !== 'active') throw new RouterError('invalid_key', `This API key is ${state}. Use another key.`)
    return key
  }

  const read = (digest: string): KeyRecord => {
    const digestBytes = Buffer.from(digest, 'hex')
    const found = store.keys.findByHash(digestBytes)
    if (found && timingSafeEqual(found.hash, digestBytes)) return found
    throw new RouterError('invalid_key', `This API key is unknown. ${howToSend}`)
  }

  const allowed = (key: Key): Key => {
    requirePermission(key, ['completions'], 'write')
    return key
  }

  return {
    identify,
    authenticate: (secret) => allowed(identify(secret)),
    authenticateById(id) {
      const found = store.keys.find(id)
      if (!found) throw new RouterError('invalid_key', 'The key of this caller does not exist.')
      return allowed(keyOf(found.hash.toString('hex')))
    },
    revalidate: (key) => allowed(keyOf(digests.get(key) ?? '')),
  }
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
export function ensureFirstKey(store: Store, chosen?: string): FirstKey {
  return store.atomically(() => {
    if (store.keys.any()) return { created: false }
    const organization = store.organizations.list()[0] ?? store.organizations.create('default')
    const secret = chosen || newSecret()
    const { id, name, permissions } = store.keys.create({
      ...storedSecret(secret),
      organization: organization.id,
      name: 'first key',
      permissions: { manage: 'write', completions: 'write', operate: 'write', instance: 'read' },
      createdBy: { id: actor, email: '' },
    })
    const change = { actor, action: 'apikey.create', subject: id, after: { name, permissions } }
    store.audit.append({ ...change, organization: organization.id })
    return { created: true, secret }
  })
}

const actor = 'first-start'
/** Maximum time for which a key still works after another process has revoked it. */
const defaultRereadMs = 2_000
/** Maximum number of known keys, of about 1 KB each. */
const maxKnown = 10_000

const howToSend = 'Send it as "Authorization: Bearer <key>" or "x-api-key: <key>".'
