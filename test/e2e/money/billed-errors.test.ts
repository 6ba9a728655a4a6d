import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../src/core/json.ts'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'

// A provider that counts what a call used has billed it, also where it says that the call failed.

const inOut = { input_tokens: 10, output_tokens: 4 }
const failed = { id: 'r', status: 'failed', error: { message: 'No.', code: 'server_error' } }
/** The error of each format, with what was counted, and the event of a stream that says it. */
const formats: { [dialect: string]: { body: JsonObject; event?: JsonObject } } = {
  'openai-chat': {
    body: { error: { message: 'No.', type: 'server_error' }, usage: { prompt_tokens: 10, completion_tokens: 4 } },
  },
  'anthropic-messages': { body: { type: 'error', error: { message: 'No.', type: 'api_error' }, usage: inOut } },
  'openai-responses': {
    body: { ...failed, usage: inOut },
    event: { type: 'response.failed', response: { ...failed, usage: inOut } },
  },
  gemini: {
    body: {
      error: { message: 'No.', code: 500, status: 'INTERNAL' },
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 4, totalTokenCount: 14 },
    },
  },
}
const dialects = Object.keys(formats)

let provider: LoopbackProvider
let router: TestRouter
let how = ''

beforeAll(async () => {
  provider = await loopbackProvider(({ path }, response) => {
    const { body, event = body } = formats[path.split('/')[1] ?? ''] ?? { body: {} }
    if (how !== 'an event') return answerJson(response, body, how === 'a status' ? 500 : 200)
    beginStream(response)
    response.end(`event: ${event.type ?? 'message'}\ndata: ${JSON.stringify(event)}\n\n`)
  })
  const manifest = (dialect: string) => `slug: ${dialect}
name: ${dialect}
base_url: ${provider.url}/${dialect}
auth: { scheme: none }
dialect: ${dialect}
models: { m1: { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000002 }] } }
`
  router = await testRouter({
    files: Object.fromEntries(dialects.map((dialect) => [`providers/${dialect}.yaml`, manifest(dialect)])),
  })
})

afterAll(async () => {
  await router?.end()
  await provider?.close()
})

describe.each(dialects)('%s', (dialect) => {
  test.each([
    ['a whole answer', false],
    ['a status', false],
    ['a document in place of a stream', true],
    ['an event', true],
  ])('an error as %s is paid by what it counts', async (manner, stream) => {
    how = manner
    const body = { model: `${dialect}/m1`, stream, max_tokens: 50, messages: [{ role: 'user', content: 'Hi' }] }
    for (const path of ['/v1/chat/completions', '/v1/messages']) {
      expect((await router.call(path, body)).status).toBe(502)
      const books = new Database(join(router.folder, 'data/router.sqlite'), { readonly: true })
      const cost = books.prepare('SELECT cost_nano FROM ledger ORDER BY rowid DESC LIMIT 1').pluck().get()
      books.close()
      expect(cost).toBe(10_000 + 4 * 2_000)
    }
  })
})
