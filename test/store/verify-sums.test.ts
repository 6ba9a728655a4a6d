import { randomBytes } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type KeyRecord, keyState, type NewKey } from '../../src/store/keys.ts'
import { monthOf } from '../../src/store/ledger/sums.ts'
import { openStore } from '../../src/store/open.ts'
import type { Tables } from '../../src/store/tables.ts'
import { plainRecord } from './plain-record.ts'

async function emptyStore() {
  const store = await openStore('sqlite::memory:')
  onTestFinished(() => store.close())
  return store
}

function aKey(organization: string, changes: Partial<NewKey> = {}): NewKey {
  return {
    organization,
    hash: randomBytes(32),
    prefix: 'ir-abcde',
    name: 'laptop',
    permissions: { manage: 'none', completions: 'write' },
    createdBy: { id: 'someone', email: 'someone@example.com' },
    ...changes,
  }
}

describe('organizations', () => {
  test('are found by id and by name, and listed', async () => {
    const { organizations } = await emptyStore()
    const acme = await organizations.create('acme')
    const other = await organizations.create('other')
    expect(await organizations.find(acme.id)).toEqual(acme)
    expect(await organizations.findByName('other')).toEqual(other)
    expect(await organizations.list()).toEqual([acme, other])
    expect(await organizations.find('nobody')).toBeUndefined()
  })

  test('have names of their own', async () => {
    const { organizations } = await emptyStore()
    await organizations.create('acme')
    await expect(organizations.create('acme')).rejects.toThrow("There is already an organization named 'acme'.")
  })

  test('sum up credit and spend, exactly, beyond the precision of a float', async () => {
    const { organizations, ledger } = await emptyStore()
    const { id } = await organizations.create('acme')
    await organizations.credit(id, 9_007_199_254_740_993n, 'prepaid')
    expect((await organizations.credit(id, -1n)).creditNano).toBe(9_007_199_254_740_992n)
    const nanoUsd = Number.MAX_SAFE_INTEGER
    const cost = { nanoUsd, parts: {}, priceVersion: '' }
    const writer = ledger.openWriter()
    await writer.write([
      plainRecord({ organization: id, cost }),
      plainRecord({ organization: id, cost }),
      plainRecord({ organization: id }),
    ])
    expect((await organizations.find(id))?.spendNano).toBe(2n * BigInt(nanoUsd) + 1_000n)
  })

  test('must exist to be credited', async () => {
    await expect((await emptyStore()).organizations.credit('nobody', 1n)).rejects.toThrow(/FOREIGN KEY/)
  })
})

describe('keys', () => {
  test('come back as they were made', async () => {
    const { organizations, keys } = await emptyStore()
    const { id } = await organizations.create('acme')
    const facts = aKey(id, { labels: { team: 'a' }, monthlyLimitNano: 2n ** 60n, expiresAt: Date.UTC(2030, 0) })
    const made = await keys.create(facts)
    expect(made).toMatchObject({ ...facts, revokedAt: null })
    expect(made.id).toMatch(/^[0-9a-f-]{36}$/)
    expect(await keys.find(made.id)).toEqual(made)
    expect(await keys.findByHash(facts.hash)).toEqual(made)
    expect(await keys.findByHash(randomBytes(32))).toBeUndefined()
  })

  test('are unlimited and never expire by default', async () => {
    const { organizations, keys } = await emptyStore()
    const made = await keys.create(aKey((await organizations.create('acme')).id))
    expect(made).toMatchObject({ labels: {}, monthlyLimitNano: null, expiresAt: null })
  })

  test('are listed by organization', async () => {
    const { organizations, keys } = await emptyStore()
    const [acme, other] = [(await organizations.create('acme')).id, (await organizations.create('other')).id]
    expect(await keys.any()).toBe(false)
    const made = [await keys.create(aKey(acme)), await keys.create(aKey(other)), await keys.create(aKey(acme))]
    expect(await keys.any()).toBe(true)
    // Ids that were made in the same millisecond have no order.
    const inOrder = (all: readonly (KeyRecord | undefined)[]) => all.map((one) => one?.id).sort()
    expect(inOrder(await keys.page({ limit: 9 }))).toEqual(inOrder(made))
    const ofAcme = await keys.page({ organization: acme, limit: 9 })
    expect(inOrder(ofAcme)).toEqual(inOrder([made[0], made[2]]))
    expect(await keys.page({ organization: acme, limit: 1 })).toEqual(ofAcme.slice(0, 1))
    expect(await keys.page({ organization: acme, after: ofAcme[0]?.id ?? '', limit: 9 })).toEqual(ofAcme.slice(1))
  })

  test('are revoked once: the time of the first revocation stays', async () => {
    const { organizations, keys } = await emptyStore()
    const { id, hash } = await keys.create(aKey((await organizations.create('acme')).id))
    const changed: (Buffer | undefined)[] = []
    keys.onChange((hash) => changed.push(hash))
    const revoked = await keys.revoke(id)
    expect(revoked?.revokedAt).toBeTypeOf('number')
    expect(await keys.revoke(id)).toEqual(revoked)
    expect(await keys.revoke('nobody')).toBeUndefined()
    expect(changed).toEqual([hash, hash])
  })

  test('belong to an organization, have permissions that exist, and secrets of their own', async () => {
    const { organizations, keys } = await emptyStore()
    const { id } = await organizations.create('acme')
    await expect(keys.create(aKey('nobody'))).rejects.toThrow(/FOREIGN KEY/)
    const permissions = { manage: 'all', completions: 'write' } as never
    await expect(keys.create(aKey(id, { permissions }))).rejects.toThrow(/CHECK/)
    const hash = randomBytes(32)
    await keys.create(aKey(id, { hash }))
    await expect(keys.create(aKey(id, { hash }))).rejects.toThrow(/UNIQUE/)
  })

  test('have a state that follows from their times', () => {
    expect(keyState({ revokedAt: null, expiresAt: null }, 100)).toBe('active')
    expect(keyState({ revokedAt: null, expiresAt: 101 }, 100)).toBe('active')
    expect(keyState({ revokedAt: null, expiresAt: 100 }, 100)).toBe('expired')
    expect(keyState({ revokedAt: 50, expiresAt: 60 }, 100)).toBe('revoked')
  })
})

test('changes are made all or not at all', async () => {
  const store = await emptyStore()
  const change = async ({ organizations }: Tables) => {
    await organizations.create('acme')
    await organizations.create('acme')
  }
  await expect(store.atomically(change)).rejects.toThrow(/already/)
  expect(await store.organizations.list()).toEqual([])
})

test('a month is a calendar month in UTC', () => {
  expect(monthOf(Date.UTC(2026, 10, 30, 23, 59, 59, 999))).toBe('2026-11')
  expect(monthOf(Date.UTC(2026, 11, 1))).toBe('2026-12')
})
