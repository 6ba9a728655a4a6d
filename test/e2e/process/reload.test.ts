import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  answerJson,
  beginStream,
  type LoopbackProvider,
  loopbackProvider,
  pause,
  within,
} from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'

const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm1', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
const manifest = (slug: string, url: string) => `slug: ${slug}
name: Dropped in
base_url: ${url}
auth: { scheme: none }
dialect: openai-chat
models:
  m1:
    api: chat
    context_window: 128000
    max_output_tokens: 4096
    pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000002 }]
`

let provider: LoopbackProvider
let router: TestRouter
let finish: () => void = () => {}

beforeAll(async () => {
  provider = await loopbackProvider((request, response) => {
    const model = request.body.model
    if (!request.body.stream) {
      const message = { role: 'assistant', content: 'dropped in' }
      const usage = { prompt_tokens: 1_000, completion_tokens: 500, total_tokens: 1_500 }
      const choices = [{ index: 0, message, finish_reason: 'stop' }]
      answerJson(response, { id: 'c1', object: 'chat.completion', created: 1, model, choices, usage })
      return
    }
    beginStream(response)
    response.write(chunk({ role: 'assistant', content: 'before ' }))
    finish = () => response.end(`${chunk({ content: 'after' })}${chunk({}, 'stop')}data: [DONE]\n\n`)
  })
  router = await testRouter({ files: { 'providers/first.yaml': manifest('first', provider.url) } })
})

afterAll(async () => {
  await router.end()
  await provider.close()
})

const ask = (model: string, more: object = {}) =>
  router.call('/v1/chat/completions', { model, messages: [{ role: 'user', content: 'x' }], ...more })

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  await within(
    5_000,
    what,
    (async () => {
      while (!(await holds())) await pause(20)
    })(),
  )
}

/** A key that may call models and nothing else. */
async function keyWithout(): Promise<{ api_key: string }> {
  return (await (await router.call('/v1/manage/apikey', { name: 'calls only' })).json()) as { api_key: string }
}

// biome-ignore lint/suspicious/noExplicitAny: an answer is checked field by field.
const ready = async (): Promise<any> => (await router.call('/ready')).json()

test('a manifest dropped in answers within a second, a broken one changes nothing, and a running stream never notices', async () => {
  const stream = await ask('first/m1', { stream: true })
  const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
  expect((await reader?.read())?.value).toContain('before ')

  expect((await ask('dropin/m1')).status).toBe(404)
  router.put('providers/dropin.yaml', manifest('dropin', provider.url))
  await until('the new provider', async () => (await ask('dropin/m1')).status === 200)
  const reply = (await (await ask('dropin/m1')).json()) as { model: string; usage: { cost: number } }
  expect(reply).toMatchObject({ model: 'dropin/m1', usage: { cost: 0.002 } })

  router.put('providers/dropin.yaml', manifest('dropin', provider.url).replace('base_url', 'base_ulr'))
  await until('the refusal', async () => (await ready()).problems.length > 0)
  const { status, problems } = await ready()
  expect(status).toBe('ready')
  expect(problems.join('\n')).toMatch(/^providers\/dropin\.yaml:3:1: .*base_ulr.*base_url/m)
  for (const key of [undefined, 'ir-unknown', (await keyWithout()).api_key]) {
    const headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
    const told = await (await fetch(`${router.url}/ready`, { headers })).json()
    expect(told).toEqual({
      status: 'ready',
      generation: 2,
      reasons: [],
      problem_count: problems.length,
      degraded_count: 0,
      troubled_count: 0,
    })
  }
  expect((await ask('dropin/m1')).status).toBe(200)

  router.put('providers/dropin.yaml', manifest('dropin', provider.url))
  await until('the repair', async () => (await ready()).problems.length === 0)

  finish()
  let rest = ''
  for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) rest += read.value
  expect(rest).toContain('after')
  expect(rest).toContain('[DONE]')
})
