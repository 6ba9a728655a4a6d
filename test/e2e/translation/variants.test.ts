import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'

let provider: LoopbackProvider
let router: TestRouter

beforeAll(async () => {
  provider = await loopbackProvider(({ path }, response) => answerJson(response, answers[path.replace(/^.*\//, '')]))
  router = await testRouter({
    providers: { azure: { base_url: provider.url }, perplexity: { base_url: provider.url } },
    env: { AZURE_RESOURCE_NAME: 'r', AZURE_API_KEY: 'k', PERPLEXITY_API_KEY: 'p' },
  })
})

afterAll(async () => {
  await router.end()
  await provider.close()
})

beforeEach(() => {
  provider.received.length = 0
})

const greeting = 'Hello.'
const answers: { [ending: string]: object } = {
  completions: {
    id: 'c1',
    choices: [{ index: 0, message: { role: 'assistant', content: greeting }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  },
  messages: {
    id: 'm1',
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text: greeting }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 3, output_tokens: 2 },
  },
  responses: {
    id: 'r1',
    status: 'completed',
    output: [
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: greeting, annotations: [] }] },
    ],
    usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
  },
}

test.each([
  ['gpt-5.2', '/chat/completions', 'max_completion_tokens'],
  ['claude-haiku-4-5', '/v1/messages', 'max_tokens'],
  ['gpt-5.1-codex', '/responses', 'max_output_tokens'],
])('one slug serves %s at %s in its own words, with one credential', async (model, path, limit) => {
  const messages = [{ role: 'user', content: 'Hi' }]
  const response = await router.call('/v1/chat/completions', { model: `azure/${model}`, messages, max_tokens: 50 })
  expect(response.status).toBe(200)
  expect(response.headers.get('x-router-model')).toBe(`azure/${model}`)
  expect(await response.json()).toMatchObject({
    model: `azure/${model}`,
    choices: [{ message: { content: greeting }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 3, completion_tokens: 2 },
  })
  expect(provider.received).toMatchObject([{ path, headers: { 'api-key': 'k' }, body: { model, [limit]: 50 } }])
})

test('results of perplexity are cited in the client’s own format', async () => {
  answers.completions = {
    ...answers.completions,
    citations: ['https://a.example', 'https://b.example'],
    choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.[2]' }, finish_reason: 'stop' }],
  }
  const messages = [{ role: 'user', content: 'Hi' }]
  const reply = await (await router.call('/v1/chat/completions', { model: 'perplexity/sonar', messages })).json()
  const url = 'https://b.example'
  expect(reply).toMatchObject({
    choices: [
      {
        message: {
          content: 'Yes.[2]',
          annotations: [{ type: 'url_citation', url_citation: { url, title: url, start_index: 4, end_index: 7 } }],
        },
      },
    ],
    usage: { cost: 0.005005, server_tool_use_details: { web_search_requests: 1 } },
  })
})
