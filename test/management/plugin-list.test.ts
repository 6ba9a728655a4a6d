import { expect, onTestFinished, test } from 'vitest'
import { newSecret, storedSecret } from '../../src/access/secrets.ts'
import { openStore } from '../../src/store/open.ts'
import { schemaOf, validator } from '../helpers/openapi.ts'
import { simulatorOnly, testRouter } from '../helpers/router.ts'
import { describeEach } from '../helpers/slow.ts'
import { eventually } from '../helpers/time.ts'
import { administration } from './administration.ts'

const plugin = (hooks: string) => `import { definePlugin } from 'inference-router/plugin'
export default definePlugin({ setup: () => (${hooks}) })
`
const files = {
  ...simulatorOnly,
  'plugins/first.ts': plugin('{ request() { return undefined }, record() {} }'),
  'plugins/faulty.ts': plugin("{ chat() { throw new Error('broken') } }"),
  'plugins/foreign.ts': plugin('{ request() { return undefined } }'),
}
const matches = validator(schemaOf('PluginList'))
const messages = [{ role: 'user', content: 'Hello' }]

describeEach([1, 2], { slowIf: (threads) => threads > 1 })('plugins (%i threads)', (threads) => {
  test('are listed in their order with their switches, calls and faults; other organizations see no counts', async () => {
    const settings = {
      plugins: [
        { name: 'first' },
        { name: 'faulty', on_error: 'open', enabled: false },
        { name: 'foreign', organizations: ['somebody-else'] },
      ],
    }
    const router = await testRouter({ files, settings, threads })
    onTestFinished(() => router.end())
    const manage = administration(router)
    type Listed = { name: string; [member: string]: unknown }
    const list = async (secret?: string) => {
      const { body } = await manage.get('/plugins', secret)
      expect(matches(body), JSON.stringify(matches.errors)).toBe(true)
      return body as { plugins: Listed[]; counted: boolean }
    }
    const call = async () => {
      const response = await router.call('/v1/chat/completions', { model: 'demo/echo', messages })
      await response.text()
    }
    await call()
    await manage.put('/org/plugins', { plugins: { faulty: true, first: false } })
    await call()
    await call()
    await eventually(async () => {
      const { plugins, counted } = await list()
      expect(counted).toBe(true)
      expect(plugins).toMatchObject([
        {
          name: 'first',
          order: 1,
          enabled: true,
          rule: false,
          active: false,
          hooks: ['request', 'record'],
          faults: [],
        },
        { name: 'faulty', order: 2, enabled: false, rule: true, active: true, on_error: 'open', hooks: ['chat'] },
        { name: 'foreign', order: 3, rule: null, active: false, sees: false, organizations: 'some' },
      ])
      expect(plugins[0]?.runs).toContainEqual({ hook: 'request', calls: 1, failed: 0 })
      expect(plugins[1]?.runs).toEqual([{ hook: 'chat', calls: 2, failed: 2 }])
      expect(plugins[1]?.faults).toEqual([{ hook: 'chat', fault: 'threw', count: 2 }])
      expect(plugins[0]).toMatchObject({ file: 'plugins/first.ts', loaded: true, problems: [] })
    })

    const store = await openStore(`sqlite:${router.folder}/data/router.sqlite`)
    const { id: organization } = await store.organizations.create('other')
    const secret = newSecret()
    const permissions = { manage: 'write', completions: 'write', operate: 'write' } as const
    await store.keys.create({
      ...storedSecret(secret),
      organization,
      name: 'x',
      permissions,
      createdBy: { id: '', email: '' },
    })
    await store.close()
    const { plugins, counted } = await list(secret)
    expect(counted).toBe(false)
    expect(plugins.map(({ name, runs, faults }) => [name, runs, faults])).toEqual([
      ['first', undefined, undefined],
      ['faulty', undefined, undefined],
    ])
  })

  test('have the place of the error where they cannot be used', async () => {
    const broken = { ...files, 'plugins/first.ts': 'export default {' }
    const router = await testRouter({
      files: broken,
      settings: { plugins: [{ name: 'first', on_error: 'open' }] },
      threads,
    })
    onTestFinished(() => router.end())
    const { body } = await administration(router).get('/plugins')
    expect(matches(body), JSON.stringify(matches.errors)).toBe(true)
    expect(body.plugins).toMatchObject([
      { loaded: false, hooks: [], problems: [{ place: expect.stringMatching(/^plugins\/first\.ts:1:\d+$/) }] },
    ])
  })
})
