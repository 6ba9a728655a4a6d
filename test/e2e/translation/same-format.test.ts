import { describe, expect, test } from 'vitest'
import { answerJson, beginStream, loopbackProvider, pause } from '../../helpers/provider.ts'
import { testRouter } from '../../helpers/router.ts'

const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-haiku-4-5',
  content: [{ type: 'text', text: 'Hello.' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 9, output_tokens: 2 },
}

test('a Messages body reaches a provider of that format whole: thinking, unknown blocks and fields, and no loss is reported', async () => {
  const provider = await loopbackProvider((_, response) => answerJson(response, message))
  const router = await testRouter({
    providers: { anthropic: { base_url: provider.url, secret: '${KEY}' } },
    env: { KEY: 'sk-1' },
  })
  const body = {
    model: 'anthropic/claude-haiku-4-5',
    max_tokens: 100,
    system: [{ type: 'text', text: 'Be kind.', cache_control: { type: 'ephemeral', ttl: '1h' } }],
    thinking: { type: 'enabled', budget_tokens: 1_024 },
    container: { skills: [{ type: 'anthropic', skill_id: 'pdf' }] },
    mcp_servers: [{ type: 'url', url: 'https://mcp.example' }],
    tools: [
      { type: 'code_execution_20250825', name: 'code_execution' },
      { name: 'f', input_schema: { type: 'object' } },
    ],
    messages: [
      { role: 'user', content: 'Hi' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Hm.', signature: 'raw-seal' },
          { type: 'redacted_thinking', data: 'raw-data' },
          { type: 'server_tool_use', id: 's1', name: 'code_execution', input: {} },
          { type: 'tool_use', id: 't1', name: 'f', input: { big: 1 } },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: [{ type: 'text', text: 'ok' }] }] },
    ],
  }
  const response = await router.call('/v1/messages', body, { 'x-router-strict': 'true' })
  expect(await response.json()).toMatchObject({ ...message, model: 'anthropic/claude-haiku-4-5' })
  expect(response.headers.get('x-router-dropped')).toBeNull()
  expect(provider.received[0]?.body).toEqual({ ...body, model: 'claude-haiku-4-5' })
  await router.end()
  await provider.close()
})

describe('a stream reaches clients of its format whole, each event by itself', () => {
  const text = { item_id: 'msg_1', output_index: 0, content_index: 0 }
  const item = { id: 'msg_1', type: 'message', role: 'assistant', status: 'in_progress', content: [] }
  const response = { id: 'resp_1', object: 'response', created_at: 1, model: 'gpt-4.1', status: 'in_progress' }
  const usage = {
    input_tokens: 3,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 2,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 5,
  }
  const part = { type: 'output_text', text: '', annotations: [] }
  const streams = {
    responses: [
      { type: 'response.created', response: { ...response, output: [] } },
      { type: 'response.in_progress', response: { ...response, output: [] } },
      { type: 'response.output_item.added', output_index: 0, item },
      { type: 'response.content_part.added', ...text, part },
      { type: 'response.output_text.delta', ...text, delta: 'Hello' },
      { type: 'response.output_text.delta', ...text, delta: ' there' },
      { type: 'response.output_text.done', ...text, text: 'Hello there' },
      { type: 'response.content_part.done', ...text, part: { ...part, text: 'Hello there' } },
      { type: 'response.output_item.done', output_index: 0, item: { ...item, status: 'completed' } },
      { type: 'response.completed', response: { ...response, status: 'completed', output: [], usage } },
    ],
    messages: [
      { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
      { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
      { type: 'ping' },
      { type: 'ping' },
      { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'Hm.' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'seal' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'Hello.' } },
      { type: 'content_block_stop', index: 1 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 2 } },
      { type: 'message_stop' },
    ],
  }
  const asked = {
    responses: { path: '/v1/responses', slug: 'openai-responses', model: 'gpt-4.1', body: { input: 'Hi' } },
    messages: {
      path: '/v1/messages',
      slug: 'anthropic',
      model: 'claude-haiku-4-5',
      body: { max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] },
    },
  }

  test.each(['responses', 'messages'] as const)('%s', async (api) => {
    const provider = await loopbackProvider(async (_, answer) => {
      beginStream(answer)
      for (const event of streams[api]) {
        answer.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
        await pause(5)
      }
      answer.end()
    })
    const { path, slug, model, body } = asked[api]
    const router = await testRouter({ providers: { [slug]: { base_url: provider.url, secret: 'sk-1' } } })
    const answered = await router.call(path, { ...body, model: `${slug}/${model}`, stream: true })
    const types = [...(await answered.text()).matchAll(/"type":"((?:response|message|content_block|ping)[._a-z]*)"/g)]
    const names = new Set(streams[api].map(({ type }) => type))
    const got = types.flatMap(([, type = '']) => (names.has(type) ? type : []))
    // What only keeps the connection is said once.
    const sent = streams[api].map(({ type }) => type).filter((type, at, all) => type !== 'ping' || all[at - 1] !== type)
    expect(got).toEqual(sent)
    await router.end()
    await provider.close()
  })
})
