import { expect, test } from 'vitest'
import { answerJson, loopbackProvider } from '../helpers/provider.ts'
import { testRouter } from '../helpers/router.ts'

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
