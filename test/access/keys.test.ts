import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { ensureFirstKey, openAccess, requirePermission } from '../../src/access/keys.ts'
import { newSecret, requireUsableSecret, storedSecret } from '../../src/access/secrets.ts'
import { RouterError } from '../../src/core/errors.ts'
import type { NewKey } from '../../src/store/keys.ts'
import { openStore } from '../../src/store/open.ts'
import { temporaryFile } from '../store/temporary.ts'

async function open(url = 'sqlite::memory:') {
  const store = await openStore(url)
  onTestFinished(() => store.close())
  const organization = ((await store.organizations.list())[0] ?? (await store.organizations.create('acme'))).id
  const makeKey = async (changes: Partial<NewKey> = {}) => {
    const secret = newSecret()
    const record = await store.keys.create({
      ...storedSecret(secret),
      organization,
      name: 'laptop',
      permissions: { manage: 'none', completions: 'write' },
      createdBy: { id: 'test', email: '' },
      ...changes,
    })
    return { secret, record }
  }
  return { store, organization, makeKey }
}

/** The error of a call. */
async function thrownBy(call: () => unknown): Promise<RouterError> {
  try {
    await call()
  } catch (thrown) {
    if (thrown instanceof RouterError) return thrown
    throw thrown
  }
  throw new Error('nothing was thrown')
}

describe('a secret', () => {
  test('is random, long, and recognizable', () => {
    expect(newSecret()).toMatch(/^ir-[\w-]{43}$/)
    expect(newSecret()).not.toBe(newSecret())
  })

  test('is not in the database: only its hash and its first characters are', async () => {
    const { store, makeKey } = await open()
    const { secret, record } = await makeKey()
    expect(record.prefix).toBe(secret.slice(0, 8))
    expect(JSON.stringify(await store.keys.find(record.id))).not.toContain(secret.slice(8))
  })

  test('that is short does not show much of itself', () => {
    expect(storedSecret('test-key').prefix).toBe('te')
    expect(storedSecret('abc').prefix).toBe('')
  })
})

describe('who comes in', () => {
  test('an active key with the permission to call models', async () => {
    const { store, makeKey, organization } = await open()
    const { secret, record } = await makeKey({ labels: { team: 'a' }, monthlyLimitNano: 5n })
    const key = await openAccess(store).authenticate(secret)
    const { id, name } = record
    expect(key).toMatchObject({ id, name, organization, labels: { team: 'a' }, monthlyLimitNano: 5n })
  })

  test.each([undefined, ''])('without a key (%j): 401 that names the headers to send', async (secret) => {
    const error = await thrownBy(async () => await openAccess((await open()).store).authenticate(secret))
    expect(error).toMatchObject({ code: 'missing_key', status: 401 })
    expect(error.message).toContain('Authorization: Bearer')
    expect(error.message).toContain('x-api-key')
  })

  test.each(['nonsense', newSecret(), 'ü\u0000', 'x'.repeat(100_000)])(
    'nobody with a key that is not known: 403',
    async (secret) => {
      const error = await thrownBy(async () => await openAccess((await open()).store).authenticate(secret))
      expect(error).toMatchObject({ code: 'invalid_key', status: 403 })
      expect(error.message).not.toContain(secret)
    },
  )

  test('no revoked key, from the moment on in which this process revokes it', async () => {
    const { store, makeKey } = await open()
    const { secret, record } = await makeKey()
    const access = openAccess(store)
    await access.authenticate(secret)
    await store.keys.revoke(record.id)
    const error = await thrownBy(() => access.authenticate(secret))
    expect(error).toMatchObject({ code: 'invalid_key', status: 403, message: expect.stringContaining('revoked') })
  })

  test('no expired key, from its last moment on, although it was seen before', async () => {
    const { store, makeKey } = await open()
    let now = 1_000_000
    const { secret } = await makeKey({ expiresAt: now + 500 })
    const access = openAccess(store, { now: () => now })
    await access.authenticate(secret)
    now += 499
    await access.authenticate(secret)
    now += 1
    const error = await thrownBy(() => access.authenticate(secret))
    expect(error).toMatchObject({ code: 'invalid_key', message: expect.stringContaining('expired') })
  })

  test.each(['none', 'read'] as const)('no key whose permission for completions is %s: 403', async (completions) => {
    const { store, makeKey } = await open()
    const { secret, record } = await makeKey({ permissions: { manage: 'write', completions } })
    const access = openAccess(store)
    const error = await thrownBy(() => access.authenticate(secret))
    expect(error).toMatchObject({
      code: 'forbidden',
      status: 403,
      message: expect.stringContaining('completions: write'),
    })
    expect((await access.identify(secret)).id).toBe(record.id)
  })
})

describe('a key that is known', () => {
  test('is not reread at once, but soon: another process may have revoked it', async () => {
    const url = `sqlite:${temporaryFile('router.sqlite')}`
    const { store, makeKey } = await open(url)
    const { secret, record } = await makeKey()
    let now = 1_000_000
    const find = vi.spyOn(store.keys, 'findByHash')
    const access = openAccess(store, { now: () => now })
    for (let call = 0; call < 100; call++) await access.authenticate(secret)
    expect(find).toHaveBeenCalledOnce()

    const other = await openStore(url)
    await other.keys.revoke(record.id)
    await other.close()
    now += 1_999
    await access.authenticate(secret)
    now += 2
    expect((await thrownBy(() => access.authenticate(secret))).code).toBe('invalid_key')
  })

  test('is reread when the clock was set back: a key that another process revoked does not work until it is right again', async () => {
    const url = `sqlite:${temporaryFile('router.sqlite')}`
    const { store, makeKey } = await open(url)
    const { secret, record } = await makeKey()
    let now = 10_000_000
    const access = openAccess(store, { now: () => now })
    const key = await access.authenticate(secret)
    const other = await openStore(url)
    onTestFinished(() => other.close())
    now -= 3_600_000
    expect(await access.authenticate(secret)).toBe(key)
    await other.keys.revoke(record.id)
    now += 2_000
    expect(await thrownBy(() => access.authenticate(secret))).toMatchObject({ code: 'invalid_key' })
    expect(await thrownBy(() => access.revalidate(key))).toMatchObject({ code: 'invalid_key' })
  })

  test('is not pushed out by secrets that are not known', async () => {
    const { store, makeKey } = await open()
    const { secret } = await makeKey()
    const access = openAccess(store)
    await access.authenticate(secret)
    const find = vi.spyOn(store.keys, 'findByHash')
    for (let call = 0; call < 20_000; call++) await thrownBy(() => access.authenticate(`guess ${call}`))
    find.mockClear()
    await access.authenticate(secret)
    expect(find.mock.calls.length).toBeLessThanOrEqual(1)
  })
})

test('permissions rise from none over read to write', async () => {
  const { store, makeKey } = await open()
  const key = await openAccess(store).identify(
    (await makeKey({ permissions: { manage: 'read', completions: 'none' } })).secret,
  )
  requirePermission(key, ['manage'], 'read')
  requirePermission(key, ['completions'], 'none')
  expect(() => requirePermission(key, ['manage'], 'write')).toThrow('has the permission manage: read')
  requirePermission(key, ['operate', 'manage'], 'read')
  expect(() => requirePermission(key, ['manage', 'operate'], 'write')).toThrow(
    'has the permission manage: read and operate: none; this request needs manage: write or operate: write',
  )
  expect(() => requirePermission(key, ['completions'], 'read')).toThrow(RouterError)
})

describe('the first start', () => {
  test('makes an organization and a key that may do everything, once', async () => {
    const store = await openStore('sqlite::memory:')
    const first = await ensureFirstKey(store)
    if (!first.created) throw new Error('no key was made')
    expect(await store.organizations.list()).toMatchObject([{ name: 'default' }])
    const key = await openAccess(store).authenticate(first.secret)
    expect(key.permissions).toEqual({ manage: 'write', completions: 'write', operate: 'write', instance: 'read' })
    expect(await ensureFirstKey(store)).toEqual({ created: false })
    expect(await ensureFirstKey(store, 'another-secret')).toEqual({ created: false })
    expect(await store.keys.page({ limit: 10 })).toHaveLength(1)
    await store.close()
  })

  test('is in the log of changes of the organization', async () => {
    const { store, organization } = await open()
    await ensureFirstKey(store)
    const [key] = await store.keys.page({ limit: 1 })
    expect(key?.createdBy.id).toBe('first-start')
    expect(await store.audit.page({ organization, limit: 10 })).toMatchObject([
      {
        actor: 'first-start',
        action: 'apikey.create',
        subject: key?.id,
        after: {
          name: 'first key',
          permissions: { manage: 'write', completions: 'write', operate: 'write', instance: 'read' },
        },
      },
    ])
    await store.close()
  })

  test('takes the secret it is given', async () => {
    const store = await openStore('sqlite::memory:')
    expect(await ensureFirstKey(store, 'my-own-admin-key')).toEqual({ created: true, secret: 'my-own-admin-key' })
    expect((await openAccess(store).authenticate('my-own-admin-key')).name).toBe('first key')
    await store.close()
  })

  test('uses the organization that is there', async () => {
    const { store, organization } = await open()
    await ensureFirstKey(store)
    expect(await store.keys.page({ limit: 10 })).toMatchObject([{ organization }])
    expect(await store.organizations.list()).toHaveLength(1)
  })

  test.each(['with space', 'line\nbreak', 'ümlaut'])('refuses the secret %j, which no header can carry', (secret) => {
    expect(() => requireUsableSecret(secret)).toThrow(/^INFERENCE_ROUTER_ADMIN_KEY has characters/)
  })

  test('refuses a secret that is short enough to be guessed, and does not repeat it', () => {
    expect(() => requireUsableSecret('nineteen-characters')).toThrow(
      /^INFERENCE_ROUTER_ADMIN_KEY has 19 characters; use 20 or more, (?!.*nineteen)/,
    )
    for (const usable of [undefined, '', 'twenty-characters-ok']) requireUsableSecret(usable)
  })
})
