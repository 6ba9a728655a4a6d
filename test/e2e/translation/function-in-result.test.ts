import { afterAll, beforeAll, expect, test } from 'vitest'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'

// Only a run shows that these mappings give a function: the router's own representation of it must not leave the router.

const head = (slug: string) => `slug: ${slug}
name: ${slug}
base_url: http://127.0.0.1:9
auth: { scheme: none }
models: { m: { api: chat, also: [embedding] } }
`

const chat = (parts: { request?: string; reply?: string; event?: string }) => `endpoints:
  chat:
    path: /talk
    request:
      body: '${parts.request ?? '{ "live": stream, "words": $join(messages.parts.text) }'}'
    reply: '${parts.reply ?? '{ "parts": { "type": "text", "text": words }, "finish": "stop" }'}'
    events: { "*": '${parts.event ?? '{ "text": words, "finish": over }'}' }
`

const manifests = {
  request: `${head('request')}${chat({ request: '{ "words": [{ "inner": $eval("$sum") }] }' })}`,
  reply: `${head('reply')}${chat({ reply: '{ "parts": { "type": "text", "text": $eval("$sum") }, "finish": "stop" }' })}`,
  event: `${head('event')}${chat({ event: '{ "text": $eval("$sum") }' })}`,
  operation: `${head('operation')}endpoints:
  embed: { path: /vectors, request: { body: '{ "texts": [input, $eval("$sum")] }' } }
`,
}

let provider: LoopbackProvider
let router: TestRouter
beforeAll(async () => {
  provider = await loopbackProvider(({ body }, response) => {
    if (!body.live) return answerJson(response, { words: 'Hello' })
    beginStream(response)
    response.end('data: {"words":"Hello","over":"stop"}\n\n')
  })
  const files = Object.fromEntries(Object.entries(manifests).map(([name, text]) => [`providers/${name}.yaml`, text]))
  const at = { base_url: provider.url }
  const providers = Object.fromEntries(Object.keys(manifests).map((name) => [name, at]))
  router = await testRouter({ files, providers })
})
afterAll(async () => {
  await router?.end()
  await provider?.close()
})

const paths = ['/v1/chat/completions', '/v1/messages', '/v1/responses']

async function talk(path: string, slug: string, stream: boolean): Promise<{ status: number; text: string }> {
  const said = path.endsWith('responses')
    ? { input: 'Hi' }
    : { max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] }
  const response = await router.call(path, { model: `${slug}/m`, stream, ...said })
  return { status: response.status, text: await response.text() }
}

test.each(paths)('a request with a function is not sent, at %s', async (path) => {
  for (const stream of [false, true]) {
    provider.received.length = 0
    const { status, text } = await talk(path, 'request', stream)
    expect(status).toBe(502)
    expect(text).toContain('could not be translated for request: the mapping `request` failed')
    expect(text).toContain('contains a function')
    expect(text).not.toContain('_jsonata')
    expect(provider.received).toEqual([])
  }
})

test.each(paths)('a reply or an event with a function does not reach the client, at %s', async (path) => {
  const whole = await talk(path, 'reply', false)
  expect(whole.status).toBe(502)
  expect(whole.text).toContain('of reply could not be read: the mapping `reply` failed')
  const streamed = await talk(path, 'event', true)
  expect(streamed.text).toContain('of event could not be read: the mapping `events.*` failed')
  expect(whole.text + streamed.text).not.toContain('_jsonata')
})

test('a request of another endpoint with a function is not sent', async () => {
  provider.received.length = 0
  const response = await router.call('/v1/embeddings', { model: 'operation/m', input: 'x' })
  expect([response.status, provider.received]).toEqual([502, []])
  expect(await response.text()).toContain('the mapping `request` failed')
})
