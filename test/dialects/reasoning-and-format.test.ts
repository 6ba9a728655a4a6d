import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import type { Effort, NeutralRequest } from '../../src/core/request.ts'
import { writeRequest } from '../../src/manifest/run/translate.ts'
import { servedBy } from '../../src/manifest/target.ts'
import { shippedFiles } from '../helpers/shipped.ts'

// Reasoning settings and response formats: their translation for each provider.

const files = await shippedFiles()

/** The named members of the request to a model, and the losses. */
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
  return { sentMembers: members.map((path) => memberOf(body, path)), dropped }
}

// biome-ignore lint/suspicious/noExplicitAny: bodies may have any shape.
function memberOf(body: JsonObject, path: string): any {
  // biome-ignore lint/suspicious/noExplicitAny: see above
  return path.split('.').reduce((value: any, name) => value?.[name], body)
}

/** Where each model gets the reasoning setting, and the value by effort; `dropped` when there is none. */
const efforts: [target: string, member: string, expectedSettings: { [effort in Effort]?: unknown }][] = [
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

describe.each(efforts)('%s gets the reasoning setting', (target, member, expectedSettings) => {
  test.each(Object.entries(expectedSettings))('for the effort %s', async (effort, expected) => {
    const fields = { reasoning: { effort: effort as Effort } }
    const { sentMembers, dropped } = await sent(target, fields, [member])
    expect([sentMembers[0], dropped.includes('reasoning')]).toEqual(
      expected === 'dropped' ? [undefined, true] : [expected, false],
    )
  })
})

/** A number of tokens, where only efforts are supported, and where numbers are. */
const budgets: [target: string, member: string, expectedSettings: [budget: number, expected: unknown][]][] = [
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

describe.each(budgets)('%s gets the reasoning setting', (target, member, expectedSettings) => {
  test.each(expectedSettings)('for %d tokens', async (budget, expected) => {
    expect((await sent(target, { reasoning: { budget } }, [member])).sentMembers).toEqual([expected])
  })
})

const schema: JsonObject = {
  type: 'object',
  properties: { name: { type: 'string', minLength: 1 } },
  required: ['name'],
  additionalProperties: false,
}
const requested: Partial<NeutralRequest> = {
  response_format: { type: 'json_schema', name: 'person', schema, strict: true },
}
const wanted = { type: 'json_schema', json_schema: { name: 'person', schema, strict: true } }
/** Schema rules that the provider rejects are written into descriptions. */
const narrowed = { ...schema, properties: { name: { type: 'string', description: '(minLength: 1)' } } }

/** The path of the schema, and its value. */
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
    const { sentMembers, dropped } = await sent(target, requested, [member])
    expect(sentMembers).toEqual([expected])
    expect(dropped).not.toContain('response_format')
  })

  test('is narrowed where the provider refuses some of it, and that is reported', async () => {
    const plain = { ...schema, properties: { name: { type: 'string' }, minLength: { type: 'object' } } }
    for (const target of ['anthropic/claude-haiku-4-5', 'bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0']) {
      expect((await sent(target, requested, [])).dropped, target).toEqual(['response_format.schema'])
      const whole = await sent(target, { response_format: { type: 'json_schema', name: 'p', schema: plain } }, [])
      expect(whole.dropped, target).toEqual([])
    }
  })

  test('is requested in the instructions where the family has no schemas, or not beside a search', async () => {
    const old = await sent('anthropic/claude-3-5-haiku-20241022', requested, ['output_config', 'system'])
    expect(old.sentMembers[0]).toBeUndefined()
    expect(JSON.stringify(old.sentMembers[1])).toContain('minLength')
    const searching = await sent('anthropic/claude-haiku-4-5', { ...requested, web_search: {} }, [
      'output_config',
      'system',
    ])
    expect(searching.sentMembers[0]).toBeUndefined()
    expect(JSON.stringify(searching.sentMembers[1])).toContain('JSON schema')
    const grounded = await sent('google/gemini-2.5-flash', { ...requested, web_search: {} }, [
      'generationConfig.responseJsonSchema',
      'systemInstruction',
    ])
    // Without a conversation it would be the only message.
    expect(grounded.sentMembers[0]).toBeUndefined()
    expect(JSON.stringify(grounded.sentMembers[1])).toContain('JSON schema')
  })
})
