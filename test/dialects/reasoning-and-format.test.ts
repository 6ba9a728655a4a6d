import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import type { Effort, NeutralRequest } from '../../src/core/request.ts'
import { servedBy } from '../../src/manifest/target.ts'
import { writeRequest } from '../../src/manifest/translate.ts'
import { loadConfig } from '../../src/snapshot/config.ts'
import { readFiles } from '../../src/snapshot/load-files.ts'

// How much to think and in which form to answer: what becomes of the wish at each provider.

const { config, source } = await loadConfig(join(import.meta.dirname, '../../config.yaml'), {})
if (!config) throw new Error('config.yaml cannot be read')
const files = await readFiles({ config, source, env: {}, everything: true })

/** What a model is sent for a wish, of the members named, and what is lost of it. */
async function sent(target: string, more: Partial<NeutralRequest>, members: string[]) {
  const slug = target.slice(0, target.indexOf('/'))
  const model = target.slice(slug.length + 1)
  const loaded = files.providers.find(({ provider }) => provider.slug === slug)
  if (!loaded) throw new Error(`there is no provider ${slug}`)
  const entry = files.catalog.find(slug, model)
  const request: NeutralRequest = {
    model,
    messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }],
    max_output_tokens: 10_000,
    ...more,
    origin: { api: 'chat', body: {} },
  }
  const { body, dropped } = await writeRequest(servedBy(loaded.provider, model), request, {
    model,
    ...(entry && { entry }),
  })
  return { said: members.map((path) => memberOf(body, path)), dropped }
}

// biome-ignore lint/suspicious/noExplicitAny: bodies have the shape of whoever reads them.
function memberOf(body: JsonObject, path: string): any {
  // biome-ignore lint/suspicious/noExplicitAny: see above
  return path.split('.').reduce((value: any, name) => value?.[name], body)
}

/** Where each model gets the reasoning setting, and what it is told by effort; `dropped` when it cannot be. */
const efforts: [target: string, member: string, told: { [effort in Effort]?: unknown }][] = [
  ['openai/gpt-5.2', 'reasoning_effort', { none: 'none', low: 'low', high: 'high' }],
  ['openai/gpt-4.1', 'reasoning_effort', { low: 'dropped', high: 'dropped' }],
  ['openai-responses/o3', 'reasoning.effort', { low: 'low', high: 'high', xhigh: 'high', max: 'high' }],
  ['anthropic/claude-haiku-4-5', 'thinking.budget_tokens', { none: undefined, low: 2_000, medium: 5_000, high: 8_000 }],
  ['anthropic/claude-opus-5-5', 'output_config.effort', { minimal: 'low', low: 'low', xhigh: 'xhigh', max: 'max' }],
  [
    'google/gemini-2.5-flash',
    'generationConfig.thinkingConfig.thinkingBudget',
    { none: 0, minimal: 512, low: 1_024, medium: 8_192, high: 24_576, max: 24_576 },
  ],
  [
    'google/gemini-3.5-flash',
    'generationConfig.thinkingConfig.thinkingLevel',
    { none: 'MINIMAL', low: 'LOW', medium: 'MEDIUM', max: 'HIGH' },
  ],
  ['xai/grok-4.6', 'reasoning_effort', { minimal: 'low', low: 'low', max: 'high' }],
  ['groq/openai/gpt-oss-120b', 'reasoning_effort', { none: 'low', low: 'low', max: 'high' }],
  ['mistral/magistral-medium-latest', 'reasoning_effort', { none: 'none', low: 'high' }],
  ['openrouter/anthropic/claude-haiku-4.5', 'reasoning.effort', { low: 'low', max: 'max' }],
]

describe.each(efforts)('%s gets the reasoning setting', (target, member, told) => {
  test.each(Object.entries(told))('for the effort %s', async (effort, expected) => {
    const fields = { reasoning: { effort: effort as Effort } }
    const { said, dropped } = await sent(target, fields, [member])
    expect([said[0], dropped.includes('reasoning')]).toEqual(
      expected === 'dropped' ? [undefined, true] : [expected, false],
    )
  })
})

/** A number of tokens, where there are only words, and where there are numbers. */
const budgets: [target: string, member: string, told: [budget: number, expected: unknown][]][] = [
  [
    'openai/gpt-5.2',
    'reasoning_effort',
    [
      [0, 'none'],
      [2_048, 'low'],
      [9_000, 'medium'],
      [50_000, 'high'],
    ],
  ],
  [
    'openai-responses/o3',
    'reasoning.effort',
    [
      [2_048, 'low'],
      [50_000, 'high'],
    ],
  ],
  [
    'anthropic/claude-haiku-4-5',
    'thinking.budget_tokens',
    [
      [0, undefined],
      [500, 1_024],
      [3_000, 3_000],
    ],
  ],
  [
    'anthropic/claude-opus-5-5',
    'output_config.effort',
    [
      [1_024, 'low'],
      [8_000, 'medium'],
    ],
  ],
  [
    'google/gemini-2.5-flash',
    'generationConfig.thinkingConfig.thinkingBudget',
    [
      [0, 0],
      [100, 512],
      [99_999, 24_576],
    ],
  ],
  [
    'google/gemini-3.5-flash',
    'generationConfig.thinkingConfig.thinkingLevel',
    [
      [1_000, 'LOW'],
      [9_000, 'HIGH'],
    ],
  ],
  ['openrouter/anthropic/claude-haiku-4.5', 'reasoning.max_tokens', [[3_000, 3_000]]],
]

describe.each(budgets)('%s gets the reasoning setting', (target, member, told) => {
  test.each(told)('for %d tokens', async (budget, expected) => {
    expect((await sent(target, { reasoning: { budget } }, [member])).said).toEqual([expected])
  })
})

const schema: JsonObject = {
  type: 'object',
  properties: { name: { type: 'string', minLength: 1 } },
  required: ['name'],
  additionalProperties: false,
}
const asked: Partial<NeutralRequest> = {
  response_format: { type: 'json_schema', name: 'person', schema, strict: true },
}
const wanted = { type: 'json_schema', json_schema: { name: 'person', schema, strict: true } }
/** What the provider refuses of the schema is told to the model in words. */
const narrowed = { ...schema, properties: { name: { type: 'string', description: '(minLength: 1)' } } }

/** Where the schema stands, and what stands there. */
const forms: [target: string, member: string, expected: unknown][] = [
  ['openai/gpt-5.2', 'response_format', wanted],
  ['openrouter/openai/gpt-4o', 'response_format', wanted],
  ['groq/openai/gpt-oss-120b', 'response_format', wanted],
  ['mistral/mistral-large-latest', 'response_format', wanted],
  ['openai-responses/gpt-5.2', 'text.format', { type: 'json_schema', name: 'person', schema, strict: true }],
  ['anthropic/claude-haiku-4-5', 'output_config.format', { type: 'json_schema', schema: narrowed }],
  ['google/gemini-3.5-flash', 'generationConfig.responseJsonSchema', schema],
  ['cohere/command-a-03-2025', 'response_format', { type: 'json_object', json_schema: schema }],
  ['ollama/llama', 'format', schema],
]

describe('an answer by a schema', () => {
  test.each(forms)('is requested of %s in its own field', async (target, member, expected) => {
    const { said, dropped } = await sent(target, asked, [member])
    expect(said).toEqual([expected])
    expect(dropped).not.toContain('response_format')
  })

  test('is narrowed where the provider refuses some of it, and that is reported', async () => {
    const plain = { ...schema, properties: { name: { type: 'string' }, minLength: { type: 'object' } } }
    for (const target of ['anthropic/claude-haiku-4-5', 'bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0']) {
      expect((await sent(target, asked, [])).dropped, target).toEqual(['response_format.schema'])
      const whole = await sent(target, { response_format: { type: 'json_schema', name: 'p', schema: plain } }, [])
      expect(whole.dropped, target).toEqual([])
    }
  })

  test('is requested in the instructions where the family has no schemas, or not beside a search', async () => {
    const old = await sent('anthropic/claude-3-5-haiku-20241022', asked, ['output_config', 'system'])
    expect(old.said[0]).toBeUndefined()
    expect(JSON.stringify(old.said[1])).toContain('minLength')
    const searching = await sent('anthropic/claude-haiku-4-5', { ...asked, web_search: {} }, [
      'output_config',
      'system',
    ])
    expect(searching.said[0]).toBeUndefined()
    expect(JSON.stringify(searching.said[1])).toContain('JSON schema')
    const grounded = await sent('google/gemini-2.5-flash', { ...asked, web_search: {} }, [
      'generationConfig.responseJsonSchema',
      'systemInstruction',
    ])
    // Alone in front of the conversation it would be all there is to say.
    expect(grounded.said[0]).toBeUndefined()
    expect(JSON.stringify(grounded.said[1])).toContain('JSON schema')
  })
})
