import { expect, test } from 'vitest'
import { responses } from '../../src/api/responses/api.ts'
import type { Json } from '../../src/core/json.ts'
import { estimateTokens } from '../../src/money/estimate-tokens.ts'

const long = 'x'.repeat(100_000)
const small = { type: 'function', name: 'a', description: 'x' }

test.each<[what: string, body: { [name: string]: Json }]>([
  [
    'the description of a namespace',
    { input: 'Hi', tools: [{ type: 'namespace', name: 'n', description: long, tools: [small] }] },
  ],
  [
    'a tool of another kind in a namespace',
    {
      input: 'Hi',
      tools: [{ type: 'namespace', name: 'n', tools: [small, { type: 'other', name: long }] }],
    },
  ],
  [
    'a namespace that is offered twice',
    {
      input: 'Hi',
      tools: [
        { type: 'namespace', name: 'n', tools: [small] },
        { type: 'namespace', name: 'n', description: long, tools: [small] },
      ],
    },
  ],
  [
    'a call in a form of its API',
    {
      input: [{ type: 'shell_call', call_id: 'c', status: 'completed', action: { commands: ['ls'] }, note: long }],
    },
  ],
])('%s counts in what bounds a prompt', (_, body) => {
  const request = responses.read({ model: 'm', ...body })
  expect(estimateTokens(request).bytes).toBeGreaterThan(long.length)
})
