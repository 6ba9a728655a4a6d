import { hash, timingSafeEqual } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { LRUCache } from 'lru-cache'
import { RouterError } from '../core/errors.ts'
import { type KeyRecord, keyState, type Level, levels, type Permissions } from '../store/keys.ts'
import type { Store } from '../store/open.ts'
import { newSecret, storedSecret } from './secret.ts'

/** A key whose secret was shown: who calls, and what that one may do. */
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
  | 'createdAt'
  | 'expiresAt'
>

/** Who may come in. */
export type Access = {
  /** The key of a secret that may call models. Throws RouterError: missing_key, invalid_key, forbidden. */
  authenticate(secret: string | undefined): Key
  /** The key of a secret, whatever it may do. Throws RouterError: missing_key, invalid_key. */
  identify(secret: string | undefined): Key
  /** A key that was authenticated, as it is by now. Throws RouterError: invalid_key, forbidden. */
  again(key: Key): Key
}

/** What the first start made: the secret is known only now. */
export type FirstKey = { created: true; secret: string } | { created: false }

/** Opens the door to the keys of a store. `now` gives Unix milliseconds. */
export function openAccess(store: Pick<Store, 'keys'>, { now = Date.now, rereadMs = defaultRereadMs } = {}): Access {
  const known = new LRUCache<string, { key: KeyRecord; readAt: number }>({ max: mostKnown })
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
    // A clock that was set back must not make an entry look young.
    if (!entry || at - entry.readAt >= rereadMs || at < entry.readAt) {
      const key = read(digest)
      // What is worked out for a key is kept by its identity.
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
    const wanted = Buffer.from(digest, 'hex')
    const found = store.keys.findByHash(wanted)
    if (found && timingSafeEqual(found.hash, wanted)) return found
    throw new RouterError('invalid_key', `This API key is not known here. ${howToSend}`)
  }

  const allowed = (key: Key): Key => {
    requirePermission(key, 'completions', 'write')
    return key
  }

  return {
    identify,
    authenticate: (secret) => allowed(identify(secret)),
    again: (key) => allowed(keyOf(digests.get(key) ?? '')),
  }
}

/** Throws RouterError `forbidden` unless the key may go that far: `none` < `read` < `write`. */
export function requirePermission({ permissions }: Key, area: keyof Permissions, level: Level): void {
  if (levels.indexOf(permissions[area]) >= levels.indexOf(level)) return
  throw new RouterError(
    'forbidden',
    `This API key has the permission ${area}: ${permissions[area]}; this request needs ${area}: ${level}.`,
  )
}

/**
 * Makes a key with full permissions when a database has none, in its first organization or a new one named `default`.
 * `chosen` becomes the secret when it is given. Throws an Error when it cannot be sent as a header.
 */
export function ensureFirstKey(store: Store, chosen?: string): FirstKey {
  return store.atomically(() => {
    if (store.keys.any()) return { created: false }
    if (chosen && !/^[\x21-\x7e]+$/.test(chosen)) throw new Error(`INFERENCE_ROUTER_ADMIN_KEY ${unsendable}`)
    const organization = store.organizations.list()[0] ?? store.organizations.create('default')
    const secret = chosen || newSecret()
    const { id, name, permissions } = store.keys.create({
      ...storedSecret(secret),
      organization: organization.id,
      name: 'first key',
      permissions: { manage: 'write', completions: 'write' },
      createdBy: { id: actor, email: '' },
    })
    const change = { actor, action: 'apikey.create', subject: id, after: { name, permissions } }
    store.audit.append({ ...change, organization: organization.id })
    return { created: true, secret }
  })
}

const actor = 'first-start'
/** A key that another process revokes works at most this much longer. */
const defaultRereadMs = 2_000
/** About 1 KB each. */
const mostKnown = 10_000

const howToSend = 'Send it as "Authorization: Bearer <key>" or "x-api-key: <key>".'
const unsendable = 'has characters that cannot stand in a header: use letters, digits and punctuation without spaces'
