import { existsSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import * as org from '../../src/cli/org.ts'
import { openStore } from '../../src/store/open.ts'
import { temporaryFile } from '../store/temporary.ts'
import { administration, printed } from './administration.ts'

describe('org', () => {
  test('makes an organization, with or without credit, and lists all', async () => {
    const { runCommand } = administration()
    const made = await runCommand(org, 'create', 'acme', '--credit', '12.5', '--json')
    expect(made).toMatchObject({ code: 0, stderr: '' })
    const acme = {
      id: expect.any(String),
      name: 'acme',
      balance: 12.5,
      credit: 12.5,
      spend: 0,
      created_at: expect.any(String),
    }
    expect(made.json()).toEqual(acme)
    expect(await runCommand(org, 'create', '--name', 'other')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Organization other/),
    })
    const listed = await runCommand(org, 'list', '--json')
    expect(listed.json()).toEqual({ organizations: [acme, expect.objectContaining({ name: 'other', balance: 0 })] })
    const text = (await runCommand(org, 'list')).stdout.split('\n')
    expect(text[0]).toMatch(/^ID +NAME +CREDIT USD +SPEND USD +BALANCE USD$/)
    expect(text[1]).toMatch(/ acme +12\.50 +0\.00 +12\.50$/)
  })

  test('gives credit and takes it back, by name or id', async () => {
    const { url, runCommand } = administration()
    const { id } = (await runCommand(org, 'create', 'acme', '--json')).json() as { id: string }
    expect((await runCommand(org, 'credit', 'acme', '0.000000001', '--json')).json()).toMatchObject({
      id,
      balance: 1e-9,
    })
    expect((await runCommand(org, 'credit', id, '10', '--note', 'invoice 7', '--json')).json()).toMatchObject({
      balance: 10.000000001,
    })
    expect((await runCommand(org, 'credit', '--json', 'acme', '--', '-10')).json()).toMatchObject({ balance: 1e-9 })
    const store = await openStore(url)
    const [, log] = await store.audit.page({ organization: id, limit: 2 })
    await store.close()
    const sums = { before: { credit: 1e-9 }, after: { credit: 10.000000001, amount: 10, note: 'invoice 7' } }
    expect(log).toMatchObject({ actor: 'cli', action: 'organization.credit', ...sums })
  })

  test('stores responses for 30 days by default, for other periods, or not at all', async () => {
    const { runCommand } = administration()
    await runCommand(org, 'create', 'acme')
    const reported = async (...args: string[]) => (await runCommand(org, 'store', 'acme', ...args, '--json')).json()
    expect(await reported()).toMatchObject({ name: 'acme', store: true, retention_days: 30 })
    expect(await reported('off')).toMatchObject({ store: false, retention_days: 30 })
    expect(await reported('--retention-days', '7')).toMatchObject({ store: false, retention_days: 7 })
    expect(await reported('on')).toMatchObject({ store: true, retention_days: 7 })
    expect((await runCommand(org, 'store', 'acme')).stdout).toBe('Organization acme: responses are stored for 7 days\n')
    expect((await runCommand(org, 'store', 'acme', 'off')).stdout).toBe('Organization acme: responses are not stored\n')
  })

  test('shows and changes the settings of an organization, one by one', async () => {
    const { url, runCommand } = administration()
    const { id } = (await runCommand(org, 'create', 'acme', '--json')).json() as { id: string }
    const result = async (...args: string[]) => (await runCommand(org, ...args, '--json')).json()
    const unlimited = { requests_per_minute: null, tokens_per_minute: null, concurrent_calls: null }
    const any = { geolocation: null, data_retention: null, data_used_for_training: null }
    const begin = { id, name: 'acme', balance: 0, enforces_balance: false, limits: unlimited, approved_models: null }
    expect(await result('show', 'acme')).toEqual({ ...begin, rules: any, plugins: {}, aliases: {}, policies: {} })
    await result('limits', 'acme', '--requests-per-minute', '60', '--concurrent', '5')
    const limits = { requests_per_minute: 60, tokens_per_minute: 1_000, concurrent_calls: null }
    expect(await result('limits', id, '--tokens-per-minute', '1000', '--concurrent', '0')).toMatchObject({ limits })
    expect(await result('models', 'acme', 'demo/*', 'openai/gpt-5', 'demo/*')).toMatchObject({
      limits,
      approved_models: ['demo/*', 'openai/gpt-5'],
    })
    await result('rules', 'acme', '--geolocation', 'eu,us', '--retention', 'forbidden')
    expect(await result('rules', 'acme', '--training', 'forbidden')).toMatchObject({
      rules: { geolocation: ['eu', 'us'], data_retention: false, data_used_for_training: false },
    })
    expect(await result('rules', 'acme', '--geolocation', 'any', '--retention', 'allowed')).toMatchObject({
      rules: { geolocation: null, data_retention: null, data_used_for_training: false },
    })
    expect(await result('models', 'acme', 'all')).toMatchObject({ approved_models: null })
    expect(await result('balance', 'acme', 'on')).toMatchObject({ enforces_balance: true })
    const text = (await runCommand(org, 'show', 'acme')).stdout
    for (const line of ['requests per minute  60', 'models               all', 'training             forbidden']) {
      expect(text).toContain(`${line}\n`)
    }
    const store = await openStore(url)
    const log = await store.audit.page({ organization: id, limit: 20 })
    await store.close()
    expect(log.map(({ action }) => action.split('.')[1])).toEqual(
      ['create', 'limits', 'limits', 'models', 'rules', 'rules', 'rules', 'models', 'balance'].toReversed(),
    )
    expect(log[0]).toMatchObject({
      actor: 'cli',
      subject: id,
      before: { enforces_balance: false },
      after: { enforces_balance: true },
    })
  })

  test.each([
    [['limits', 'acme', '--requests-per-minute', 'many'], '--requests-per-minute'],
    [['models', 'acme', 'gpt'], "'org models' names an unknown model or provider: 'gpt'"],
    [['models', 'acme', 'demo/*', 'demo/ehco'], 'did you mean `demo/echo`?'],
    [['models', 'acme', 'opnai/*'], 'did you mean `openai/*`?'],
    [['models', 'acme', 'all', 'demo/echo'], 'either all or names'],
    [['rules', 'acme', '--geolocation', 'eu,any'], '--geolocation'],
    [['rules', 'acme', '--geolocation', 'eu,EU'], "hosted: 'EU'; known regions: "],
    [['rules', 'acme', '--geolocation', 'europe'], ' eu, global, '],
    [['rules', 'acme', '--training', 'no'], 'forbidden or allowed'],
    [['balance', 'acme', 'maybe'], "not 'maybe'"],
    [['show'], 'name the organization'],
  ])('refuses %j: exit code 2', async (args, says) => {
    const { runCommand } = administration()
    expect(await runCommand(org, ...args)).toMatchObject({ code: 2, stderr: expect.stringContaining(says) })
  })

  test('reports failures: exit code 1, without partial changes', async () => {
    const { runCommand } = administration()
    await runCommand(org, 'create', 'acme')
    expect(await runCommand(org, 'create', 'acme', '--credit', '5')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: "There is already an organization named 'acme'.\n",
    })
    expect(await runCommand(org, 'credit', 'amce', '5')).toMatchObject({
      code: 1,
      stderr: "There is no organization 'amce'. Known: acme\n",
    })
    expect((await runCommand(org, 'list', '--json')).json()).toMatchObject({ organizations: [{ balance: 0 }] })
  })

  test.each([
    [[], 'name an action: create, list, credit, store'],
    [['make'], "unknown action 'make'; actions: create, list, credit, store"],
    [['toString'], "unknown action 'toString'"],
    [['create'], 'name the organization'],
    [['create', ' '], 'name the organization'],
    [['create', 'a', 'b'], "unexpected argument 'b'"],
    [['create', 'a', '--credits', '5'], "Unknown option '--credits'"],
    [['create', 'a\tb'], "'name' must be a single line"],
    [['create', 'a', '--credit', 'much'], "--credit is 'much'; write USD as 25 or 0.5"],
    [['credit', 'a'], 'name the organization and the amount'],
    [['credit', 'a', '1e3'], "the credit is '1e3'"],
    [['store'], 'name the organization: org store'],
    [['store', 'a', 'maybe'], "write on or off for the store, not 'maybe'"],
    [['store', 'a', '--retention-days', '0'], 'write a whole number of days from 1 to 3650'],
  ])('%j is wrong usage: exit code 2, the reason and the help', async (args, reason) => {
    const { runCommand, url } = administration()
    const result = await runCommand(org, ...args)
    expect(result).toMatchObject({ code: 2, stdout: '' })
    expect(result.stderr).toContain(reason)
    expect(result.stderr).toContain(org.help)
    expect(existsSync(url.slice('sqlite:'.length))).toBe(false)
  })

  test.each([['--help'], ['-h'], ['create', '--help'], ['credit', '-h']])('%j %j helps', async (...args) => {
    expect(await administration().runCommand(org, ...args)).toMatchObject({ code: 0, stdout: org.help, stderr: '' })
  })
})

describe('the database', () => {
  test('is the one that the configuration names, beside its file', async () => {
    const path = temporaryFile('config.yaml')
    writeFileSync(path, 'store: { url: "sqlite:books/router.sqlite" }\n')
    const result = await printed((out) => org.run(['create', 'acme', '--config', path, '--json'], out))
    expect(result).toMatchObject({ code: 0, stderr: '' })
    const store = await openStore(`sqlite:${dirname(path)}/books/router.sqlite`)
    expect(await store.organizations.list()).toMatchObject([{ name: 'acme' }])
    await store.close()
  })

  test('is not opened by a configuration that is wrong or missing: exit code 1 with the place', async () => {
    const path = temporaryFile('config.yaml')
    const missing = await printed((out) => org.run(['list', '--config', path], out))
    expect(missing).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(path) })
    writeFileSync(path, 'stor: { url: "sqlite:books/router.sqlite" }\n')
    const wrong = await printed((out) => org.run(['list', '--config', path], out))
    expect(wrong).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(`${path}:1:1`) })
  })
})
