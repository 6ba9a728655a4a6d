import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { openAccess } from '../../src/access/keys.ts'
import * as key from '../../src/cli/key.ts'
import * as org from '../../src/cli/org.ts'
import { openStore } from '../../src/store/open.ts'
import { plainRecord } from '../store/plain-record.ts'
import { administration } from './administration.ts'

type Made = { id: string; api_key: string; organization: string }

describe('key', () => {
  test('makes a key that works; its secret is printed once and is not in the file', async () => {
    const { url, runCommand } = administration()
    await runCommand(org, 'create', 'acme')
    const made = await runCommand(key, 'create', 'laptop')
    const secret = /^ {2}(ir-\S+)$/m.exec(made.stdout)?.[1] ?? ''
    expect(made.code).toBe(0)
    expect(made.stdout.split(secret)).toHaveLength(2)
    const store = await openStore(url)
    expect(await openAccess(store).authenticate(secret)).toMatchObject({
      name: 'laptop',
      permissions: { manage: 'none' },
    })
    await store.close()
    for (const file of ['', '-wal']) expect(readable(url, file)).not.toContain(secret)
    for (const args of [['list'], ['list', '--json']])
      expect((await runCommand(key, ...args)).stdout).not.toContain(secret)
  })

  test('takes everything a key may have', async () => {
    const { url, runCommand } = administration()
    await runCommand(org, 'create', 'acme')
    await runCommand(org, 'create', 'other')
    const facts = [
      '--manage',
      'read',
      '--completions',
      'none',
      '--operate',
      'write',
      '--monthly-limit',
      '20',
      '--expires',
      '2999-01-31T00:00:00Z',
    ]
    const labels = ['--label', 'team=a', '--label', 'note=x=y']
    const limits = ['--requests-per-minute', '60', '--tokens-per-minute', '0', '--concurrent', '5']
    const store = await openStore(url)
    const other = (await store.organizations.findByName('other'))?.id ?? ''
    const group = await store.groups.create({ organization: other, name: 'team' })
    await store.names.setAlias(other, { name: 'best', target: 'demo/echo' })
    await store.close()
    const rest = ['--models', 'demo/*', '--models', 'best', '--group', 'team']
    const made = await runCommand(
      key,
      'create',
      '--name',
      'ci',
      '--org',
      'other',
      ...facts,
      ...labels,
      ...limits,
      ...rest,
      '--json',
    )
    const { api_key, ...record } = made.json() as Made
    expect(api_key).toMatch(/^ir-/)
    expect(record).toEqual({
      api_key_id: record.id,
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'ci',
      monthly_limit: 20,
      monthly_spend: 0,
      permissions: { manage: 'read', completions: 'none', operate: 'write' },
      labels: { team: 'a', note: 'x=y' },
      limits: { requests_per_minute: 60, tokens_per_minute: null, concurrent_calls: 5 },
      plugins: {},
      models: ['demo/*', 'best'],
      group: group.id,
      created_by: { id: 'cli', email: '' },
      organization: expect.any(String),
      prefix: api_key.slice(0, 8),
      state: 'active',
      created_at: expect.any(String),
      expires_at: '2999-01-31T00:00:00.000Z',
      revoked_at: null,
    })
  })

  test('lists keys with their spend of this month, all or those of one organization', async () => {
    const { url, runCommand } = administration()
    for (const name of ['acme', 'other']) await runCommand(org, 'create', name)
    const made = (await runCommand(key, 'create', 'laptop', '--org', 'acme', '--json')).json() as Made
    await runCommand(key, 'create', 'phone', '--org', 'other')
    const store = await openStore(url)
    const writer = store.ledger.openWriter()
    await writer.write([plainRecord({ key: made.id, at: Date.now() })])
    await writer.close()
    await store.close()
    const all = (await runCommand(key, 'list', '--json')).json() as { keys: unknown[] }
    expect(all.keys).toMatchObject([
      { id: made.id, monthly_limit: 0, monthly_spend: 0.000001 },
      { name: 'phone', monthly_spend: 0 },
    ])
    const text = (await runCommand(key, 'list', '--org', 'acme')).stdout
    expect(text).toMatch(/^ID +PREFIX +NAME +STATE/)
    expect(text).toMatch(/ laptop +active +none +write +none +unlimited +0\.000001 +unlimited +all\n$/)
    expect(text).not.toContain('phone')
  })

  test('revokes', async () => {
    const { url, runCommand } = administration()
    await runCommand(org, 'create', 'acme')
    const made = (await runCommand(key, 'create', 'laptop', '--json')).json() as Made
    const revoked = await runCommand(key, 'revoke', made.id, '--json')
    expect(revoked.json()).toMatchObject({ id: made.id, state: 'revoked', revoked_at: expect.any(String) })
    const store = await openStore(url)
    await expect(openAccess(store).authenticate(made.api_key)).rejects.toThrow('revoked')
    await store.close()
  })

  test('lists many keys in pages', async () => {
    const { url, runCommand } = administration()
    await runCommand(org, 'create', 'acme')
    const store = await openStore(url)
    const organization = (await store.organizations.list())[0]?.id ?? ''
    await store.atomically(async (tx) => {
      for (let index = 0; index < 1_001; index++) {
        const permissions = { manage: 'none', completions: 'write' } as const
        const secret = { hash: randomBytes(32), prefix: 'ir-' }
        await tx.keys.create({
          ...secret,
          organization,
          name: `k${index}`,
          permissions,
          createdBy: { id: 't', email: '' },
        })
      }
    })
    await store.close()
    type Page = { keys: { id: string }[]; next_cursor?: string }
    const first = (await runCommand(key, 'list', '--json')).json() as Page
    expect([first.keys.length, first.next_cursor]).toEqual([1_000, first.keys.at(-1)?.id])
    const second = (
      await runCommand(key, 'list', '--org', 'acme', '--after', first.next_cursor ?? '', '--json')
    ).json() as Page
    expect([second.keys.length, second.next_cursor]).toEqual([1, undefined])
    const few = (await runCommand(key, 'list', '--limit', '2')).stdout
    expect(few).toMatch(/\n\nThere are more: key list --after [0-9a-f-]{36}\n$/)
    expect(new Set([...first.keys, ...second.keys].map(({ id }) => id)).size).toBe(1_001)
  })

  test('is noted in the log of changes, without its secret', async () => {
    const { url, runCommand } = administration()
    await runCommand(org, 'create', 'acme')
    const made = (await runCommand(key, 'create', 'laptop', '--json')).json() as Made
    await runCommand(key, 'revoke', made.id)
    await runCommand(key, 'revoke', 'nobody')
    const store = await openStore(url)
    const log = await store.audit.page({ organization: made.organization, limit: 9 })
    await store.close()
    expect(log).toMatchObject([
      {
        actor: 'cli',
        action: 'apikey.revoke',
        subject: made.id,
        before: { state: 'active' },
        after: { state: 'revoked' },
      },
      { actor: 'cli', action: 'apikey.create', subject: made.id, before: null, after: { name: 'laptop' } },
      { actor: 'cli', action: 'organization.create' },
    ])
    expect(JSON.stringify(log)).not.toContain(made.api_key.slice(8))
  })

  test('reports failures: exit code 1', async () => {
    const { runCommand } = administration()
    expect(await runCommand(key, 'create', 'laptop')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('org create'),
    })
    await runCommand(org, 'create', 'acme')
    expect(await runCommand(key, 'create', 'laptop', '--org', 'other')).toMatchObject({ code: 1 })
    expect(await runCommand(key, 'revoke', 'nobody')).toMatchObject({
      code: 1,
      stderr: "There is no key with the id 'nobody'. key list shows the ids.\n",
    })
  })

  test('may have an access list of names of its organization: models, all of a provider, aliases and policies', async () => {
    const { url, runCommand } = administration()
    for (const name of ['acme', 'other']) await runCommand(org, 'create', name)
    const store = await openStore(url)
    const acme = (await store.organizations.findByName('acme'))?.id ?? ''
    await store.names.setAlias(acme, { name: 'swift', target: 'demo/echo' })
    await store.names.setPolicy(acme, { id: 'sure', description: '', targets: ['demo/echo'] })
    await store.close()
    const names = ['swift', 'policy/swift', 'sure', 'policy/sure', 'demo/*', 'demo/echo']
    const create = ['create', 'a', '--json', ...names.flatMap((name) => ['--models', name])]
    expect((await runCommand(key, ...create, '--org', 'acme')).json()).toMatchObject({ models: names })
    const refused = await runCommand(key, ...create, '--org', 'other')
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toContain("'--models' names an unknown model, provider, alias or policy: 'swift'")
    const near = await runCommand(key, 'create', 'a', '--org', 'acme', '--models', 'swfit')
    expect(near).toMatchObject({ code: 2, stderr: expect.stringContaining('did you mean `swift`?') })
    expect((await runCommand(key, 'list', '--json')).json()).toMatchObject({ keys: [{ models: names }] })
  })

  test.each([
    [['create'], 'name the key'],
    [['create', 'a', '--manage', 'all'], "--manage is 'all'; write none, read, write"],
    [['create', 'a', '--operate', 'all'], "--operate is 'all'; write none, read, write"],
    [['create', 'a', '--monthly-limit=-1'], '--monthly-limit is negative'],
    [['create', 'a', '--monthly-limit', 'x'], "--monthly-limit is 'x'"],
    [['create', 'a', '--expires', 'tomorrow'], "--expires is 'tomorrow'; write a time as"],
    [['create', 'a', '--expires', '2026-13-01T00:00:00Z'], "--expires is '2026-13-01T00:00:00Z'"],
    [['create', 'a', '--expires', '2999-02-30T00:00:00Z'], "--expires is '2999-02-30T00:00:00Z'"],
    [['create', 'a', '--expires', '2020-01-01T00:00:00Z'], 'which has passed'],
    [['create', 'a\nb'], "'name' must be a single line"],
    [['create', 'a'.repeat(201)], "'name' must be a single line of at most 200 characters"],
    [['create', 'a', '--label', `note=${'x'.repeat(1_001)}`], "'--label.note' must be text of at most 1000 characters"],
    [['create', 'a', '--label', 'team'], "--label is 'team'; write NAME=VALUE"],
    [['create', 'a'], 'there are several organizations; name one with --org NAME'],
    [['revoke'], 'name the key: key revoke'],
    [['list', '--after', 'nobody'], "--after is 'nobody', which is not the id of a key"],
  ])('%j is wrong usage: exit code 2, the reason and the help', async (args, reason) => {
    const { runCommand } = administration()
    for (const name of ['acme', 'other']) await runCommand(org, 'create', name)
    const result = await runCommand(key, ...args)
    expect(result).toMatchObject({ code: 2, stdout: '' })
    expect(result.stderr).toContain(reason)
    expect(result.stderr).toContain(key.help)
  })
})

function readable(url: string, ending: string): string {
  try {
    return readFileSync(`${url.slice('sqlite:'.length)}${ending}`, 'latin1')
  } catch {
    return ''
  }
}
