import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'

const whole = {
  id: 'chatcmpl-1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
}

let provider: LoopbackProvider
let router: TestRouter

beforeAll(async () => {
  provider = await loopbackProvider((_, response) => answerJson(response, whole))
  const models = {
    plain: {
      api: 'chat',
      pricing: [{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 1e-6 }],
      supports_vision: false,
      supports_tool_calling: false,
      supports_reasoning: false,
    },
    // Promises more than chat completions of this provider can do.
    able: {
      api: 'chat',
      pricing: [{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 1e-6 }],
      supports_vision: true,
      supports_tool_calling: true,
      supports_web_search: true,
    },
  }
  router = await testRouter({
    providers: { groq: { base_url: provider.url, secret: '${UPSTREAM_KEY}', models } },
    env: { UPSTREAM_KEY: 'upstream' },
  })
})
afterAll(async () => {
  await router.end()
  await provider.close()
})
beforeEach(() => {
  provider.received.length = 0
})

const data = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const url = `data:image/png;base64,${data}`
const parameters = { type: 'object', properties: { a: { type: 'string' } } }

/** A picture, a tool that is demanded and a wish for reasoning, API by API. */
const calls: [path: string, body: object, dropped: string][] = [
  [
    '/v1/chat/completions',
    {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hello' },
            { type: 'image_url', image_url: { url } },
          ],
        },
      ],
      tools: [{ type: 'function', function: { name: 'look', parameters } }],
      tool_choice: 'required',
      parallel_tool_calls: false,
      reasoning_effort: 'high',
    },
    'reasoning_effort,image_url,tools.function,parallel_tool_calls,tool_choice',
  ],
  [
    '/v1/responses',
    {
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'Hello' },
            { type: 'input_image', image_url: url },
          ],
        },
      ],
      tools: [{ type: 'function', name: 'look', parameters, strict: false }],
      tool_choice: 'required',
      parallel_tool_calls: false,
      reasoning: { effort: 'high' },
      store: false,
    },
    'reasoning,input.input_image,tools.function,parallel_tool_calls,tool_choice',
  ],
  [
    '/v1/messages',
    {
      max_tokens: 5_000,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hello' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data } },
          ],
        },
      ],
      tools: [{ name: 'look', input_schema: parameters }],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
      thinking: { type: 'enabled', budget_tokens: 2_000 },
    },
    'thinking,messages.image,tools.function,tool_choice.disable_parallel_tool_use,tool_choice',
  ],
]

describe.each(calls)('%s', (path, body, dropped) => {
  test('a model gets nothing that its entry denies, and the client hears of it', async () => {
    const response = await router.call(path, { model: 'groq/plain', ...body })
    expect(response.status).toBe(200)
    const sent = provider.received[0]?.body
    expect(sent).not.toHaveProperty('tools')
    expect(sent).not.toHaveProperty('tool_choice')
    expect(sent).not.toHaveProperty('parallel_tool_calls')
    expect(sent).not.toHaveProperty('reasoning_effort')
    expect(JSON.stringify(sent)).not.toContain(data)
    expect(JSON.stringify(sent)).toContain('Hello')
    expect(response.headers.get('x-router-dropped')).toBe(dropped)
  })

  test('in strict mode it is refused, and nothing is sent', async () => {
    const response = await router.call(path, { model: 'groq/plain', ...body }, { 'x-router-strict': 'true' })
    expect(response.status).toBe(400)
    expect(provider.received).toEqual([])
  })
})

test('the list says what is sent', async () => {
  const entry = async (id: string) => await (await router.call(`/v1/models/${id}`)).json()
  expect(await entry('groq/plain')).toMatchObject({ supports_vision: false, supports_tool_calling: false })
  expect(await entry('groq/able')).toMatchObject({
    supports_vision: true,
    supports_tool_calling: true,
    supports_web_search: false,
  })
})
