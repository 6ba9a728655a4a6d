import { randomBytes } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { AuditEntry } from '../../src/store/audit.ts'
import { keyState, type NewKey } from '../../src/store/keys.ts'
import { openStore } from '../../src/store/open.ts'
import { connect } from '../../src/store/sqlite/connection.ts'
import { migrate, migrations } from '../../src/store/sqlite/schema/migrations.ts'
import { NameTaken } from '../../src/store/store-error.ts'
import { temporaryFile } from './temporary.ts'

async function open(url = 'sqlite::memory:') {
  const store = await openStore(url)
  onTestFinished(() => store.close())
  const acme = (await store.organizations.create('acme')).id
  const aKey = (facts: Partial<NewKey> = {}) =>
    store.keys.create({
      organization: acme,
      hash: randomBytes(32),
      prefix: 'ir-abcde',
      name: 'laptop',
      permissions: { manage: 'none', completions: 'write' },
      createdBy: { id: 'someone', email: '' },
      ...facts,
    })
  return { store, acme, aKey }
}

const limits = { requestsPerMinute: 60, tokensPerMinute: 1_000_000, concurrentCalls: 5 }
const unlimited = { requestsPerMinute: null, tokensPerMinute: null, concurrentCalls: null }

describe('a key', () => {
  test('has limits, an access list and a group, or none of them', async () => {
    const { store, acme, aKey } = await open()
    const group = await store.groups.create({ organization: acme, name: 'team' })
    const facts = { limits, accessList: ['demo/*', 'best'], groupId: group.id }
    expect(await store.keys.find((await aKey(facts)).id)).toMatchObject(facts)
    expect(await aKey()).toMatchObject({ limits: unlimited, accessList: null, groupId: null, deletedAt: null })
  })

  test('changes the given properties only', async () => {
    const { store, aKey } = await open()
    const made = await aKey({ labels: { team: 'a' }, monthlyLimitNano: 5n })
    expect(await store.keys.update(made.id, { limits })).toEqual({ ...made, limits })
    const expiresAt = Date.UTC(2030, 0)
    const rest = { name: 'desk', labels: {}, monthlyLimitNano: null, accessList: [], expiresAt }
    expect(await store.keys.update(made.id, rest)).toEqual({ ...made, limits, ...rest })
    expect(await store.keys.update(made.id, {})).toEqual({ ...made, limits, ...rest })
    expect(await store.keys.update('nobody', { name: 'x' })).toBeUndefined()
  })

  test('that gets another secret is not known by the old one', async () => {
    const { store, aKey } = await open()
    const made = await aKey()
    const secret = { hash: randomBytes(32), prefix: 'ir-other' }
    expect(await store.keys.rotate(made.id, secret)).toEqual({ ...made, ...secret })
    expect(await store.keys.findByHash(made.hash)).toBeUndefined()
    expect((await store.keys.findByHash(secret.hash))?.id).toBe(made.id)
    expect(await store.keys.rotate('nobody', secret)).toBeUndefined()
  })

  test('that is removed is nowhere but behind its secret, where it is revoked', async () => {
    const { store, acme, aKey } = await open()
    const [kept, made] = [await aKey(), await aKey()]
    expect(await store.keys.remove(made.id)).toEqual(made)
    expect(await store.keys.find(made.id)).toBeUndefined()
    expect(await store.keys.page({ organization: acme, limit: 9 })).toEqual([kept])
    expect(await store.keys.page({ limit: 9 })).toEqual([kept])
    const left = await store.keys.findByHash(made.hash)
    expect(left && keyState(left, Date.now())).toBe('revoked')
    expect(await store.keys.remove(made.id)).toBeUndefined()
    expect(await store.keys.update(made.id, { name: 'x' })).toBeUndefined()
    expect(await store.keys.rotate(made.id, { hash: randomBytes(32), prefix: '' })).toBeUndefined()
    await store.keys.remove(kept.id)
    expect(await store.keys.any()).toBe(true)
  })

  test.each(['manage', 'operate'] as const)(
    'that may change what %s has counts for another one while it is active',
    async (area) => {
      const { store, aKey } = await open()
      const { id, organization } = await aKey({ permissions: { [area]: 'write' } })
      const now = 1_000_000
      const another = (at = now) => store.keys.anotherMay(area, { id, organization }, at)
      expect(await another()).toBe(false)
      const elsewhere = (await store.organizations.create('elsewhere')).id
      await aKey({ organization: elsewhere, permissions: { [area]: 'write' } })
      await aKey({ permissions: { [area]: 'read' } })
      await aKey({ permissions: { [area === 'manage' ? 'operate' : 'manage']: 'write' } })
      expect(await another()).toBe(false)
      const other = await aKey({ permissions: { [area]: 'write' }, expiresAt: now })
      expect([await another(now - 1), await another(now), await another(now + 1)]).toEqual([true, false, false])
      await store.keys.update(other.id, { expiresAt: null })
      expect(await another()).toBe(true)
      await store.keys.revoke(other.id)
      expect(await another()).toBe(false)
      const last = await aKey({ permissions: { [area]: 'write' } })
      expect(await another()).toBe(true)
      await store.keys.remove(last.id)
      expect(await another()).toBe(false)
    },
  )

  test('notifies caches with its hash, after the commit', async () => {
    const { store, aKey } = await open()
    const made = await aKey()
    const notified: (Buffer | undefined)[] = []
    store.keys.onChange((hash) => notified.push(hash))
    await store.keys.update(made.id, { name: 'x' })
    expect(notified).toEqual([made.hash])
    await store.atomically(async (tx) => {
      await tx.keys.revoke(made.id)
      await tx.atomically((inner) => inner.keys.rotate(made.id, { hash: randomBytes(32), prefix: 'p' }))
      expect(notified).toHaveLength(1)
    })
    expect(notified).toEqual([made.hash, made.hash, made.hash])
    const failing = () =>
      store.atomically(async (tx) => {
        await tx.keys.update(made.id, { name: 'y' })
        throw new Error('no')
      })
    await expect(failing()).rejects.toThrow('no')
    expect((await store.keys.find(made.id))?.name).toBe('x')
    // A state that was read meanwhile never existed.
    expect(notified).toHaveLength(4)
  })
})

describe('groups', () => {
  test('have names of their own in an organization, and pages', async () => {
    const { store, acme } = await open()
    const { groups } = store
    const other = (await store.organizations.create('other')).id
    const made = await Promise.all(
      ['a', 'b', 'c'].map((name) => groups.create({ organization: acme, name, monthlyLimitNano: 7n })),
    )
    await groups.create({ organization: other, name: 'a' })
    await expect(groups.create({ organization: acme, name: 'b' })).rejects.toThrow(NameTaken)
    const all = await groups.page({ organization: acme, limit: 9 })
    expect(all.map(({ name }) => name).toSorted()).toEqual(['a', 'b', 'c'])
    expect(await groups.page({ organization: acme, after: all[0]?.id ?? '', limit: 1 })).toEqual([all[1]])
    expect(await groups.find(made[0]?.id ?? '')).toEqual(made[0])
    expect(await groups.findByName(acme, 'c')).toEqual(made[2])
    expect(await groups.findByName(other, 'c')).toBeUndefined()
    expect(await groups.setLimit(made[0]?.id ?? '', null)).toEqual({ ...made[0], monthlyLimitNano: null })
    expect(await groups.setLimit('nobody', null)).toBeUndefined()
  })

  test('leave their keys when they end', async () => {
    const { store, acme, aKey } = await open()
    const group = await store.groups.create({ organization: acme, name: 'team' })
    const key = await aKey({ groupId: group.id })
    const notified: unknown[] = []
    store.keys.onChange((hash) => notified.push(hash))
    expect(await store.groups.remove(group.id)).toEqual(group)
    expect(await store.groups.remove(group.id)).toBeUndefined()
    expect(await store.groups.find(group.id)).toBeUndefined()
    expect(await store.keys.find(key.id)).toEqual({ ...key, groupId: null })
    expect(notified).toEqual([undefined])
  })
})

describe('the rules of an organization', () => {
  test('limit nothing at first', async () => {
    const { store, acme } = await open()
    expect(await store.organizations.rules(acme)).toEqual({
      id: acme,
      name: 'acme',
      limits: unlimited,
      creditNano: 0n,
      enforcesBalance: false,
      approvedModels: null,
      dataRules: {},
      plugins: {},
      retention: { stores: true, days: 30 },
      aliases: new Map(),
      policies: new Map(),
      groupLimits: new Map(),
      groupNames: new Map(),
    })
    expect(await store.organizations.rules('nobody')).toBeUndefined()
  })

  test('are stored, and each change notifies the caches', async () => {
    const { store, acme } = await open()
    const notified: string[] = []
    store.organizations.onChange((id) => notified.push(id))
    const policy = { id: 'best', description: 'd', targets: ['demo/echo', 'one/m'] }
    const changes: (() => unknown)[] = [
      () => store.organizations.setLimits(acme, limits),
      () => store.organizations.approveModels(acme, ['demo/*']),
      () => store.organizations.setDataRules(acme, { geolocation: ['eu'], data_retention: false }),
      () => store.organizations.setPlugins(acme, { mask: false }),
      () => store.organizations.setRetention(acme, { days: 7 }),
      () => store.organizations.credit(acme, 5n),
      () => store.names.setAlias(acme, { name: 'fast', target: 'demo/slow' }),
      () => store.names.setAlias(acme, { name: 'fast', target: 'demo/echo' }),
      () => store.names.setPolicy(acme, policy),
    ]
    for (const [index, change] of changes.entries()) {
      await change()
      expect(notified).toHaveLength(index + 1)
    }
    const group = await store.groups.create({ organization: acme, name: 'g', monthlyLimitNano: 9n })
    const free = await store.groups.create({ organization: acme, name: 'free' })
    expect(await store.organizations.rules(acme)).toEqual({
      id: acme,
      name: 'acme',
      limits,
      creditNano: 5n,
      enforcesBalance: true,
      approvedModels: ['demo/*'],
      dataRules: { geolocation: ['eu'], data_retention: false },
      plugins: { mask: false },
      retention: { stores: true, days: 7 },
      aliases: new Map([['fast', 'demo/echo']]),
      policies: new Map([['best', policy]]),
      groupLimits: new Map([[group.id, { name: 'g', limitNano: 9n }]]),
      groupNames: new Map([
        [group.id, 'g'],
        [free.id, 'free'],
      ]),
    })
    await store.organizations.approveModels(acme, null)
    await store.names.removeAlias(acme, 'fast')
    await store.names.removePolicy(acme, 'best')
    expect(await store.organizations.rules(acme)).toMatchObject({
      approvedModels: null,
      aliases: new Map(),
      policies: new Map(),
    })
    expect(new Set(notified)).toEqual(new Set([acme]))
  })

  test('make the balance a limit with the first credit only', async () => {
    const { store, acme } = await open()
    const enforced = async () => (await store.organizations.rules(acme))?.enforcesBalance
    await store.organizations.credit(acme, -1n)
    expect(await enforced()).toBe(false)
    await store.organizations.credit(acme, 1n)
    expect(await enforced()).toBe(true)
    await store.organizations.enforceBalance(acme, false)
    await store.organizations.credit(acme, 1n)
    expect(await enforced()).toBe(false)
  })
})

describe('aliases and policies', () => {
  test('are found, listed in pages by name, and belong to their organization', async () => {
    const { store, acme } = await open()
    const { names } = store
    const other = (await store.organizations.create('other')).id
    for (const name of ['c', 'a', 'b']) {
      await names.setAlias(acme, { name, target: `demo/${name}` })
      await names.setPolicy(acme, { id: name, description: '', targets: [`demo/${name}`] })
    }
    expect(await names.alias(acme, 'a')).toEqual({ name: 'a', target: 'demo/a' })
    expect(await names.alias(other, 'a')).toBeUndefined()
    expect(await names.aliases({ organization: acme, after: 'a', limit: 1 })).toEqual([{ name: 'b', target: 'demo/b' }])
    expect((await names.aliases({ organization: acme, limit: 9 })).map(({ name }) => name)).toEqual(['a', 'b', 'c'])
    expect(await names.policy(acme, 'b')).toEqual({ id: 'b', description: '', targets: ['demo/b'] })
    const ruled = { id: 'b', description: '', targets: [{ target: 'demo/b', weight: 2 }], first_event: '2s' }
    await names.setPolicy(acme, ruled)
    expect(await names.policy(acme, 'b')).toEqual(ruled)
    expect((await store.organizations.rules(acme))?.policies.get('b')).toEqual({
      id: 'b',
      description: '',
      targets: ['demo/b'],
      weights: { 'demo/b': 2 },
      routing: { firstEventMs: 2_000 },
    })
    expect((await names.policies({ organization: acme, limit: 2 })).map(({ id }) => id)).toEqual(['a', 'b'])
    expect(await names.policies({ organization: other, limit: 2 })).toEqual([])
    expect([
      await names.removeAlias(other, 'a'),
      await names.removeAlias(acme, 'a'),
      await names.removeAlias(acme, 'a'),
    ]).toEqual([false, true, false])
    expect([await names.removePolicy(acme, 'b'), await names.removePolicy(acme, 'b')]).toEqual([true, false])
    await expect(names.setAlias('nobody', { name: 'a', target: 'x/y' })).rejects.toThrow(/FOREIGN KEY/)
  })
})

test('an older database: of its keys only the one of the first start may operate, and none may read content', async () => {
  const file = temporaryFile('router.sqlite')
  const db = connect(file)
  migrate(db, migrations.slice(0, 4))
  db.exec(`INSERT INTO organizations (id, name, created_at) VALUES ('o', 'default', 1)`)
  const insert = db.prepare(`
    INSERT INTO api_keys (id, organization, hash, prefix, name, manage, completions, labels, created_by_id, created_by_email, created_at)
    VALUES (?, 'o', ?, 'ir-', 'a key', ?, 'write', '{}', ?, '', 1)`)
  insert.run('first', randomBytes(32), 'write', 'first-start')
  insert.run('manager', randomBytes(32), 'write', 'first')
  insert.run('of the command line', randomBytes(32), 'write', 'cli')
  insert.run('plain', randomBytes(32), 'none', 'manager')
  db.close()
  const store = await openStore(`sqlite:${file}`)
  onTestFinished(() => store.close())
  const operating = (await store.keys.page({ limit: 9 })).map(({ id, permissions }) => [id, permissions.operate])
  expect(Object.fromEntries(operating)).toEqual({
    first: 'write',
    manager: 'none',
    'of the command line': 'none',
    plain: 'none',
  })
  const readers = (await store.keys.page({ limit: 9 })).filter(({ permissions }) => permissions.content !== undefined)
  expect(readers).toEqual([])
  await store.keys.update('plain', {
    permissions: { manage: 'none', completions: 'write', operate: 'none', content: 'write' },
  })
  expect((await store.keys.find('plain'))?.permissions).toMatchObject({ content: 'write' })
})

describe('the log of changes', () => {
  test('has the newest first, in pages, each organization its own', async () => {
    const { store, acme } = await open()
    const other = (await store.organizations.create('other')).id
    const note = (subject: string, organization = acme) =>
      store.audit.append({ organization, actor: 'cli', action: 'key.update', subject, before: { a: 1 } })
    const made: AuditEntry[] = []
    for (let index = 0; index < 5; index++) made.push(await note(String(index)))
    await note('elsewhere', other)
    const page = (after?: string) => store.audit.page({ organization: acme, limit: 2, ...(after && { after }) })
    expect(await page()).toEqual([made[4], made[3]])
    expect(await page(made[3]?.id)).toEqual([made[2], made[1]])
    expect(await page(made[1]?.id)).toEqual([made[0]])
    expect(await page(made[0]?.id)).toEqual([])
    expect(await store.audit.page({ organization: other, after: made[4]?.id ?? '', limit: 2 })).toEqual([])
    expect(made[0]).toMatchObject({ before: { a: 1 }, after: null, at: expect.any(Number) })
  })

  test('has no entry of a change that was not made, and none is missing of one that was', async () => {
    const { store, acme, aKey } = await open()
    const key = await aKey()
    const change = (fails: boolean) =>
      store.atomically(async (tx) => {
        await tx.keys.update(key.id, { name: 'new' })
        await tx.audit.append({ organization: acme, actor: 'cli', action: 'key.update', subject: key.id })
        if (fails) throw new Error('no')
      })
    await expect(change(true)).rejects.toThrow('no')
    expect(await store.audit.page({ organization: acme, limit: 9 })).toEqual([])
    await change(false)
    expect(await store.audit.page({ organization: acme, limit: 9 })).toHaveLength(1)
  })
})

test('a million keys are found and listed by indexes, never by reading all', async () => {
  const file = temporaryFile('router.sqlite')
  const { acme, aKey } = await open(`sqlite:${file}`)
  const { id } = await aKey()
  const db = connect(file)
  onTestFinished(() => {
    db.close()
  })
  const plans: string[] = []
  const prepare = db.prepare.bind(db)
  const plan = (sql: string, ...bound: unknown[]) =>
    plans.push(
      ...(prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...bound) as { detail: string }[]).map(({ detail }) => detail),
    )
  plan('SELECT * FROM api_keys WHERE hash = ?', randomBytes(32))
  plan('SELECT * FROM api_keys WHERE id = ? AND deleted_at IS NULL', id)
  plan('SELECT * FROM api_keys WHERE id > ? AND deleted_at IS NULL ORDER BY id LIMIT ?', '', 10)
  plan(
    'SELECT * FROM api_keys WHERE organization = ? AND id > ? AND deleted_at IS NULL ORDER BY id LIMIT ?',
    acme,
    '',
    10,
  )
  plan('UPDATE api_keys SET group_id = NULL WHERE group_id = ?', 'g')
  plan("SELECT 1 FROM api_keys WHERE organization = ? AND id <> ? AND manage = 'write' LIMIT 1", acme, id)
  plan('SELECT * FROM groups WHERE organization = ? AND id > ? ORDER BY id LIMIT ?', acme, '', 10)
  plan('SELECT * FROM audit WHERE organization = ? AND rowid < ? ORDER BY rowid DESC LIMIT ?', acme, 1, 10)
  plan('SELECT * FROM aliases WHERE organization = ? AND name > ? ORDER BY name LIMIT ?', acme, '', 10)
  expect(plans).toHaveLength(9)
  for (const detail of plans) expect(detail).toMatch(/^SEARCH .* USING (COVERING )?(INDEX|PRIMARY KEY)/)
})

test('a database from before has everything that is new: balances that were credited are enforced, and usage is summed', async () => {
  const file = temporaryFile('router.sqlite')
  const before = connect(file)
  migrate(before, migrations.slice(0, 3))
  before.exec(`
    INSERT INTO organizations (id, name, created_at) VALUES ('o', 'acme', 1), ('p', 'poor', 1);
    INSERT INTO credits VALUES ('c', 'o', 5, '', 1);
    INSERT INTO api_keys (id, organization, hash, prefix, name, manage, completions, labels, created_by_id,
      created_by_email, created_at) VALUES ('k', 'o', zeroblob(32), 'p', 'n', 'none', 'write', '{}', 'x', '', 1);
    INSERT INTO ledger (id, at, organization, key, api, operation, requested, provider, model, stream, outcome, status,
      attempts, duration_ms, cost_nano, cost_parts, price_version, unpriced, estimated, input, cache_read, output, dropped)
    VALUES ('1', 3600001, 'o', 'k', 'chat', 'chat', 'a/m', 'a', 'm', 0, 'complete', 200, 1, 1, 7, '{}', '', 0, 0, 10, 2, 3, '[]'),
      ('2', 7199999, 'o', 'k', 'chat', 'chat', 'a/m', 'a', 'm', 0, 'complete', 200, 1, 1, 8, '{}', '', 0, 0, 1, NULL, NULL, '[]')`)
  before.close()
  const store = await openStore(`sqlite:${file}`)
  onTestFinished(() => store.close())
  expect(await store.organizations.rules('o')).toMatchObject({
    enforcesBalance: true,
    creditNano: 5n,
    approvedModels: null,
  })
  expect(await store.organizations.rules('p')).toMatchObject({ enforcesBalance: false, dataRules: {} })
  expect(await store.keys.find('k')).toMatchObject({ groupId: null, accessList: null, limits: unlimited })
  const db = connect(file)
  onTestFinished(() => {
    db.close()
  })
  for (const table of ['key_usage', 'organization_usage']) {
    expect(db.prepare(`SELECT hour, requests, nano, input_tokens, output_tokens FROM ${table}`).all()).toEqual([
      { hour: 1, requests: 2, nano: 15, input_tokens: 13, output_tokens: 3 },
    ])
  }
})
