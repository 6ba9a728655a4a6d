import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { formatTime } from '../../../src/core/time.ts'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { simulatorOnly, type TestRouter, testRouter } from '../../helpers/router.ts'

let provider: LoopbackProvider
let router: TestRouter

/** Long from now, for any clock of a test. */
const later = formatTime(Date.now() + 400 * 86_400_000).slice(0, 10)

beforeAll(async () => {
  provider = await loopbackProvider((_, response) => {
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }]
    answerJson(response, { id: 'c1', choices, usage: { prompt_tokens: 1, completion_tokens: 1 } })
  })
  const manifest = `slug: maker
name: Maker
base_url: ${provider.url}
auth: { scheme: none }
dialect: openai-chat
`
  const catalog = `provider: maker
defaults: { api: chat }
models:
  old: { shutdown: 2026-10-16, successor: new, aliases: [older] }
  new: { snapshot: new-2026-01-01 }
  new-2026-01-01: { shutdown: ${later} }
`
  const files = { ...simulatorOnly, 'providers/maker.yaml': manifest, 'catalog/maker.yaml': catalog }
  router = await testRouter({ files })
})

afterAll(async () => {
  await router?.end()
  await provider?.close()
})

const ask = (model: string) =>
  router.call('/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hi' }] })

describe('a model that its provider has shut down', () => {
  test.each(['maker/old', 'maker/older'])(
    '%s is a 404 that names its successor, and nobody is asked',
    async (model) => {
      const before = provider.received.length
      const response = await ask(model)
      expect(response.status).toBe(404)
      const { error } = (await response.json()) as { error: { code: string; message: string } }
      expect(error.code).toBe('model_not_found')
      expect(error.message).toContain("shut down by its provider on 2026-10-16: call 'maker/new' instead")
      expect(provider.received).toHaveLength(before)
    },
  )

  test('is in no list, and asking for it says why', async () => {
    for (const list of ['/v1/models', '/v1/models/all']) {
      const { data } = (await (await router.call(list)).json()) as { data: { id: string }[] }
      const ids = data.map(({ id }) => id).filter((id) => id.startsWith('maker/'))
      expect(ids).toEqual(['maker/new', 'maker/new-2026-01-01'])
    }
    const response = await router.call('/v1/models/maker/old')
    expect(response.status).toBe(404)
    expect(await response.text()).toContain("call 'maker/new' instead")
  })
})

test('one that will be shut down is served and says when, one without a date which dated one it stands for', async () => {
  expect((await ask('maker/new-2026-01-01')).status).toBe(200)
  const shown = async (model: string) => await (await router.call(`/v1/models/maker/${model}`)).json()
  expect(await shown('new-2026-01-01')).toMatchObject({ shutdown: later })
  expect(await shown('new')).toMatchObject({ snapshot: 'new-2026-01-01' })
})
