import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { newSecret, storedSecret } from '../../src/access/secrets.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { concerning, outageEntry } from '../../src/management/providers.ts'
import { openStore } from '../../src/store/open.ts'
import { schemaOf, validator } from '../helpers/openapi.ts'
import { simulatorOnly, testRouter } from '../helpers/router.ts'
import { describeEach } from '../helpers/slow.ts'
import { eventually } from '../helpers/time.ts'
import { administration } from './administration.ts'

const root = join(import.meta.dirname, '../..')

const own = `slug: own
name: My own
base_url: http://10.1.2.3:8000/v1
auth: { scheme: header, header: x-key, secret: "\${OWN_KEY}" }
headers: { x-region-token: "\${OWN_TOKEN}" }
dialect: openai-chat
models: { m1: { api: chat } }
`
const needy = own.replaceAll('own', 'needy').replaceAll('OWN', 'NEEDY')
const env = { OWN_KEY: 'sk-own-0123456789abcdef', OWN_TOKEN: 'token-fedcba9876543210' }

/** A router with a provider of its own, and one that lacks its variables. */
async function world(threads = 1) {
  const files = { ...simulatorOnly, 'providers/own.yaml': own, 'providers/needy.yaml': needy }
  const settings = { providers: { needy: {} } }
  const router = await testRouter({ files, env, threads, settings })
  onTestFinished(() => router.end())
  const manage = administration(router)
  const list = async () => (await manage.get('/providers')).body as { providers: JsonObject[]; problems: JsonObject[] }
  const one = async (slug: string) => (await manage.get(`/providers/${slug}`)).body
  return { router, manage, list, one }
}

const isDetail = validator(schemaOf('ProviderDetail'))
const isList = validator(schemaOf('ProviderList'))
const messages = [{ role: 'user', content: 'Hello' }]

describeEach([1, 2], { slowIf: (threads) => threads > 1 })('providers (%i threads)', (threads) => {
  test('are listed with what they need, and the problems of their files with their place', async () => {
    const { router, list, one, manage } = await world(threads)
    const first = await list()
    expect(isList(first), JSON.stringify(isList.errors)).toBe(true)
    expect(first.providers.map(({ slug, configured, missing, models }) => [slug, configured, missing, models])).toEqual(
      [
        ['demo', true, [], expect.any(Number)],
        ['needy', false, ['NEEDY_KEY', 'NEEDY_TOKEN'], 1],
        ['own', true, [], 1],
      ],
    )
    expect(first).toMatchObject({ problems: [], generation: 1 })
    expect(first.providers[2]).toMatchObject({ origin: 'providers/own.yaml', operations: ['chat'], health: [] })
    // The second test of this block would wait for the watcher once more.
    router.put('providers/own.yaml', `${own}timeouts: { connect: often }\n`)
    router.put('providers/fresh.yaml', 'slug: fresh\nauth: { scheme: bearer, secret: sk-written-in-here }\n')
    router.put('catalog/nobody.yaml', 'provider: nobody\nmodels: 7\n')
    await eventually(async () => {
      const { providers, problems } = await list()
      expect(providers.map(({ slug, loaded }) => [slug, loaded])).toContainEqual(['fresh', false])
      expect(problems).toMatchObject([{ place: expect.stringMatching(/^catalog\/nobody.yaml:2:/) }])
    })
    const broken = await one('own')
    expect(isDetail(broken), JSON.stringify(isDetail.errors)).toBe(true)
    expect(broken).toMatchObject({
      loaded: true,
      problems: [{ place: expect.stringMatching(/^providers\/own.yaml:8:\d+$/), line: 8, severity: 'error' }],
    })
    expect(String((broken.manifest as JsonObject).text).split('\n')[7]).toBe('timeouts: { connect: often }')
    const { text } = await manage.get('/providers/fresh')
    expect(text).not.toContain('sk-written')
  })
})

describe('a provider', () => {
  test('shows its manifest to its operator alone, and its secrets to nobody', async () => {
    const { router, manage, one } = await world()
    expect((await one('own')).manifest).toEqual({ file: 'providers/own.yaml', text: own })
    const store = await openStore(`sqlite:${router.folder}/data/router.sqlite`)
    const other = await store.organizations.create('another')
    const secretOf = async (operate: 'none' | 'read') => {
      const secret = newSecret()
      const facts = { organization: other.id, name: 'x', createdBy: { id: '', email: '' }, ...storedSecret(secret) }
      await store.keys.create({ ...facts, permissions: { manage: 'read', operate } })
      return secret
    }
    const [tenant, operator] = [await secretOf('none'), await secretOf('read')]
    await store.close()
    expect((await manage.get('/providers/own', tenant)).body).not.toHaveProperty('manifest')
    expect((await manage.get('/providers/own', operator)).body).toHaveProperty('manifest')
  })

  test('shows neither passwords in addresses nor literal values of headers', async () => {
    const secrets = ['hunter2', 'bluebird', 'blackbird', 'redwing', 'k1ngf1sher', 'p4ss']
    const literal = `${own.replace('http://10', 'http://me:hunter2@10').replace(/headers: .*/, '')}headers:
  x-shared-password: bluebird
  "x-region": |
    blackbird
  anthropic-version: "2023-06-01"
  x-token: "\${OWN_TOKEN}"
variants:
  - match: m1
    headers: { x-team: "redwing", accept: text/plain }
    base_url: https://u:p4ss@10.1.2.4/v1?api_key=k1ngf1sher
`
    const files = {
      ...simulatorOnly,
      'providers/own.yaml': literal,
      'providers/off.yaml': literal.replaceAll('own', 'off'),
    }
    const router = await testRouter({ files, env, settings: { providers: { off: { enabled: false } } } })
    onTestFinished(() => router.end())
    const manage = administration(router)
    for (const slug of ['own', 'off']) {
      const { text, body } = await manage.get(`/providers/${slug}`)
      for (const secret of secrets) expect(text).not.toContain(secret)
      const { manifest } = body as { manifest: { text: string } }
      for (const kept of [
        '2023-06-01',
        'x-token: "${OWN_TOKEN}"',
        'accept: text/plain',
        'match: m1',
        'http://me:[secret]@10',
      ])
        expect(manifest.text).toContain(kept)
    }
    const list = (await manage.get('/providers')).text
    const tried = (await manage.post('/providers/own/try', { model: 'm1', request: { messages } })).text
    for (const secret of secrets) expect(list + tried).not.toContain(secret)
  })

  test('that is shipped shows its manifest as it is', async () => {
    const router = await testRouter()
    onTestFinished(() => router.end())
    const manage = administration(router)
    const { providers } = (await manage.get('/providers')).body as { providers: { slug: string }[] }
    expect(providers.length).toBeGreaterThan(20)
    for (const { slug } of providers) {
      const { manifest } = (await manage.get(`/providers/${slug}`)).body as { manifest: { text: string } }
      expect(manifest.text).toBe(readFileSync(join(root, `providers/${slug}.yaml`), 'utf8'))
    }
  })

  test('has no health that only another organization has met', () => {
    const trouble = { scope: 'target', name: 'own/m1', state: 'open' } as const
    const others = { ...trouble, name: 'own/m2', organization: 'other' }
    const ours = { ...trouble, name: 'own/m3', organization: 'ours' }
    expect(concerning('ours', [trouble, others, ours])).toEqual([trouble, ours])
    expect(outageEntry({ ...ours, until: 0 })).toEqual({
      ...ours,
      since: null,
      until: '1970-01-01T00:00:00.000Z',
      reason: null,
    })
  })

  test('that does not exist is a 404', async () => {
    const { manage } = await world()
    expect(await manage.get('/providers/nobody')).toMatchObject({ status: 404 })
    expect(await manage.get('/providers/..%2Fconfig')).toMatchObject({ status: 404 })
    expect(await manage.post('/providers/nobody/try', { model: 'x', request: { messages } })).toMatchObject({
      status: 404,
    })
  })

  test('shows what it would be sent, in whatever API it is asked, without secrets and inner addresses', async () => {
    const { manage } = await world()
    const tried = await manage.post('/providers/own/try', {
      model: 'm1',
      api: 'messages',
      request: { messages, max_tokens: 9, top_k: 5, system: 'Be brief.' },
    })
    expect(tried).toMatchObject({
      status: 200,
      body: {
        method: 'POST',
        url: 'http://[address]/v1/chat/completions',
        headers: { 'x-key': '[secret]', 'x-region-token': '[secret]', 'content-type': 'application/json' },
        body: { model: 'm1', messages: [{ role: 'system', content: 'Be brief.' }, { content: 'Hello' }] },
        edited: false,
      },
    })
    const edited = await manage.post('/providers/needy/try', { model: 'm1', request: { messages, stream: true, x: 1 } })
    expect(edited.body).toMatchObject({ body: { x: 1, stream: true, messages }, edited: true })
  })

  test.each([
    [{ request: { messages } }, 'model'],
    [{ model: 'm1' }, 'request'],
    [{ model: 'm1', request: 'Hello' }, 'request'],
    [{ model: 'm1', request: { messages }, api: 'mail' }, 'api'],
    [{ model: 'm2', request: { messages } }, 'model'],
    [{ model: 'm1', request: { messages: 'Hello' } }, 'messages'],
    [{ model: 'm1', request: { messages }, more: 1 }, 'more'],
    [
      { model: 'm1', api: 'responses', request: { input: 'x', previous_response_id: 'resp_1' } },
      'previous_response_id',
    ],
  ])('refuses to be tried with %j', async (body, param) => {
    const { manage } = await shared
    expect(await manage.post('/providers/own/try', body)).toMatchObject({ status: 400, body: { error: { param } } })
  })
})

const shared = (async () => {
  const files = { ...simulatorOnly, 'providers/own.yaml': own }
  const router = await testRouter({ files, env })
  return { router, manage: administration(router) }
})()
afterAll(async () => (await shared).router.end())
