import { expect, test } from 'vitest'
import type { NeutralRequest } from '../../src/core/request.ts'
import { withoutUnmapped } from '../../src/manifest/losses.ts'
import type { ChatEndpoint } from '../../src/manifest/provider.ts'

const request: NeutralRequest = {
  model: 'm',
  seed: 7,
  web_search: { max_uses: 3, context_size: 'low' },
  tools: [
    { kind: 'function', name: 'f' },
    { kind: 'custom', name: 'c' },
  ],
  messages: [
    {
      role: 'user',
      name: 'Ann',
      parts: [
        { type: 'text', text: 'hi', cache: {} },
        { type: 'video', url: 'u' },
      ],
    },
    { role: 'user', parts: [{ type: 'tool_result', id: 'a', parts: [{ type: 'video', url: 'u' }] }] },
  ],
  origin: { api: 'chat', body: {} },
}

function stripped(...fields: string[]): NeutralRequest {
  const losses = fields.map((field) => ({ field, unmapped: true }))
  return withoutUnmapped({ losses } as unknown as ChatEndpoint, fields, request)
}

test('a field, a member of a field, a kind of tool, a type of part and a member of messages can be taken out', () => {
  expect(stripped('seed')).not.toHaveProperty('seed')
  expect(stripped('web_search.max_uses').web_search).toEqual({ context_size: 'low' })
  expect(stripped('tools.custom').tools).toEqual([{ kind: 'function', name: 'f' }])
  expect(stripped('parts.video').messages).toEqual([
    { role: 'user', name: 'Ann', parts: [{ type: 'text', text: 'hi', cache: {} }] },
    { role: 'user', parts: [{ type: 'tool_result', id: 'a', parts: [] }] },
  ])
  expect(stripped('parts.cache', 'parts.video').messages[0]?.parts).toEqual([{ type: 'text', text: 'hi' }])
  expect(stripped('messages.name').messages[0]).not.toHaveProperty('name')
})

test('what the mapping itself declares lost stays: it may clamp instead of leaving out', () => {
  const endpoint = { losses: [{ field: 'seed' }] } as unknown as ChatEndpoint
  expect(withoutUnmapped(endpoint, ['seed'], request)).toBe(request)
})

test('without custom tools their calls are those of functions, and nothing is left to choose from', () => {
  const endpoint = { losses: [{ field: 'tools.custom', unmapped: true }] } as unknown as ChatEndpoint
  const asked: NeutralRequest = {
    model: 'm',
    tools: [{ kind: 'custom', name: 'c' }],
    tool_choice: 'auto',
    parallel_tool_calls: true,
    messages: [
      {
        role: 'assistant',
        parts: [{ type: 'tool_call', kind: 'custom', id: 'a', name: 'c', arguments: 'free "text"' }],
      },
    ],
    origin: { api: 'responses', body: {} },
  }
  expect(withoutUnmapped(endpoint, ['tools.custom'], asked)).toEqual({
    model: 'm',
    messages: [
      {
        role: 'assistant',
        parts: [{ type: 'tool_call', id: 'a', name: 'c', arguments: '{"input":"free \\"text\\""}' }],
      },
    ],
    origin: { api: 'responses', body: {} },
  })
})
