import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newSecret, storedSecret } from '../../src/access/secrets.ts'
import { openStore } from '../../src/store/open.ts'
import { schemaOf, validator } from '../helpers/openapi.ts'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../helpers/provider.ts'
import { type TestRouter, testRouter } from '../helpers/router.ts'
import { administration } from './administration.ts'

let provider: LoopbackProvider
let router: TestRouter
let manage: ReturnType<typeof administration>
/** The key of another organization, which may do all in it. */
let stranger: string
/** A key of that organization which may not operate. */
let tenant: string
let isDown = true
const expired = 'The contract of your account has ended.'
const fire = 'The kitchen is on fire.'

const manifest = (url: string) => `slug: maker
name: Maker
base_url: ${url}
auth: { scheme: none }
dialect: openai-chat
models:
  shaky: { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0 }] }
  steady: { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0 }] }
  locked: { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0 }] }
  picky: { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0 }] }
`

beforeAll(async () => {
  provider = await loopbackProvider(({ body }, response) => {
    const { model } = body as { model: string }
    if (model === 'picky') return answerJson(response, { error: { message: 'Not like this.' } }, 400)
    if (model === 'locked') return answerJson(response, { error: { message: expired } }, 401)
    if (model === 'shaky' && isDown) return answerJson(response, { error: { message: fire, code: 'fire' } }, 500)
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Gone' }, finish_reason: 'stop' }]
    const usage = { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10 }
    answerJson(response, { id: 'c', object: 'chat.completion', created: 1, model, choices, usage })
  })
  const settings = { health: { consecutive_failures: 2, open_for: '60s', max_open: '60s' } }
  router = await testRouter({ files: { 'providers/maker.yaml': manifest(provider.url) }, settings })
  manage = administration(router)
  const store = await openStore(`sqlite:${router.folder}/data/router.sqlite`)
  const { id: organization } = await store.organizations.create('other')
  stranger = newSecret()
  const permissions = { manage: 'write', completions: 'write', operate: 'write' } as const
  const createdBy = { id: 'test', email: '' }
  await store.keys.create({ ...storedSecret(stranger), organization, name: 'admin', permissions, createdBy })
  tenant = newSecret()
  const fewer = { manage: 'read', completions: 'write', operate: 'none' } as const
  await store.keys.create({ ...storedSecret(tenant), organization, name: 'tenant', permissions: fewer, createdBy })
  await store.close()
})
afterAll(async () => {
  await router?.end()
  await provider?.close()
})

const messages = [{ role: 'user', content: 'Go on' }]
const ask = async (body: object, secret?: string) => {
  const headers = secret === undefined ? {} : { authorization: `Bearer ${secret}` }
  const response = await router.call('/v1/chat/completions', { messages, ...body }, headers)
  await response.text()
  return response.status
}

type Target = { model: string; last_failure: Record<string, unknown> | null; [name: string]: unknown }
const matches = validator(schemaOf('TargetList'))

async function targets(path = '/targets', secret?: string) {
  const { status, text, body } = await manage.get(path, secret)
  if (status !== 200) throw new Error(`${status} ${text}`)
  expect(matches(body), JSON.stringify(matches.errors)).toBe(true)
  const list = body.targets as Target[]
  return { body, text, of: (model: string) => list.find((one) => one.model === model) }
}

describe('targets', () => {
  test('show nothing before the first call', async () => {
    expect((await targets()).body).toMatchObject({ targets: [], degraded: [], period_minutes: 60 })
  })

  test('count attempts: a failure that another target has made up for is one of the first target', async () => {
    expect(await ask({ model: 'maker/shaky', models: ['maker/steady'] })).toBe(200)
    expect(await ask({ model: 'maker/picky' })).toBe(400)
    const { of } = await targets()
    const times = { p50: expect.any(Number), p95: expect.any(Number) }
    const since = of('maker/shaky')?.failing_since
    expect(of('maker/shaky')).toEqual({
      provider: 'maker',
      model: 'maker/shaky',
      attempts: 1,
      succeeded: 0,
      failed: 1,
      success_rate: 0,
      failures: { failed: 1 },
      first_event_ms: { p50: null, p95: null },
      duration_ms: { p50: null, p95: null },
      last_success_at: null,
      failing_since: expect.stringMatching(/Z$/),
      successes_since_failure: 0,
      last_failure: {
        at: since,
        call: expect.any(String),
        code: 'provider_failed',
        class: 'failed',
        status: 502,
        provider_code: 'fire',
        provider_message: fire,
      },
      periods: [{ start: expect.any(String), succeeded: 0, failed: 1 }],
    })
    expect(of('maker/steady')).toMatchObject({ attempts: 1, success_rate: 1, failing_since: null, duration_ms: times })
    // A request that a target refuses says nothing about its health.
    expect(of('maker/picky')).toMatchObject({ attempts: 1, succeeded: 0, failed: 0, success_rate: null })
  })

  test('have the call of their last failure, which shows the same message', async () => {
    const { of } = await targets()
    const { body } = await manage.get(`/calls/${of('maker/shaky')?.last_failure?.call}`)
    expect(body.rows).toMatchObject([{ provider_message: fire }, { outcome: 'complete' }])
  })

  test('say since when a circuit is open, and show the next failures at once', async () => {
    expect(await ask({ model: 'maker/shaky', models: ['maker/steady'] })).toBe(200)
    const { body, of } = await targets()
    expect(of('maker/shaky')).toMatchObject({ failed: 2 })
    const [circuit] = body.degraded as { since: string; until: string }[]
    expect(circuit).toMatchObject({ scope: 'target', name: 'maker/shaky', state: 'open', reason: 'provider_failed' })
    expect(Math.abs(Date.parse(circuit?.since ?? '') - Date.now())).toBeLessThan(30_000)
    expect(Date.parse(circuit?.until ?? '')).toBeGreaterThan(Date.parse(circuit?.since ?? ''))
  })

  test('of another organization are not shown, nor what providers wrote about its calls', async () => {
    const { body, text } = await targets('/targets', stranger)
    expect(body).toMatchObject({ targets: [], degraded: [] })
    expect(text).not.toContain('kitchen')
    expect(await ask({ model: 'maker/steady' }, stranger)).toBe(200)
    expect((await targets('/targets', stranger)).of('maker/steady')).toMatchObject({ attempts: 1 })
    expect((await manage.get('/instance/targets', stranger)).status).toBe(403)
  })

  test('of all organizations are added up for a key with instance: read', async () => {
    const { of } = await targets('/instance/targets')
    expect(of('maker/steady')).toMatchObject({ attempts: 3 })
    expect(of('maker/shaky')?.last_failure).not.toHaveProperty('organization')
    const { organizations } = (await manage.get('/instance/org')).body as { organizations: { id: string }[] }
    const own = await targets(`/instance/targets?organization=${organizations[1]?.id}`)
    expect(own.body.targets).toMatchObject([{ model: 'maker/steady', attempts: 1 }])
    expect(own.body.degraded).toEqual([])
  })

  test('are well again with the first success', async () => {
    isDown = false
    expect(await ask({ model: 'maker/shaky' })).toBe(200)
    expect((await targets()).of('maker/shaky')).toMatchObject({
      succeeded: 1,
      failed: 2,
      success_rate: 0.3333,
      failing_since: null,
      successes_since_failure: 1,
      last_failure: { code: 'provider_failed' },
    })
  })

  test('name the organization of a failure that is not that of the key', async () => {
    isDown = true
    expect(await ask({ model: 'maker/shaky' }, stranger)).toBe(502)
    const { of } = await targets('/instance/targets')
    expect(of('maker/shaky')?.last_failure).toMatchObject({ organization: expect.any(String), provider_message: fire })
    expect((await targets()).of('maker/shaky')?.failing_since).toBeNull()
  })

  test('have what a provider wrote about the credential only for those who may operate', async () => {
    expect(await ask({ model: 'maker/locked' }, tenant)).toBe(502)
    const seen = async (secret: string) => (await targets('/targets', secret)).of('maker/locked')?.last_failure
    expect(await seen(tenant)).toMatchObject({ code: 'provider_refused' })
    expect(await seen(tenant)).not.toHaveProperty('provider_message')
    expect(await seen(stranger)).toMatchObject({ provider_message: expect.stringContaining(expired) })
  })

  test.each(['hours=0', 'hours=25', 'hours=x', 'hours=1&hours=2', 'limit=1'])('are a 400 for %s', async (query) => {
    expect(await manage.get(`/targets?${query}`)).toMatchObject({
      status: 400,
      body: { error: { param: query.split('=')[0] } },
    })
  })

  test('of a few hours have periods of ten minutes', async () => {
    const { body } = await targets('/targets?hours=1')
    expect(body.period_minutes).toBe(10)
    const begin = Date.parse(String(body.start))
    expect(Date.now() - begin).toBeGreaterThan(50 * 60_000)
    expect(Date.now() - begin).toBeLessThanOrEqual(60 * 60_000)
  })
})
