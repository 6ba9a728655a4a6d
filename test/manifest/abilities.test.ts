import { beforeAll, describe, expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { ClientApi } from '../../src/api/client-api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import type { CatalogedModel } from '../../src/catalog/catalog.ts'
import { type AbilityFlag, abilities, abilityFlags, lackedFields } from '../../src/manifest/abilities.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { servedBy } from '../../src/manifest/target.ts'
import { targetFacts } from '../../src/manifest/target-facts.ts'
import { usedLosses, writeRequest } from '../../src/manifest/translate.ts'
import { cacheLifetimeMs } from '../../src/routing/cache-lifetime.ts'
import type { Files } from '../../src/snapshot/load-files.ts'
import { shippedTarget } from '../helpers/sent.ts'
import { shippedFiles } from '../helpers/shipped.ts'

const data = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const url = `data:image/png;base64,${data}`
const parameters = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }
const asked = [{ role: 'user', content: 'Hello' }]

/** What clients send for the flags of an entry, API by API. */
const bodies: [ClientApi, { [flag in AbilityFlag]: object }][] = [
  [
    chat,
    {
      supports_vision: { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] },
      supports_tool_calling: { messages: asked, tools: [{ type: 'function', function: { name: 'f', parameters } }] },
      supports_reasoning: { messages: asked, reasoning_effort: 'high' },
      supports_web_search: { messages: asked, tools: [{ type: 'web_search' }] },
    },
  ],
  [
    responses,
    {
      supports_vision: { input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }] },
      supports_tool_calling: { input: 'Hello', tools: [{ type: 'function', name: 'f', parameters, strict: false }] },
      supports_reasoning: { input: 'Hello', reasoning: { effort: 'high' } },
      supports_web_search: { input: 'Hello', tools: [{ type: 'web_search' }] },
    },
  ],
  [
    messages,
    {
      supports_vision: {
        max_tokens: 5_000,
        messages: [
          { role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }] },
        ],
      },
      supports_tool_calling: { max_tokens: 5_000, messages: asked, tools: [{ name: 'f', input_schema: parameters }] },
      supports_reasoning: {
        max_tokens: 5_000,
        messages: asked,
        thinking: { type: 'enabled', budget_tokens: 2_000 },
      },
      supports_web_search: {
        max_tokens: 5_000,
        messages: asked,
        tools: [{ type: 'web_search_20250305', name: 'web_search' }],
      },
    },
  ],
]

let files: Files
beforeAll(async () => {
  files = await shippedFiles()
})

describe.each(bodies)('$api', (clientApi, byFlag) => {
  test.each(abilityFlags)('what the entry of a model says with %s is what is sent', async (flag) => {
    const contradicting: string[] = []
    for (const { provider, serving, model, entry } of chatModels(clientApi === chat)) {
      const lost = await losses(serving, clientApi, { ...byFlag[flag], model }, { model, entry })
      const isLost = abilities[flag].fields.some(
        (field) => lost.includes(field) || lost.includes(field.split('.')[0] ?? ''),
      )
      if (entry[flag] !== undefined && entry[flag] === isLost) contradicting.push(`${provider}/${model}: ${lost}`)
    }
    expect(contradicting).toEqual([])
  })
})

type ServedModel = CatalogedModel & { serving: Provider }

/** Every chat model, or one of each family. */
function chatModels(all: boolean): ServedModel[] {
  const providers = new Map(files.providers.map(({ provider }) => [provider.slug, provider]))
  const families = new Set<string>()
  return files.catalog.list().flatMap((listed) => {
    const { provider: slug, model, entry } = listed
    const provider = providers.get(slug)
    if (!provider || entry.api !== 'chat') return []
    const served = servedBy(provider, model)
    const { traits } = targetFacts(served, { model })
    const family = JSON.stringify([slug, served.dialect, traits, abilityFlags.map((flag) => entry[flag])])
    if (!all && families.has(family)) return []
    families.add(family)
    return [{ ...listed, serving: provider }]
  })
}

async function losses(
  serving: Provider,
  clientApi: ClientApi,
  body: { model: string },
  target: { model: string; entry: CatalogedModel['entry'] },
): Promise<string[]> {
  const request = clientApi.read(body)
  const provider = servedBy(serving, target.model, { request, entry: target.entry })
  if (provider.sameAs === clientApi.api) return await usedLosses(provider, request, target)
  return (await writeRequest(provider, { ...request, model: target.model }, target)).dropped
}

test.each([
  // Chat completions of these cannot search; their Responses APIs can, and are asked.
  ['openai/gpt-4.1', 'supports_web_search', true],
  ['openai-responses/gpt-4.1', 'supports_web_search', true],
  ['xai/grok-4.3', 'supports_web_search', true],
  ['azure/gpt-5.1', 'supports_web_search', true],
  ['azure/grok-4', 'supports_web_search', false],
  ['groq/openai/gpt-oss-120b', 'supports_web_search', false],
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
