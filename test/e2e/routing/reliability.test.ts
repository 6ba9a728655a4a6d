import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'

const head = { id: 'c1', object: 'chat.completion', created: 1, model: 'm' }
const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 }

function says(words: string, response: ServerResponse, stream: boolean): void {
  if (!stream) {
    const message = { role: 'assistant', content: words }
    answerJson(response, { ...head, choices: [{ index: 0, message, finish_reason: 'stop' }], usage })
    return
  }
  beginStream(response)
  const chunk = { ...head, object: 'chat.completion.chunk' }
  const choices = [{ index: 0, delta: { content: words }, finish_reason: 'stop' }]
  response.end(`data: ${JSON.stringify({ ...chunk, choices })}\n\ndata: [DONE]\n\n`)
}

let provider: LoopbackProvider
let router: TestRouter

const price = 'pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000002 }]'
const manifest = (slug: string, url: string) => `slug: ${slug}
name: ${slug}
base_url: ${url}
auth: { scheme: none }
dialect: openai-chat
unknown_models: pass
models: { "*": { api: chat, ${price} } }
`

beforeAll(async () => {
  provider = await loopbackProvider(({ body: { model, stream } }, response) => {
    if (model.startsWith('silent')) return
    const status = /^fails-(\d+)/.exec(model)?.[1]
    if (status) answerJson(response, { error: { message: 'No.' } }, Number(status), retryAfterOf(model))
    else says(model, response, stream === true)
  })
  router = await testRouter({
    // Nothing listens at port 1.
    files: {
      'providers/far.yaml': manifest('far', provider.url),
      // Its credential is closed by what it refuses.
      'providers/refusing.yaml': manifest('refusing', provider.url),
      'providers/nowhere.yaml': manifest('nowhere', 'http://127.0.0.1:1'),
    },
    settings: {
      routing: {},
      health: {},
      policies: {
        four: { targets: ['far/fails-503-a', 'far/fails-503-b', 'far/fails-503-c', 'far/well'] },
        'silent-first': { targets: ['far/silent-a', 'far/well'], total: '1s' },
        'unreachable-first': { targets: ['nowhere/m', 'far/well'] },
      },
    },
    threads: 1,
  })
})

afterAll(async () => {
  await router?.end()
  await provider?.close()
})

function retryAfterOf(model: string): Record<string, string> {
  const seconds = /-after-(\d+)/.exec(model)?.[1]
  return seconds === undefined ? {} : { 'retry-after': seconds }
}

async function ask(model: string, more: object = {}, headers: Record<string, string> = {}) {
  const messages = [{ role: 'user', content: 'Hi' }]
  const began = performance.now()
  const response = await router.call('/v1/chat/completions', { model, messages, max_tokens: 10, ...more }, headers)
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, ms: performance.now() - began }
}

test('a target that is well is asked although three before it fail, from the first call on', async () => {
  for (let call = 0; call < 8; call++) expect((await ask('four')).text).toContain('"content":"well"')
})

test('a connection that does not stand moves to the other target before it is tried again', async () => {
  const { status, headers } = await ask('unreachable-first')
  expect([status, headers.get('x-router-attempts')]).toEqual([200, '2'])
})

describe.each([false, true])('streamed: %s', (stream) => {
  test('a silent first target leaves time for the next one, within the time of its policy', async () => {
    expect((await ask('silent-first', { stream })).text).toContain('"content":"well"')
  })

  test('and within that of the caller', async () => {
    const models = ['far/well']
    const answer = await ask('far/silent-b', { stream, models }, { 'x-router-timeout': '600ms' })
    expect(answer.text).toContain('"content":"well"')
    expect(answer.ms).toBeGreaterThan(290)
  })
})

describe('x-should-retry', () => {
  const cases: [what: string, model: string, header: string | null, retryAfter: string | null][] = [
    ['a provider that fails', 'far/fails-500', null, null],
    ['an overload', 'far/fails-503', null, null],
    ['an overload that names a time', 'far/fails-529-after-30', null, '30'],
    ['a busy provider', 'far/fails-429-after-9', null, '9'],
    ['no connection', 'nowhere/any', null, null],
    ['a busy provider that names a long time', 'far/fails-429-after-61', 'false', '61'],
    ['a wrong credential', 'refusing/fails-401', 'false', null],
    ['an exhausted quota', 'refusing/fails-402', 'false', null],
    ['a refusal', 'far/fails-400', 'false', null],
    ['a model that is gone', 'far/fails-404', 'false', null],
  ]
  test.each(cases)('after %s', async (_, model, header, retryAfter) => {
    const { headers } = await ask(`${model}-should-retry`)
    expect([headers.get('x-should-retry'), headers.get('retry-after')]).toEqual([header, retryAfter])
  })

  test('is not sent after a time limit', async () => {
    const { status, headers } = await ask('far/silent-c', {}, { 'x-router-timeout': '100ms' })
    expect([status, headers.get('x-should-retry')]).toEqual([502, null])
  })
})

test('an explanation has the status that the provider itself has sent', async () => {
  const { text } = await ask('far/fails-529-explained', {}, { 'x-router-explain': 'true' })
  const { attempts } = JSON.parse(text).error.router.explain
  expect(attempts.map(({ status, provider_status }: Record<string, number>) => [status, provider_status])).toEqual([
    [502, 529],
    [502, 529],
  ])
})
