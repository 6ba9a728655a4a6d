import { describe, expect, onTestFinished, test } from 'vitest'
import { openAccess } from '../../src/access/keys.ts'
import { openOrganizations } from '../../src/access/organizations.ts'
import { newSecret, storedSecret } from '../../src/access/secrets.ts'
import type { NewKey } from '../../src/store/keys.ts'
import { openStore } from '../../src/store/open.ts'
import { temporaryFile } from '../store/temporary.ts'

function open(url = 'sqlite::memory:') {
  const store = openStore(url)
  onTestFinished(() => store.close())
  const acme = (store.organizations.list()[0] ?? store.organizations.create('acme')).id
  return { store, acme }
}

describe('the rules of an organization', () => {
  test('are the same object as long as nothing has changed, also when they are reread', () => {
    const { store, acme } = open()
    let now = 0
    const { rulesOf } = openOrganizations(store, { now: () => now, rereadMs: 100 })
    const first = rulesOf(acme)
    now = 150
    expect(rulesOf(acme)).toBe(first)
    now = 0
    expect(rulesOf(acme)).toBe(first)
  })

  test('apply at once when this process changes them, after the commit', () => {
    const { store, acme } = open()
    const { rulesOf } = openOrganizations(store, { rereadMs: 1e9 })
    expect(rulesOf(acme).approvedModels).toBeNull()
    store.organizations.approveModels(acme, ['demo/*'])
    expect(rulesOf(acme).approvedModels).toEqual(['demo/*'])
    const failing = () =>
      store.atomically(() => {
        store.organizations.approveModels(acme, [])
        rulesOf(acme)
        throw new Error('no')
      })
    expect(failing).toThrow('no')
    expect(rulesOf(acme).approvedModels).toEqual(['demo/*'])
    store.atomically(() => {
      store.organizations.approveModels(acme, null)
      rulesOf(acme)
    })
    expect(rulesOf(acme).approvedModels).toBeNull()
  })

  test('that another process changes apply a moment later', () => {
    const file = `sqlite:${temporaryFile('router.sqlite')}`
    const [{ store, acme }, other] = [open(file), open(file)]
    let now = 0
    const { rulesOf } = openOrganizations(store, { now: () => now, rereadMs: 100 })
    rulesOf(acme)
    other.store.organizations.credit(acme, 7n)
    expect(rulesOf(acme).creditNano).toBe(0n)
    now = 100
    expect(rulesOf(acme)).toMatchObject({ creditNano: 7n, enforcesBalance: true })
  })

  test('that another process changes apply a moment later, also after the clock was set back', () => {
    const file = `sqlite:${temporaryFile('router.sqlite')}`
    const [{ store, acme }, other] = [open(file), open(file)]
    let now = 10_000
    const { rulesOf } = openOrganizations(store, { now: () => now, rereadMs: 100 })
    const first = rulesOf(acme)
    now = 5_000
    expect(rulesOf(acme)).toBe(first)
    other.store.organizations.credit(acme, 7n)
    now = 5_100
    expect(rulesOf(acme)).toMatchObject({ creditNano: 7n })
  })

  test('are not there for an organization that is not', () => {
    const { store } = open()
    expect(() => openOrganizations(store).rulesOf('nobody')).toThrow('nobody')
  })
})

describe('a key that is known', () => {
  const facts = { name: 'laptop', permissions: { manage: 'none', completions: 'write' } } as const
  const key = (organization: string, changes: Partial<NewKey> = {}): NewKey => ({
    ...facts,
    ...storedSecret(newSecret()),
    organization,
    createdBy: { id: 'test', email: '' },
    ...changes,
  })

  test('loses its old secret, its group and its life at once', () => {
    const { store, acme } = open()
    const access = openAccess(store, { rereadMs: 1e9 })
    const secret = newSecret()
    const group = store.groups.create({ organization: acme, name: 'team' })
    const { id } = store.keys.create(key(acme, { ...storedSecret(secret), groupId: group.id }))
    expect(access.authenticate(secret).groupId).toBe(group.id)
    store.groups.remove(group.id)
    expect(access.authenticate(secret).groupId).toBeNull()
    const next = newSecret()
    store.keys.rotate(id, storedSecret(next))
    expect(() => access.authenticate(secret)).toThrow('unknown')
    expect(access.authenticate(next).id).toBe(id)
    store.keys.remove(id)
    expect(() => access.authenticate(next)).toThrow('revoked')
  })

  test('is the same object when it is reread unchanged', () => {
    const { store, acme } = open()
    let now = 0
    const access = openAccess(store, { now: () => now, rereadMs: 100 })
    const secret = newSecret()
    const { id } = store.keys.create(key(acme, { ...storedSecret(secret), accessList: ['demo/*'] }))
    const first = access.identify(secret)
    now = 100
    expect(access.identify(secret)).toBe(first)
    store.keys.update(id, { accessList: null })
    expect(access.identify(secret).accessList).toBeNull()
  })
})
