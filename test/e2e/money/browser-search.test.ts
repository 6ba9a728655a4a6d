import { afterAll, beforeAll, expect, test } from 'vitest'
import type { CallRecord } from '../../../src/core/call.ts'
import type { Store } from '../../../src/store/open.ts'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { alone, type TestRouter, testRouter } from '../../helpers/router.ts'
import { storeIn } from './budget-world.ts'

// Groq's usage does not count the searches of its browser: the router counts them in the answer.

let provider: LoopbackProvider
let router: TestRouter
let store: Store

const search = { index: 0, type: 'function', name: 'browser.search', arguments: '{"query":"rain"}' }
const open = { index: 1, type: 'function', name: 'browser.open', arguments: '{"id":0}' }
const again = { ...search, index: 2, arguments: '{"query":"sun"}' }
const outputs = [search, open, again].map((run) => ({ ...run, output: 'Found.' }))
const usage = { prompt_tokens: 1_000, completion_tokens: 10, total_tokens: 1_010 }
const facts = { id: 'c', created: 1, model: 'openai/gpt-oss-120b' }
/** Set where the stream breaks off after the searches. */
let breaksOff = false

beforeAll(async () => {
  provider = await loopbackProvider(({ body }, response) => {
    const content = 'Rain, then sun.'
    if (!body.stream) {
      const message = { role: 'assistant', content, executed_tools: outputs }
      const choices = [{ index: 0, message, finish_reason: 'stop' }]
      answerJson(response, { ...facts, object: 'chat.completion', choices, usage })
      return
    }
    beginStream(response)
    const chunk = (delta: object, more: object = {}) => {
      const choices = [{ index: 0, delta, finish_reason: null, ...more }]
      return `data: ${JSON.stringify({ ...facts, object: 'chat.completion.chunk', choices })}\n\n`
    }
    // Each is announced, and reported again with its output.
    for (const [at, run] of [search, open, again].entries())
      response.write(chunk({ executed_tools: [run] }) + chunk({ executed_tools: [outputs[at]] }))
    response.write(chunk({ content }))
    if (breaksOff) {
      response.end()
      return
    }
    const last = { ...facts, object: 'chat.completion.chunk', choices: [], usage }
    response.end(`${chunk({}, { finish_reason: 'stop' })}data: ${JSON.stringify(last)}\n\ndata: [DONE]\n\n`)
  })
  router = await testRouter({ providers: alone({ groq: { base_url: provider.url, secret: 'k' } }) })
  store = await storeIn(router.folder)
})

afterAll(async () => {
  await store.close()
  await router.end()
  await provider.close()
})

const question = [{ role: 'user', content: 'Will it rain?' }]
const clients = {
  '/v1/chat/completions': { messages: question, tools: [{ type: 'web_search' }] },
  '/v1/responses': { input: 'Will it rain?', tools: [{ type: 'web_search' }] },
  '/v1/messages': { messages: question, max_tokens: 99, tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
}
const cases = Object.keys(clients).flatMap((path) => [false, true].map((stream) => ({ path, stream }))) as {
  path: keyof typeof clients
  stream: boolean
}[]

async function call(path: keyof typeof clients, more: object): Promise<CallRecord> {
  const response = await router.call(path, { model: 'groq/openai/gpt-oss-120b', ...clients[path], ...more })
  await response.text().catch(() => '')
  const id = response.headers.get('x-request-id')
  const record = (await Array.fromAsync(store.ledger.each({}))).find((row) => row.id === id)
  if (!record) throw new Error(`call ${id} has no row`)
  return record
}

/** 1,000 tokens at 0.15 USD a million, 10 at 0.60, two searches at 5 USD a thousand, one page at 1 USD. */
const nanoUsd = 150_000 + 6_000 + 10_000_000 + 1_000_000

test.each(cases)('searches and opened pages are charged at $path, stream $stream', async ({ path, stream }) => {
  breaksOff = false
  const { usage, cost } = await call(path, { stream })
  expect(provider.received.at(-1)?.body.tools).toEqual([{ type: 'browser_search' }])
  expect(usage).toMatchObject({ input: 1_000, output: 10, searches: 2, page_visits: 1 })
  expect(cost).toMatchObject({ nanoUsd })
})

test('searches of a stream that breaks off are charged', async () => {
  breaksOff = true
  const { usage } = await call('/v1/chat/completions', { stream: true })
  expect(usage).toMatchObject({ searches: 2, page_visits: 1 })
})

test('a required search is any tool that must be called, and beside a schema there is none', async () => {
  breaksOff = false
  await call('/v1/chat/completions', { tool_choice: { type: 'web_search' } })
  expect(provider.received.at(-1)?.body).toMatchObject({ tool_choice: 'required', tools: [{ type: 'browser_search' }] })
  const schema = { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' } } }
  await call('/v1/chat/completions', { response_format: schema })
  expect(provider.received.at(-1)?.body.tools).toBeUndefined()
})
