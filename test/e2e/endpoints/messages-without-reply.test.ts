import { afterAll, beforeAll, expect, test } from 'vitest'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { alone, type TestRouter, testRouter } from '../../helpers/router.ts'

let provider: LoopbackProvider
let router: TestRouter

beforeAll(async () => {
  provider = await loopbackProvider((_request, response) => {
    const usage = { input_tokens: 9, output_tokens: 0 }
    answerJson(response, {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      content: [],
      stop_reason: 'max_tokens',
      usage,
    })
  })
  const reached = { base_url: provider.url, secret: 'sk-on-loopback' }
  router = await testRouter({ providers: alone({ anthropic: reached, openai: reached, google: reached }) })
})

afterAll(async () => {
  await router.end()
  await provider.close()
})

const body = { max_tokens: 0, messages: [{ role: 'user', content: 'Keep this.' }] }

test.each(['openai/gpt-4.1', 'google/gemini-3.5-flash'])(
  '%s is not asked for a whole reply instead of none',
  async (model) => {
    const before = provider.received.length
    const response = await router.call('/v1/messages', { ...body, model })
    expect(response.status).toBe(400)
    expect(((await response.json()) as { error: unknown }).error).toMatchObject({ param: 'max_tokens' })
    expect(provider.received).toHaveLength(before)
  },
)

test('a provider of the Messages format fills its cache', async () => {
  const response = await router.call('/v1/messages', { ...body, model: 'anthropic/claude-sonnet-4-6' })
  expect(response.status).toBe(200)
  expect(provider.received.at(-1)?.body).toMatchObject({ max_tokens: 0 })
})
