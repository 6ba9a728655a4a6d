import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Simulator, startSimulator } from '../../src/simulator/server.ts'
import { limit, processorTime } from '../helpers/time.ts'

// The simulator runs in the process of the router: no request may hold it.

let simulator: Simulator
beforeAll(async () => {
  simulator = await startSimulator()
})
afterAll(() => simulator.close())

const many = <T>(count: number, one: (index: number) => T) => Array.from({ length: count }, (_, index) => one(index))
const user = (content: string) => [{ role: 'user', content }]
const schema = (json: object) => ({
  model: 'echo',
  messages: user('x'),
  response_format: { type: 'json_schema', json_schema: { name: 'x', schema: json } },
})
const nested = (depth: number): object => ({ type: 'array', minItems: 50, items: depth > 0 ? nested(depth - 1) : {} })
const choices = many(200, (index) => ({ value: `v${index}` }))

const hostile: [what: string, path: string, body: object][] = [
  ['a long message', '/chat/completions', { model: 'echo', messages: user('a '.repeat(1_000_000)) }],
  ['many messages', '/chat/completions', { model: 'echo', messages: many(6_000, () => user('a '.repeat(50))[0]) }],
  ['long stops', '/chat/completions', { model: 'echo', messages: user('x'), stop: many(100_000, () => 'abc') }],
  ['a long text of a schema', '/chat/completions', schema({ type: 'string', minLength: 5e8 })],
  ['a long list of a schema', '/chat/completions', schema({ type: 'array', minItems: 1e9, items: {} })],
  [
    'a long text many times in a list of a schema',
    '/chat/completions',
    schema({ type: 'array', minItems: 4_000, items: { default: 'x'.repeat(50_000) } }),
  ],
  ['lists in lists of a schema', '/chat/completions', schema(nested(5))],
  [
    'many calls of long lists',
    '/chat/completions',
    {
      model: 'echo',
      messages: user('all'),
      tools: many(3_000, (index) => ({
        type: 'function',
        function: { name: `f${index}`, parameters: { type: 'array', minItems: 4_000 } },
      })),
    },
  ],
  ['a long text', '/embeddings', { model: 'vectors', input: 'a b '.repeat(50_000), dimensions: 1_024 }],
  ['many texts', '/embeddings', { model: 'vectors', input: many(15_000, () => 'a'), dimensions: 1_024 }],
  ['a long query', '/rerank', { model: 'ranker', query: 'a '.repeat(50_000), documents: many(1_000, () => 'a') }],
  ['many documents', '/rerank', { model: 'ranker', query: 'a', documents: many(15_000, () => 'a') }],
  ['many verdicts', '/moderations', { model: 'moderator', input: many(15_000, () => 'a') }],
  ['a long prompt', '/completions', { model: 'writer', prompt: 'a '.repeat(600_000) }],
  ['many completions', '/completions', { model: 'writer', prompt: many(2_000, () => 'a'), n: 128 }],
  [
    'a long input',
    '/decisions',
    {
      model: 'judge',
      input: 'w '.repeat(50_000),
      questions: many(50, () => ({ type: 'choice', instructions: 'x', choices })),
    },
  ],
]

const post = (path: string, body: object) =>
  fetch(simulator.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

test.each(hostile)('%s at %s is refused', async (_, path, body) => {
  const { result, ms } = await processorTime(() => post(path, body))
  expect([result.status, ((await result.json()) as { error: { message: string } }).error.message]).toEqual([
    400,
    expect.stringMatching(/maximum context length|at most|too large/),
  ])
  expect(ms).toBeLessThan(limit(1_000))
})

const dear: [what: string, path: string, body: object][] = [
  ['a long message', '/chat/completions', { model: 'echo', messages: user('a '.repeat(250_000)) }],
  ['pictures', '/images/generations', { model: 'painter', prompt: 'x', size: '4096x4096', n: 10 }],
  ['vectors', '/embeddings', { model: 'vectors', input: many(100, () => 'a '.repeat(300)), dimensions: 1_024 }],
  ['documents', '/rerank', { model: 'ranker', query: 'a b '.repeat(8_000), documents: many(2_000, () => 'a b c d') }],
  [
    'decisions',
    '/decisions',
    {
      model: 'judge',
      input: 'w '.repeat(15_000),
      questions: many(6, () => ({ type: 'choice', instructions: 'x', choices })),
    },
  ],
  [
    'a long speech',
    '/audio/speech',
    { model: 'tone', input: 'a'.repeat(4_096), voice: 'tone', response_format: 'pcm' },
  ],
]

test.each(dear)('the most of %s at %s is answered in little time', async (_, path, body) => {
  const { result, ms } = await processorTime(async () => {
    const response = await post(path, body)
    await response.arrayBuffer()
    return response
  })
  expect(result.status).toBe(200)
  expect(ms).toBeLessThan(limit(1_000))
})
