import { describe, expect, test } from 'vitest'
import * as alias from '../../src/cli/alias.ts'
import * as group from '../../src/cli/group.ts'
import * as key from '../../src/cli/key.ts'
import * as org from '../../src/cli/org.ts'
import * as policy from '../../src/cli/policy.ts'
import { openStore } from '../../src/store/open.ts'
import { administration } from './administration.ts'

type Made = { id: string; api_key: string; organization: string }

/** A database with one organization. */
async function acme() {
  const { url, runCommand } = administration()
  await runCommand(org, 'create', 'acme')
  const log = async () => {
    const store = await openStore(url)
    const entries = await store.audit.page({ organization: (await store.organizations.list())[0]?.id ?? '', limit: 99 })
    await store.close()
    return entries
  }
  return { url, runCommand, log }
}

describe('key edit', () => {
  test('changes everything that it names, as the management API does, and logs each change', async () => {
    const { runCommand, log } = await acme()
    const made = (await runCommand(key, 'create', 'a', '--json')).json() as Made
    await runCommand(group, 'create', 'team')
    const limits = ['--monthly-limit', '3', '--requests-per-minute', '7', '--expires', '2999-01-31T00:00:00Z']
    const options = [...limits, '--label', 'a=b', '--models', 'demo/*', '--group', 'team']
    const edited = await runCommand(key, 'edit', made.id, ...options, '--json')
    expect(edited.json()).toMatchObject({
      monthly_limit: 3,
      limits: { requests_per_minute: 7, tokens_per_minute: null },
      expires_at: '2999-01-31T00:00:00.000Z',
      labels: { a: 'b' },
      models: ['demo/*'],
      group: expect.any(String),
    })
    const actions = (await log()).map(({ actor, action }) => `${actor} ${action}`)
    for (const what of ['limit', 'expiry', 'label', 'access', 'group', 'limits'])
      expect(actions).toContain(`cli apikey.${what}`)
    const none = ['--models', 'all', '--group', 'none', '--expires', 'never', '--monthly-limit', '0']
    expect((await runCommand(key, 'edit', made.id, ...none, '--json')).json()).toMatchObject({
      models: null,
      group: null,
      expires_at: null,
      monthly_limit: 0,
      limits: { requests_per_minute: 7 },
    })
  })

  test('with one thing wrong changes nothing', async () => {
    const { runCommand, log } = await acme()
    const made = (await runCommand(key, 'create', 'a', '--json')).json() as Made
    const before = (await log()).length
    for (const wrong of [
      ['--models', 'demo/ecoh'],
      ['--plugin', 'nobody=on'],
    ]) {
      const refused = await runCommand(key, 'edit', made.id, '--monthly-limit', '3', '--instance', 'read', ...wrong)
      expect([refused.code, refused.stdout]).toEqual([2, ''])
    }
    expect((await runCommand(key, 'show', made.id, '--json')).json()).toMatchObject({ monthly_limit: 0 })
    expect((await runCommand(key, 'show', made.id)).stdout).not.toContain('instance')
    expect(await log()).toHaveLength(before)
  })

  test.each([
    [['edit'], 2, 'name the key: key edit <id>'],
    [['edit', 'nobody', '--monthly-limit', '1'], 1, "There is no key with the id 'nobody'"],
    [['show', 'nobody'], 1, "There is no key with the id 'nobody'"],
    [['rotate'], 2, 'name the key: key rotate <id>'],
    [['delete', 'nobody'], 1, "There is no key with the id 'nobody'"],
    [['create', 'x', '--instance', 'write'], 2, "--instance is 'write'; write none, read"],
  ])('%j fails: exit code %d', async (args, code, reason) => {
    const { runCommand } = await acme()
    expect(await runCommand(key, ...args)).toMatchObject({ code, stdout: '', stderr: expect.stringContaining(reason) })
  })

  test('without anything to change is wrong usage', async () => {
    const { runCommand } = await acme()
    const made = (await runCommand(key, 'create', 'a', '--json')).json() as Made
    expect(await runCommand(key, 'edit', made.id)).toMatchObject({ code: 2 })
  })
})

test('a key is rotated and deleted; the last one that manages the organization is not', async () => {
  const { runCommand } = await acme()
  const made = (await runCommand(key, 'create', 'a', '--json')).json() as Made
  const rotated = (await runCommand(key, 'rotate', made.id, '--json')).json() as Made
  expect(rotated.api_key).toMatch(/^ir-/)
  expect(rotated.api_key).not.toBe(made.api_key)
  expect(await runCommand(key, 'delete', made.id)).toMatchObject({ code: 0 })
  expect(await runCommand(key, 'show', made.id)).toMatchObject({ code: 1 })
  const manager = (await runCommand(key, 'create', 'm', '--manage', 'write', '--json')).json() as Made
  const refused = await runCommand(key, 'delete', manager.id)
  expect(refused).toEqual(
    expect.objectContaining({ code: 1, stderr: expect.stringMatching(/^.*the last active key.*\n$/) }),
  )
})

test('a key of the command line gets all of its restrictions in one entry of the log of changes', async () => {
  const { runCommand, log } = await acme()
  await runCommand(alias, 'set', 'best', 'demo/echo')
  const before = (await log()).length
  const options = ['--models', 'best', '--requests-per-minute', '5', '--monthly-limit', '9']
  expect(await runCommand(key, 'create', 'a', ...options)).toMatchObject({ code: 0 })
  const [entry, ...others] = await log()
  expect(others).toHaveLength(before)
  const after = { models: ['best'], monthly_limit: 9, limits: { requests_per_minute: 5 } }
  expect(entry).toMatchObject({ actor: 'cli', action: 'apikey.create', after })
})

test('groups are created, listed, limited and deleted', async () => {
  const { runCommand } = await acme()
  expect((await runCommand(group, 'create', 'team', '--monthly-limit', '7', '--json')).json()).toMatchObject({
    name: 'team',
    monthly_limit: 7,
  })
  const taken = await runCommand(group, 'create', 'team')
  expect(taken).toEqual(expect.objectContaining({ code: 1, stderr: expect.stringMatching(/^.*'team'.*\n$/) }))
  expect((await runCommand(group, 'list')).stdout).toMatch(/team +7 +0\n$/)
  expect((await runCommand(group, 'limit', 'team', '9', '--json')).json()).toMatchObject({ monthly_limit: 9 })
  expect((await runCommand(group, 'show', 'team')).stdout).toMatch(/monthly_limit +9\n/)
  const refused = await runCommand(group, 'delete', 'team')
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("'--keys' to keep") })
  expect(await runCommand(group, 'delete', 'team', '--keys', 'keep')).toMatchObject({ code: 0 })
  expect(await runCommand(group, 'show', 'team')).toMatchObject({ code: 1 })
  expect(await runCommand(group, 'limit', 'team')).toMatchObject({ code: 2 })
})

test('aliases and policies are set, listed and deleted, and name what exists', async () => {
  const { runCommand } = await acme()
  const rules = ['--sort', 'weighted', '--retries', '2', '--first-event', '10s', '--description', 'for all']
  const set = await runCommand(policy, 'set', 'p', 'demo/echo=2', 'demo/thinker', ...rules, '--json')
  expect(set.json()).toEqual({
    id: 'p',
    description: 'for all',
    targets: [{ target: 'demo/echo', weight: 2 }, 'demo/thinker'],
    sort: 'weighted',
    retries: 2,
    first_event: '10s',
  })
  expect((await runCommand(policy, 'list')).stdout).toMatch(/^p +demo\/echo=2 demo\/thinker +for all$/m)
  expect(await runCommand(alias, 'set', 'best', 'policy/p')).toMatchObject({ code: 0 })
  expect((await runCommand(alias, 'list', '--json')).json()).toEqual({
    aliases: [{ name: 'best', target: 'policy/p' }],
  })
  const used = await runCommand(policy, 'delete', 'p')
  expect(used).toEqual(
    expect.objectContaining({ code: 1, stderr: expect.stringMatching(/^The alias 'best' points to.*\n$/) }),
  )
  expect(await runCommand(alias, 'delete', 'best')).toMatchObject({ code: 0 })
  expect(await runCommand(alias, 'delete', 'best')).toMatchObject({ code: 1 })
  expect(await runCommand(policy, 'delete', 'p')).toMatchObject({ code: 0 })
  for (const [command, ...args] of [
    [alias, 'set', 'x', 'demo/ecoh'],
    [policy, 'set', 'x', 'demo/ecoh'],
    [policy, 'set', 'x', 'demo/echo', '--sort', 'size'],
    [policy, 'set', 'x', 'demo/echo', '--retries', 'many'],
    [policy, 'set', 'x'],
    [alias, 'set', 'x'],
  ] as const)
    expect(await runCommand(command, ...args)).toMatchObject({ code: 2, stdout: '' })
})
