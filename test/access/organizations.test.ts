import { describe, expect, onTestFinished, test } from 'vitest'
import { openAccess } from '../../src/access/keys.ts'
import { openOrganizations } from '../../src/access/organizations.ts'
import { newSecret, storedSecret } from '../../src/access/secrets.ts'
import type { NewKey } from '../../src/store/keys.ts'
import { openStore } from '../../src/store/open.ts'
import { temporaryFile } from '../store/temporary.ts'

async function open(url = 'sqlite::memory:') {
  const store = await openStore(url)
  onTestFinished(() => store.close())
  const acme = ((await store.organizations.list())[0] ?? (await store.organizations.create('acme'))).id
  return { store, acme }
}

describe('the rules of an organization', () => {
  test('are the same object as long as nothing has changed, also when they are reread', async () => {
    const { store, acme } = await open()
    let now = 0
    const { rulesOf } = openOrganizations(store, { now: () => now, rereadMs: 100 })
    const first = await rulesOf(acme)
    now = 150
    expect(await rulesOf(acme)).toBe(first)
    now = 0
    expect(await rulesOf(acme)).toBe(first)
  })

  test('apply at once when this process changes them, after the commit', async () => {
    const { store, acme } = await open()
    const { rulesOf } = openOrganizations(store, { rereadMs: 1e9 })
    expect((await rulesOf(acme)).approvedModels).toBeNull()
    await store.organizations.approveModels(acme, ['demo/*'])
    expect((await rulesOf(acme)).approvedModels).toEqual(['demo/*'])
    const failing = () =>
      store.atomically(async (tx) => {
        await tx.organizations.approveModels(acme, [])
        throw new Error('no')
      })
    const failed = failing()
    // Asked while the change is made, and answered after it.
    const during = rulesOf(acme)
    await expect(failed).rejects.toThrow('no')
    expect((await during).approvedModels).toEqual(['demo/*'])
    expect((await rulesOf(acme)).approvedModels).toEqual(['demo/*'])
    const changing = store.atomically((tx) => tx.organizations.approveModels(acme, null))
    void rulesOf(acme)
    await changing
    expect((await rulesOf(acme)).approvedModels).toBeNull()
  })

  test('that another process changes apply a moment later', async () => {
    const file = `sqlite:${temporaryFile('router.sqlite')}`
    const [{ store, acme }, other] = [await open(file), await open(file)]
    let now = 0
    const { rulesOf } = openOrganizations(store, { now: () => now, rereadMs: 100 })
    await rulesOf(acme)
    await other.store.organizations.credit(acme, 7n)
    expect((await rulesOf(acme)).creditNano).toBe(0n)
    now = 100
    expect(await rulesOf(acme)).toMatchObject({ creditNano: 7n, enforcesBalance: true })
  })

  test('that another process changes apply a moment later, also after the clock was set back', async () => {
    const file = `sqlite:${temporaryFile('router.sqlite')}`
    const [{ store, acme }, other] = [await open(file), await open(file)]
    let now = 10_000
    const { rulesOf } = openOrganizations(store, { now: () => now, rereadMs: 100 })
    const first = await rulesOf(acme)
    now = 5_000
    expect(await rulesOf(acme)).toBe(first)
    await other.store.organizations.credit(acme, 7n)
    now = 5_100
    expect(await rulesOf(acme)).toMatchObject({ creditNano: 7n })
  })

  test('are not there for an organization that is not', async () => {
    const { store } = await open()
    await expect(openOrganizations(store).rulesOf('nobody')).rejects.toThrow('nobody')
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

  test('loses its old secret, its group and its life at once', async () => {
    const { store, acme } = await open()
    const access = openAccess(store, { rereadMs: 1e9 })
    const secret = newSecret()
    const group = await store.groups.create({ organization: acme, name: 'team' })
    const { id } = await store.keys.create(key(acme, { ...storedSecret(secret), groupId: group.id }))
    expect((await access.authenticate(secret)).groupId).toBe(group.id)
    await store.groups.remove(group.id)
    expect((await access.authenticate(secret)).groupId).toBeNull()
    const next = newSecret()
    await store.keys.rotate(id, storedSecret(next))
    await expect(access.authenticate(secret)).rejects.toThrow('unknown')
    expect((await access.authenticate(next)).id).toBe(id)
    await store.keys.remove(id)
    await expect(access.authenticate(next)).rejects.toThrow('revoked')
  })

  test('is the same object when it is reread unchanged', async () => {
    const { store, acme } = await open()
    let now = 0
    const access = openAccess(store, { now: () => now, rereadMs: 100 })
    const secret = newSecret()
    const { id } = await store.keys.create(key(acme, { ...storedSecret(secret), accessList: ['demo/*'] }))
    const first = await access.identify(secret)
    now = 100
    expect(await access.identify(secret)).toBe(first)
    await store.keys.update(id, { accessList: null })
    expect((await access.identify(secret)).accessList).toBeNull()
  })
})
