import { afterAll, beforeAll, expect, test } from 'vitest'
import { run as runKey } from '../../src/cli/key.ts'
import * as org from '../../src/cli/org.ts'
import { type LoadedPlugin, pluginsFor } from '../../src/plugin/loaded.ts'
import { openStore } from '../../src/store/open.ts'
import { ran } from '../cli/running.ts'
import { simulatorOnly, type TestRouter, testRouter } from '../helpers/router.ts'
import { administration } from './administration.ts'

let router: TestRouter
let manage: ReturnType<typeof administration>

beforeAll(async () => {
  const plugin = 'export default { setup: () => ({}) }'
  const guard = `import { Refusal } from 'inference-router/plugin'
export default { setup: () => ({ request() { throw new Refusal(403, 'No.') } }) }`
  const files = { ...simulatorOnly, 'plugins/mask.ts': plugin, 'plugins/guard.ts': guard }
  router = await testRouter({ files, settings: { plugins: [{ name: 'mask' }, { name: 'guard', enabled: false }] } })
  manage = administration(router)
})
afterAll(() => router.end())

const newKey = async () => (await manage.post('/apikey', { name: 'one' })).body.api_key_id as string

test('the organization and its keys say which plugins are on; null says nothing', async () => {
  expect((await manage.get('/org/plugins')).body).toEqual({ plugins: {} })
  const set = await manage.put('/org/plugins', { plugins: { mask: false, guard: true } })
  expect([set.status, set.body]).toEqual([200, { plugins: { mask: false, guard: true } }])
  expect((await manage.put('/org/plugins', { plugins: { guard: null } })).body).toEqual({ plugins: { mask: false } })
  const id = await newKey()
  const changed = await manage.post(`/apikey/${id}/plugins`, { plugins: { mask: true } })
  expect([changed.status, changed.body.plugins]).toEqual([200, { mask: true }])
  expect((await manage.get(`/apikey/${id}`)).body.plugins).toEqual({ mask: true })
  const entries = (await manage.get('/audit?limit=20')).body.entries as {
    action: string
    before: object
    after: object
  }[]
  expect(entries.find(({ action }) => action === 'apikey.plugins')).toMatchObject({
    before: { plugins: {} },
    after: { plugins: { mask: true } },
  })
  expect(entries.filter(({ action }) => action === 'organization.plugins')).toHaveLength(2)
  await manage.put('/org/plugins', { plugins: { mask: null } })
})

test('what is said holds for the next call', async () => {
  const made = (await manage.post('/apikey', { name: 'caller' })).body as { api_key_id: string; api_key: string }
  const body = { model: 'demo/echo', messages: [{ role: 'user', content: 'Hi' }] }
  const status = async () =>
    (await router.call('/v1/chat/completions', body, { authorization: `Bearer ${made.api_key}` })).status
  expect(await status()).toBe(200)
  await manage.put('/org/plugins', { plugins: { guard: true } })
  expect(await status()).toBe(403)
  await manage.post(`/apikey/${made.api_key_id}/plugins`, { plugins: { guard: false } })
  expect(await status()).toBe(200)
  await manage.post(`/apikey/${made.api_key_id}/plugins`, { plugins: { guard: null } })
  expect(await status()).toBe(403)
  await manage.put('/org/plugins', { plugins: { guard: null } })
  expect(await status()).toBe(200)
})

test('only plugins that are loaded are named; what is said of one that is gone can be taken back', async () => {
  const id = await newKey()
  const wrong = [
    [
      { plugins: { musk: true } },
      "'plugins.musk' names an unknown plugin: 'musk'; loaded are mask, guard.",
      'plugins.musk',
    ],
    [{ plugins: { mask: 'on' } }, "'plugins.mask' must be true or false, not 'on'.", 'plugins.mask'],
    [{ plugins: {} }, "'plugins' is empty: name a plugin.", 'plugins'],
    [{}, "'plugins' is missing: it must be an object of true, false or null.", 'plugins'],
  ] as const
  for (const [body, message, param] of wrong) {
    for (const { status, body: answer } of [
      await manage.put('/org/plugins', body),
      await manage.post(`/apikey/${id}/plugins`, body),
    ]) {
      expect([status, answer]).toMatchObject([400, { error: { message, param } }])
    }
  }
  expect((await manage.put('/org/plugins', { plugins: { gone: null } })).status).toBe(200)
})

test('the commands say the same', async () => {
  const config = ['--config', `${router.folder}/config.yaml`]
  const name = 'default'
  const shown = await ran(org.run, 'plugins', name, 'mask=off', 'guard=on', '--json', ...config)
  expect([shown.code, JSON.parse(shown.stdout).plugins]).toEqual([0, { mask: false, guard: true }])
  const text = await ran(org.run, 'plugins', name, 'guard=default', ...config)
  expect(text.stdout).toMatch(/^plugins +mask off$/m)
  expect((await ran(org.run, 'plugins', name, 'mask=default', ...config)).stdout).toMatch(/^plugins +as configured$/m)
  const made = await ran(runKey, 'create', 'quiet', '--plugin', 'mask=off', '--plugin', 'guard=on', '--json', ...config)
  expect(JSON.parse(made.stdout).plugins).toEqual({ mask: false, guard: true })
  const unknown = await ran(runKey, 'create', 'quiet', '--plugin', 'musk=off', ...config)
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("names an unknown plugin: 'musk'")])
  const unclear = await ran(org.run, 'plugins', name, 'mask', ...config)
  expect([unclear.code, unclear.stderr]).toEqual([2, expect.stringContaining("'mask' is not a plugin with a state")])
})

test('a key overrules its organization, which overrules the configuration; other organizations are never shown', () => {
  const plugin = (name: string, more: Partial<LoadedPlugin> = {}): LoadedPlugin => {
    return { name, hooks: {}, onError: 'open', timeoutMs: 1, enabled: true, organizations: 'all', ...more }
  }
  const on = plugin('on')
  const off = plugin('off', { enabled: false })
  const theirs = plugin('theirs', { organizations: new Set(['them']) })
  const shown = (rules: object, keyRules: object, organization = 'us') =>
    pluginsFor([on, off, theirs], { organization, rules: { ...rules }, keyRules: { ...keyRules } }).map(
      ({ name }) => name,
    )
  expect(shown({}, {})).toEqual(['on'])
  expect(shown({}, {}, 'them')).toEqual(['on', 'theirs'])
  expect(shown({ on: false, off: true }, {})).toEqual(['off'])
  expect(shown({ on: false, off: true }, { on: true, off: false })).toEqual(['on'])
  expect(shown({ theirs: true }, { theirs: true })).toEqual(['on'])
  const named = plugin('constructor', { enabled: false })
  expect(pluginsFor([named], { organization: 'us', rules: {}, keyRules: {} })).toEqual([])
})

test('rules of keys and organizations outlive the process', async () => {
  const store = await openStore(`sqlite:${router.folder}/data/router.sqlite`)
  const quiet = (await store.keys.page({ limit: 100 })).find(({ name }) => name === 'quiet')
  expect(quiet?.plugins).toEqual({ mask: false, guard: true })
  await store.close()
})
