import { afterAll, beforeAll, expect, test } from 'vitest'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { alone, type TestRouter, testRouter } from '../../helpers/router.ts'

let provider: LoopbackProvider
let router: TestRouter

beforeAll(async () => {
  provider = await loopbackProvider(({ body }, response) => {
    // What is compacted repeats the calls of the conversation.
    const output = body.input.map((item: object, index: number) => ({ id: `i_${index}`, ...item }))
    answerJson(response, {
      id: 'resp_1',
      object: 'response.compaction',
      output,
      usage: { input_tokens: 9, output_tokens: 3, total_tokens: 12 },
    })
  })
  router = await testRouter({ providers: alone({ 'openai-responses': { base_url: provider.url, secret: 'k' } }) })
})

afterAll(async () => {
  await router.end()
  await provider.close()
})

test('tools of a compacted conversation have names that the provider takes there, and those of the client here', async () => {
  const name = 'mcp__a_server_with_a_very_long_name__and_a_tool_whose_name_is_very_long_too'
  const short = 'mcp__a_server_with_a_very_long_name__and_a_tool_whose_n_aa974dd5'
  const input = [
    { role: 'user', content: 'Hi' },
    { type: 'function_call', call_id: 'a', name, arguments: '{}' },
    { type: 'function_call_output', call_id: 'a', output: 'Done.' },
  ]
  const tools = [{ type: 'function', name, parameters: { type: 'object', properties: {} }, strict: false }]
  const response = await router.call('/v1/responses/compact', { model: 'openai-responses/gpt-5.4', input, tools })
  const answer = (await response.json()) as { output: object[] }
  const sent = provider.received.at(-1)
  expect(sent?.path).toBe('/responses/compact')
  expect(sent?.body.input[1]).toMatchObject({ type: 'function_call', name: short })
  expect(answer.output[1]).toMatchObject({ type: 'function_call', call_id: 'a', name })
  expect(JSON.stringify(answer)).not.toContain(short)
})
