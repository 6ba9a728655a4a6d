import { beforeAll, expect, test } from 'vitest'
import { lackedFields } from '../../src/manifest/run/abilities.ts'
import { cacheLifetimeMs } from '../../src/routing/affinity.ts'
import type { Files } from '../../src/snapshot/load-files.ts'
import { shippedTarget } from '../helpers/sent.ts'
import { shippedFiles } from '../helpers/shipped.ts'

let files: Files
beforeAll(async () => {
  files = await shippedFiles()
})

test.each([
  // Chat completions of these cannot search; their Responses APIs can, and are asked.
  ['openai/gpt-4.1', 'supports_web_search', true],
  ['openai-responses/gpt-4.1', 'supports_web_search', true],
  ['xai/grok-4.3', 'supports_web_search', true],
  ['azure/gpt-5.1', 'supports_web_search', true],
  ['azure/grok-4', 'supports_web_search', false],
  ['groq/openai/gpt-oss-120b', 'supports_web_search', true],
  ['anthropic/claude-opus-5', 'supports_web_search', true],
  ['openai/o1', 'supports_tool_calling', true],
  ['openai/o3-mini', 'supports_tool_calling', true],
  ['azure/gpt-5-nano', 'supports_vision', true],
  ['mistral/devstral-2512', 'supports_tool_calling', true],
  // Thinks, and cannot be told how much.
  ['xai/grok-4', 'supports_reasoning', false],
] as const)('%s: %s is %s', (id, flag, value) => {
  const slash = id.indexOf('/')
  expect(files.catalog.find(id.slice(0, slash), id.slice(slash + 1))?.[flag]).toBe(value)
})

test('no model of Cloudflare is said to take images, which are not sent there', () => {
  const taking = files.catalog
    .list()
    .filter(({ provider, entry }) => provider === 'cloudflare' && entry.supports_vision)
  expect(taking).toEqual([])
})

test('a model lacks what its entry denies, and nothing that it does not speak of', () => {
  expect(lackedFields({ api: 'chat' })).toEqual([])
  expect(lackedFields({ api: 'chat', supports_vision: true, supports_web_search: false })).toEqual(['web_search'])
  expect(lackedFields({ api: 'chat', supports_tool_calling: false })).toEqual([
    'tools.function',
    'tools.custom',
    'parallel_tool_calls',
  ])
})

test.each([
  ['anthropic/claude-sonnet-5', 5, 60],
  ['openai/gpt-5.1', 5, 24 * 60],
  ['openai/gpt-5.5', 24 * 60, 24 * 60],
  ['openai-responses/gpt-6.1-sol', 30, 12 * 60],
  ['azure/claude-haiku-4-5', 5, 60],
  ['deepseek/deepseek-chat', 60, 60],
  ['mistral/mistral-large-2512', 5, 5],
])('%s keeps prompts for %i minutes, on demand for %i', async (id, lifetime, extended) => {
  const target = await shippedTarget(id)
  expect([cacheLifetimeMs(target, false) / 60_000, cacheLifetimeMs(target, true) / 60_000]).toEqual([
    lifetime,
    extended,
  ])
})
