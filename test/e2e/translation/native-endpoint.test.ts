import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { answerJson, type LoopbackProvider, loopbackProvider, type Received } from '../../helpers/provider.ts'
import { alone, type TestRouter, testRouter } from '../../helpers/router.ts'

let provider: LoopbackProvider
let router: TestRouter
/** Paths that fail with this status. */
let failing: { [path: string]: number } = {}

beforeAll(async () => {
  provider = await loopbackProvider(answer)
  router = await testRouter({
    providers: alone({
      openai: { base_url: provider.url, unknown_models: 'pass' },
      xai: { base_url: provider.url },
      azure: { base_url: provider.url },
      groq: { base_url: provider.url },
    }),
    env: { OPENAI_API_KEY: 'o', XAI_API_KEY: 'x', AZURE_RESOURCE_NAME: 'r', AZURE_API_KEY: 'a', GROQ_API_KEY: 'g' },
    settings: {
      policies: { 'any@x': { targets: ['groq/llama-3.3-70b-versatile', 'openai/gpt-5.1', 'xai/grok-4.3'] } },
    },
  })
})

afterAll(async () => {
  await router.end()
  await provider.close()
})

beforeEach(() => {
  provider.received.length = 0
  failing = {}
})

const chatAnswer = {
  id: 'c1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
}
const search = { id: 'ws_1', type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'news' } }
const said = (text: string) => ({ type: 'output_text', text, annotations: [] })
const message = { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content: [said('News.')] }
const thought = { id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: 'sealed' }
const responsesAnswer = {
  // Its number is that of the request.
  id: 'resp_',
  object: 'response',
  status: 'completed',
  model: 'gpt-5.1',
  output: [thought, search, message],
  usage: { input_tokens: 1_000, output_tokens: 100, total_tokens: 1_100 },
}

function answer(request: Received, response: ServerResponse): void {
  const { path, body } = request
  const status = failing[path]
  if (status !== undefined) {
    response.writeHead(status).end('{}')
    return
  }
  const id = `resp_${provider.received.length}`
  const answered = { ...responsesAnswer, id, store: body.store ?? true }
  if (path === '/responses/input_tokens') answerJson(response, { object: 'count', input_tokens: 77 })
  else if (path === '/chat/completions') answerJson(response, chatAnswer)
  else if (body.stream) answerEvents(response, answered)
  else answerJson(response, answered)
}

function answerEvents(response: ServerResponse, answered: object): void {
  const events = [
    { type: 'response.created', response: { ...answered, status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: { ...search, status: 'in_progress' } },
    { type: 'response.output_item.done', output_index: 0, item: search },
    { type: 'response.output_text.delta', output_index: 1, content_index: 0, delta: 'News.' },
    { type: 'response.completed', response: { ...answered, output: [search, message] } },
  ]
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.end(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''))
}

const messages = [{ role: 'user', content: 'Any news?' }]
const strict = { 'x-router-strict': 'true' }
const tools = [{ type: 'web_search' }]
const paths = () => provider.received.map(({ path }) => path)

describe('a search under the ordinary prefix', () => {
  test.each(['openai/gpt-5.1', 'azure/gpt-5.1', 'xai/grok-4.3'])('of %s is asked at Responses', async (model) => {
    const response = await router.call('/v1/chat/completions', { model, messages, tools }, strict)
    expect(await response.json()).toMatchObject({
      model,
      choices: [{ message: { content: 'News.' } }],
      usage: { prompt_tokens: 1_000, completion_tokens: 100, server_tool_use_details: { web_search_requests: 1 } },
    })
    expect(provider.received).toMatchObject([
      { path: '/responses', body: { input: [{ role: 'user', content: 'Any news?' }], tools, store: false } },
    ])
  })

  test('costs what searches cost', async () => {
    const cost = async (body: object) => {
      const response = await router.call('/v1/chat/completions', { model: 'openai/gpt-5.1', messages, ...body })
      const { usage } = (await response.json()) as { usage: { cost: number } }
      return usage.cost
    }
    // A thousand tokens in and a hundred out, and one search.
    expect(await cost({ tools })).toBeCloseTo(1_000 * 1.25e-6 + 100 * 10e-6 + 0.01, 9)
    expect(await cost({})).toBeCloseTo(3 * 1.25e-6 + 2 * 10e-6, 9)
    expect(paths()).toEqual(['/responses', '/chat/completions'])
  })

  test('is streamed', async () => {
    const body = { model: 'openai/gpt-5.1', messages, tools, stream: true, stream_options: { include_usage: true } }
    const text = await (await router.call('/v1/chat/completions', body)).text()
    expect(text).toContain('"content":"News."')
    expect(text).toContain('"web_search_requests":1')
    expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true)
    expect(paths()).toEqual(['/responses'])
  })

  test('of Messages is asked there as well, and what is lost is told in the client’s words', async () => {
    const body = { model: 'openai/gpt-5.1', max_tokens: 500, messages, stop_sequences: ['END'] }
    const searching = { ...body, tools: [{ type: 'web_search_20250305', name: 'web_search' }] }
    const response = await router.call('/v1/messages', searching)
    expect(await response.json()).toMatchObject({ usage: { server_tool_use: { web_search_requests: 1 } } })
    expect(response.headers.get('x-router-dropped')).toBe('stop_sequences')
    expect((await router.call('/v1/messages', searching, strict)).status).toBe(400)
    expect(paths()).toEqual(['/responses'])
  })

  test('of a model that cannot search stays where it is', async () => {
    const response = await router.call('/v1/chat/completions', { model: 'openai/gpt-3.5-turbo', messages, tools })
    expect(response.headers.get('x-router-dropped')).toBe('tools.web_search')
    const searches = { model: 'openai/gpt-4o-search-preview', messages, tools }
    await router.call('/v1/chat/completions', searches)
    expect(paths()).toEqual(['/chat/completions', '/chat/completions'])
    expect(provider.received[1]?.body).toHaveProperty('web_search_options')
  })
})

test('tools that run at the provider are asked for at Responses, those of another API are lost as ever', async () => {
  const runs = [{ type: 'code_interpreter', container: { type: 'auto' } }]
  const native = { model: 'openai/gpt-5.1', input: 'Add.', tools: runs, store: false }
  expect((await router.call('/v1/responses', native, strict)).status).toBe(200)
  const foreign = [{ type: 'code_execution_20250825', name: 'code_execution' }]
  const other = await router.call('/v1/messages', {
    model: 'openai/gpt-5.1',
    max_tokens: 500,
    messages,
    tools: foreign,
  })
  expect(other.headers.get('x-router-dropped')).toBe('tools.code_execution_20250825')
  expect(paths()).toEqual(['/responses', '/chat/completions'])
  expect(provider.received[0]?.body).toMatchObject({ input: 'Add.', tools: runs })
})

test('a client of Responses gets the native answer, and goes on with it at either endpoint', async () => {
  const ask = async (body: object) => {
    const response = await router.call('/v1/responses', { model: 'openai/gpt-5.1', ...body })
    return { dropped: response.headers.get('x-router-dropped'), body: (await response.json()) as { id: string } }
  }
  const first = await ask({ input: 'Any news?', tools })
  expect(first.body).toMatchObject({ id: 'resp_1', output: [thought, search, message] })
  // It is stored there: the next search goes on with it by its id.
  await ask({ input: 'More?', tools, previous_response_id: 'resp_1' })
  expect(provider.received[1]).toMatchObject({
    path: '/responses',
    body: { input: 'More?', previous_response_id: 'resp_1' },
  })
  // Without a search the conversation is told, but for what only Responses can read.
  const plain = await ask({ input: 'Thanks.', previous_response_id: 'resp_1' })
  expect(provider.received[2]).toMatchObject({
    path: '/chat/completions',
    body: { messages: [...messages, { role: 'assistant', content: 'News.' }, { role: 'user', content: 'Thanks.' }] },
  })
  expect(plain.dropped).toContain('input.reasoning')
  await ask({ input: 'And now?', tools, previous_response_id: plain.body.id })
  expect(provider.received[3]?.body).not.toHaveProperty('previous_response_id')
  expect(provider.received[3]?.body.input).toHaveLength(7)
})

test('the tokens of a search are counted where it would be asked', async () => {
  const count = async (body: object) =>
    await (await router.call('/v1/responses/input_tokens', { model: 'openai/gpt-5.1', input: 'Hi', ...body })).json()
  expect(await count({ tools })).toMatchObject({ input_tokens: 77 })
  expect(await count({})).toMatchObject({ estimated: true })
})

test('a policy passes over targets that cannot search, and fails over from one native endpoint to the next', async () => {
  failing = { '/responses': 500 }
  const model = 'policy/any@x'
  const down = await router.call('/v1/chat/completions', { model, messages, tools })
  expect(down.status).toBe(502)
  expect(provider.received.map(({ path, body }) => [path, body.model])).toEqual([
    ['/responses', 'gpt-5.1'],
    ['/responses', 'grok-4.3'],
  ])
})

test('lists say what a target can do at any of its endpoints', async () => {
  const entry = async (id: string) => await (await router.call(`/v1/models/${id}`)).json()
  expect(await entry('openai/gpt-5.1')).toMatchObject({ supports_web_search: true })
  expect(await entry('groq/llama-3.3-70b-versatile')).toMatchObject({ supports_web_search: false })
})
