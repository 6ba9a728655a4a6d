import { expect, test } from 'vitest'
import { modelNames } from '../../tools/bills/model-names.ts'

const named = (...models: string[]) => modelNames(models.map((model) => ({ model, aliases: [] })))

test.each([
  ['gpt-5-2025-08-07', 'gpt-5', ['gpt-5']],
  ['gpt-5', 'gpt-5', ['gpt-5', 'gpt-5-2025-08-07']],
  ['gpt-5', 'gpt-5', ['gpt-5-2025-08-07']],
  ['gpt-4-0613', 'gpt-4', ['gpt-4']],
  ['gpt-4o-mini', 'gpt-4o-mini', ['gpt-4o', 'gpt-4o-mini']],
  ['openai/gpt-4o-2024-11-20', 'gpt-4o', ['gpt-4o']],
  ['Claude Haiku 4.5', 'claude-haiku-4-5', ['claude-haiku-4-5-20251001', 'claude-haiku-4-5']],
  ['Claude Haiku 4.5', 'claude-haiku-4-5', ['claude-haiku-4-5@20251001']],
  ['anthropic/claude-4.5-sonnet-20250929', 'claude-sonnet-4.5', ['anthropic/claude-sonnet-4.5']],
  ['us.anthropic.claude-opus-4-6-v1', 'claude-opus-4-6', ['anthropic.claude-opus-4-6-v1']],
  ['Nova2.0Lite', 'nova-2-lite', ['amazon.nova-2-lite-v1:0']],
  ['gemini-3-flash', 'gemini-3-flash-preview', ['gemini-3-flash-preview']],
  ['deepseek-v3', 'deepseek-v3', ['DeepSeek-R1']],
  ['mystery-2026-01-31', 'mystery', []],
] as const)('%s is %s', (written, name, models) => {
  expect(named(...models).of(written)).toBe(name)
})

test.each([
  ['gpt-5.4', ['gpt-4.5']],
  ['gpt-4o', ['gpt-4o-mini']],
  ['o3', ['o3-mini']],
  ['gemini-2.5-flash', ['gemini-2.5-flash-lite', 'gemini-2.5-pro']],
  ['claude-sonnet-4', ['claude-sonnet-4-5']],
] as const)('%s is none of %j', (written, others) => {
  expect(others).not.toContain(named(...others).of(written))
})

test('an alias is the model that it names', () => {
  const names = modelNames([{ model: 'm-large', aliases: ['best'] }])
  expect([names.of('best'), names.of('acme/best')]).toEqual(['m-large', 'm-large'])
})

const gemini = ['gemini-2.5-flash', 'gemini-2.5-flash-lite', 'gemini-2.5-pro', 'gemini-3-flash-preview']
const bedrock = [
  'anthropic.claude-opus-4-6-v1',
  'anthropic.claude-sonnet-4-20250514-v1:0',
  'anthropic.claude-sonnet-4-5-20250929-v1:0',
  'amazon.nova-2-lite-v1:0',
  'meta.llama3-2-1b-instruct-v1:0',
]

test.each([
  ['Generate content input token count gemini 2.5 flash lite text', 'gemini-2.5-flash-lite', gemini],
  ['Generate_content_cached_input_token_count_gemini_3_flash_text', 'gemini-3-flash-preview', gemini],
  ['Gemini 2.5 Pro Thinking Text Output - Predictions', 'gemini-2.5-pro', gemini],
  ['Grounding with Google Search', undefined, gemini],
  ['USE1-Claude4.6Opus-input-tokens-cross-region-global', 'claude-opus-4-6', bedrock],
  ['Claude Sonnet 4 5m cache write', 'claude-sonnet-4', bedrock],
  ['Claude Sonnet 4.5 (Amazon Bedrock Edition)', 'claude-sonnet-4-5', bedrock],
  ['USE1-Nova2.0Lite-output-tokens', 'nova-2-lite', bedrock],
  ['USE1-MP:USE1_InputTokenCount-Units', undefined, bedrock],
] as const)('%j mentions %s', (text, name, models) => {
  expect(named(...models).within([text])).toBe(name)
})

test('the first text that mentions a model decides', () => {
  expect(
    named(...bedrock).within(['USE1-MP:USE1_InputTokenCount-Units', 'Claude Opus 4.6 (Amazon Bedrock Edition)']),
  ).toBe('claude-opus-4-6')
})
