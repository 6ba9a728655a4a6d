import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { formatTime } from '../../../src/core/time.ts'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { simulatorOnly, type TestRouter, testRouter } from '../../helpers/router.ts'

let provider: LoopbackProvider

/** Long from now, for any clock of a test. */
const later = formatTime(Date.now() + 400 * 86_400_000).slice(0, 10)

beforeAll(async () => {
  provider = await loopbackProvider(({ body }, response) => {
    const { model } = body as { model: string }
    if (model === 'gone') return answerJson(response, { error: { message: 'The model does not exist.' } }, 404)
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }]
    answerJson(response, { id: 'c1', model, choices, usage: { prompt_tokens: 1, completion_tokens: 1 } })
  })
})

afterAll(() => provider?.close())

/** Provider `maker` follows the setting for all, and `other` decides otherwise. */
function filesOf(refuseRetired?: boolean) {
  const manifest = (slug: string, more = '') => `slug: ${slug}
name: ${slug}
base_url: ${provider.url}
auth: { scheme: none }
dialect: openai-chat
${more}`
  const catalog = (slug: string) => `provider: ${slug}
defaults: { api: chat }
models:
  old: { shutdown: 2026-10-16, successor: new, aliases: [older], pricing: { input: 1e-9 } }
  gone: { shutdown: 2026-10-16, pricing: { input: 1e-9 } }
  new: { snapshot: new-2026-01-01, pricing: { input: 1e-6 } }
  new-2026-01-01: { shutdown: ${later} }
`
  return {
    ...simulatorOnly,
    'providers/maker.yaml': manifest('maker'),
    'providers/other.yaml': manifest('other', `refuse_retired: ${!refuseRetired}\n`),
    'catalog/maker.yaml': catalog('maker'),
    'catalog/other.yaml': catalog('other'),
  }
}

const ask = (router: TestRouter, model: string, more = {}) =>
  router.call('/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hi' }], ...more })

const idsIn = async (router: TestRouter, list: string) => {
  const { data } = (await (await router.call(list)).json()) as { data: { id: string }[] }
  return data.map(({ id }) => id).filter((id) => id.startsWith('maker/'))
}

describe('a model past the day of its retirement', () => {
  let router: TestRouter
  const lines: { msg: string; model?: string; successor?: string }[] = []

  beforeAll(async () => {
    const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
    const policies = {
      both: { targets: ['maker/old', 'maker/new'] },
      cheapest: { targets: ['maker/new', 'maker/old'], sort: 'price' },
    }
    router = await testRouter({ files: filesOf(), settings: { policies }, log })
  })
  afterAll(() => router?.end())

  test.each(['maker/old', 'maker/older'])('%s is asked, with a header that names its successor', async (model) => {
    const response = await ask(router, model)
    expect(response.status).toBe(200)
    expect(response.headers.get('x-router-retired')).toBe('2026-10-16; successor=maker/new')
    await response.body?.cancel()
  })

  test('is reported in the log once', async () => {
    for (const _ of [1, 2]) await (await ask(router, 'maker/old')).text()
    const about = lines.filter(({ model }) => model === 'maker/old')
    expect(about).toMatchObject([{ msg: 'a retired model is called', successor: 'maker/new' }])
  })

  test('fails as the provider says, with the header', async () => {
    const response = await ask(router, 'maker/gone')
    expect(response.status).toBe(404)
    expect(response.headers.get('x-router-retired')).toBe('2026-10-16')
    await response.body?.cancel()
  })

  test.each(['both', 'cheapest'])('of the policy %s is asked after the others', async (policy) => {
    const response = await ask(router, policy)
    expect(response.headers.get('x-router-model')).toBe('maker/new')
    expect(response.headers.get('x-router-retired')).toBeNull()
    await response.body?.cancel()
  })

  test('is in no list, and is described when it is asked for', async () => {
    for (const list of ['/v1/models', '/v1/models/all']) {
      expect(await idsIn(router, list)).toEqual(['maker/new', 'maker/new-2026-01-01'])
    }
    const shown = await (await router.call('/v1/models/maker/old')).json()
    expect(shown).toMatchObject({ id: 'maker/old', shutdown: '2026-10-16', successor: 'new' })
  })

  test('is refused by a provider that refuses it', async () => {
    const response = await ask(router, 'other/old')
    expect(response.status).toBe(404)
    expect(await response.text()).toContain("retired by its provider on 2026-10-16: call 'other/new' instead")
  })

  test('before its day is served without the header', async () => {
    const response = await ask(router, 'maker/new-2026-01-01')
    expect([response.status, response.headers.get('x-router-retired')]).toEqual([200, null])
    await response.body?.cancel()
    const shown = async (model: string) => await (await router.call(`/v1/models/maker/${model}`)).json()
    expect(await shown('new-2026-01-01')).toMatchObject({ shutdown: later })
    expect(await shown('new')).toMatchObject({ snapshot: 'new-2026-01-01' })
  })
})

describe('with refuse_retired', () => {
  let router: TestRouter

  beforeAll(async () => {
    router = await testRouter({ files: filesOf(true), settings: { refuse_retired: true } })
  })
  afterAll(() => router?.end())

  test.each(['maker/old', 'maker/older'])(
    '%s is a 404 that names its successor, and nobody is asked',
    async (model) => {
      const before = provider.received.length
      const response = await ask(router, model)
      expect(response.status).toBe(404)
      const { error } = (await response.json()) as { error: { code: string; message: string } }
      expect(error.code).toBe('model_not_found')
      expect(error.message).toContain("retired by its provider on 2026-10-16: call 'maker/new' instead")
      expect(provider.received).toHaveLength(before)
    },
  )

  test('a retired model is not described either', async () => {
    const response = await router.call('/v1/models/maker/old')
    expect(response.status).toBe(404)
    expect(await response.text()).toContain("call 'maker/new' instead")
  })

  test('a provider that does not refuse is asked', async () => {
    const response = await ask(router, 'other/old')
    expect([response.status, response.headers.get('x-router-retired')]).toEqual([
      200,
      '2026-10-16; successor=other/new',
    ])
    await response.body?.cancel()
  })
})
