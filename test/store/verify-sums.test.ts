import { randomBytes } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type KeyRecord, keyState, type NewKey } from '../../src/store/keys.ts'
import { monthOf } from '../../src/store/ledger/sums.ts'
import { openStore } from '../../src/store/open.ts'
import { plainRecord } from './plain-record.ts'

function emptyStore() {
  const store = openStore('sqlite::memory:')
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
  test('are found by id and by name, and listed', () => {
    const { organizations } = emptyStore()
    const acme = organizations.create('acme')
    const other = organizations.create('other')
    expect(organizations.find(acme.id)).toEqual(acme)
    expect(organizations.findByName('other')).toEqual(other)
    expect(organizations.list()).toEqual([acme, other])
    expect(organizations.find('nobody')).toBeUndefined()
  })

  test('have names of their own', () => {
    const { organizations } = emptyStore()
    organizations.create('acme')
    expect(() => organizations.create('acme')).toThrow("There is already an organization named 'acme'.")
  })

  test('sum up credit and spend, exactly, beyond the precision of a float', async () => {
    const { organizations, ledger } = emptyStore()
    const { id } = organizations.create('acme')
    organizations.credit(id, 9_007_199_254_740_993n, 'prepaid')
    expect(organizations.credit(id, -1n).creditNano).toBe(9_007_199_254_740_992n)
    const nanoUsd = Number.MAX_SAFE_INTEGER
    const cost = { nanoUsd, parts: {}, priceVersion: '' }
    const writer = ledger.openWriter()
    await writer.write([
      plainRecord({ organization: id, cost }),
      plainRecord({ organization: id, cost }),
      plainRecord({ organization: id }),
    ])
    expect(organizations.find(id)?.spendNano).toBe(2n * BigInt(nanoUsd) + 1_000n)
  })

  test('must exist to be credited', () => {
    expect(() => emptyStore().organizations.credit('nobody', 1n)).toThrow(/FOREIGN KEY/)
  })
})

describe('keys', () => {
  test('come back as they were made', () => {
    const { organizations, keys } = emptyStore()
    const { id } = organizations.create('acme')
    const facts = aKey(id, { labels: { team: 'a' }, monthlyLimitNano: 2n ** 60n, expiresAt: Date.UTC(2030, 0) })
    const made = keys.create(facts)
    expect(made).toMatchObject({ ...facts, revokedAt: null })
    expect(made.id).toMatch(/^[0-9a-f-]{36}$/)
    expect(keys.find(made.id)).toEqual(made)
    expect(keys.findByHash(facts.hash)).toEqual(made)
    expect(keys.findByHash(randomBytes(32))).toBeUndefined()
  })

  test('are unlimited and never expire by default', () => {
    const { organizations, keys } = emptyStore()
    const made = keys.create(aKey(organizations.create('acme').id))
    expect(made).toMatchObject({ labels: {}, monthlyLimitNano: null, expiresAt: null })
  })

  test('are listed by organization', () => {
    const { organizations, keys } = emptyStore()
    const [acme, other] = [organizations.create('acme').id, organizations.create('other').id]
    expect(keys.any()).toBe(false)
    const made = [keys.create(aKey(acme)), keys.create(aKey(other)), keys.create(aKey(acme))]
    expect(keys.any()).toBe(true)
    // Ids that were made in the same millisecond have no order.
    const inOrder = (all: readonly (KeyRecord | undefined)[]) => all.map((one) => one?.id).sort()
    expect(inOrder(keys.page({ limit: 9 }))).toEqual(inOrder(made))
    const ofAcme = keys.page({ organization: acme, limit: 9 })
    expect(inOrder(ofAcme)).toEqual(inOrder([made[0], made[2]]))
    expect(keys.page({ organization: acme, limit: 1 })).toEqual(ofAcme.slice(0, 1))
    expect(keys.page({ organization: acme, after: ofAcme[0]?.id ?? '', limit: 9 })).toEqual(ofAcme.slice(1))
  })

  test('are revoked once: the time of the first revocation stays', () => {
    const { organizations, keys } = emptyStore()
    const { id, hash } = keys.create(aKey(organizations.create('acme').id))
    const changed: (Buffer | undefined)[] = []
    keys.onChange((hash) => changed.push(hash))
    const revoked = keys.revoke(id)
    expect(revoked?.revokedAt).toBeTypeOf('number')
    expect(keys.revoke(id)).toEqual(revoked)
    expect(keys.revoke('nobody')).toBeUndefined()
    expect(changed).toEqual([hash, hash])
  })

  test('belong to an organization, have permissions that exist, and secrets of their own', () => {
    const { organizations, keys } = emptyStore()
    const { id } = organizations.create('acme')
    expect(() => keys.create(aKey('nobody'))).toThrow(/FOREIGN KEY/)
    const permissions = { manage: 'all', completions: 'write' } as never
    expect(() => keys.create(aKey(id, { permissions }))).toThrow(/CHECK/)
    const hash = randomBytes(32)
    keys.create(aKey(id, { hash }))
    expect(() => keys.create(aKey(id, { hash }))).toThrow(/UNIQUE/)
  })

  test('have a state that follows from their times', () => {
    expect(keyState({ revokedAt: null, expiresAt: null }, 100)).toBe('active')
    expect(keyState({ revokedAt: null, expiresAt: 101 }, 100)).toBe('active')
    expect(keyState({ revokedAt: null, expiresAt: 100 }, 100)).toBe('expired')
    expect(keyState({ revokedAt: 50, expiresAt: 60 }, 100)).toBe('revoked')
  })
})

test('changes are made all or not at all', () => {
  const store = emptyStore()
  const change = () => {
    store.organizations.create('acme')
    store.organizations.create('acme')
  }
  expect(() => store.atomically(change)).toThrow(/already/)
  expect(store.organizations.list()).toEqual([])
})

test('a month is a calendar month in UTC', () => {
  expect(monthOf(Date.UTC(2026, 10, 30, 23, 59, 59, 999))).toBe('2026-11')
  expect(monthOf(Date.UTC(2026, 11, 1))).toBe('2026-12')
})
