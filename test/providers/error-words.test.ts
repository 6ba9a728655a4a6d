import { expect, test } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import { servedBy } from '../../src/manifest/target.ts'
import { failureClass } from '../../src/routing/health/failure-class.ts'
import { readErrorResponse, reportedFailure } from '../../src/upstream/provider-error.ts'
import { exhaustedMs } from '../../src/upstream/rate-limit-headers.ts'
import { shippedFiles } from '../helpers/shipped.ts'

const providers = new Map((await shippedFiles()).providers.map(({ provider }) => [provider.slug, provider]))

function serving(slug: string, model = 'm') {
  const provider = providers.get(slug)
  if (!provider) throw new Error(`there is no provider ${slug}`)
  return servedBy(provider, model)
}

const read = (slug: string, status: number, body: unknown, headers: Record<string, string> = {}) =>
  readErrorResponse(serving(slug), {
    status,
    headers,
    text: body === undefined ? '' : JSON.stringify(body),
  })

const fault = (message: string, more: JsonObject = {}) => ({ error: { message, ...more } })

/** A context that is full, as each provider reports it. */
const tooLong: [string, number, unknown][] = [
  ['openai', 400, fault("This model's maximum context length is 8192 tokens.", { code: 'context_length_exceeded' })],
  ['openai-responses', 400, fault('Your input exceeds the context window of this model.')],
  ['azure', 400, fault('The context exceeds your deployment.')],
  ['anthropic', 400, fault('prompt is too long: 210000 tokens > 200000 maximum', { type: 'invalid_request_error' })],
  [
    'anthropic',
    400,
    fault('input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length'),
  ],
  ['bedrock', 400, { message: 'Input is too long for requested model.' }],
  ['bedrock', 400, { message: "This model's maximum context length is 131072 tokens." }],
  ['google', 400, fault('The input token count (9) exceeds the maximum number of tokens allowed (8).')],
  [
    'xai',
    400,
    {
      code: 'Client specified an invalid argument',
      error: "This model's maximum prompt length is 8 but it contains 9",
    },
  ],
  [
    'mistral',
    400,
    { message: 'Prompt contains 9 tokens, too large for model with 8 maximum context length', code: 3051 },
  ],
  ['mistral', 413, undefined],
  ['moonshot', 400, fault('Your request exceeded model token limit: 8 (requested: 9)')],
  ['moonshot-messages', 400, fault('Your request exceeded model token limit: 8 (requested: 9)')],
  ['zai', 400, fault('Prompt exceeds max length', { code: '1261' })],
  ['zai-messages', 400, fault('Prompt exceeds max length', { code: '1261' })],
  ['zai', 400, fault('tokens in request more than max tokens allowed', { code: '1210' })],
  ['zhipu', 400, fault('Prompt too long', { code: '1261' })],
  ['alibaba', 400, fault('Range of input length should be [1, 8]', { code: 'invalid_parameter_error' })],
  ['minimax', 400, fault('invalid params, context window exceeds limit (2013)')],
  ['groq', 400, fault('Please reduce the length of the messages or completion.')],
  ['cerebras', 400, { message: 'Current length is 9 while limit is 8', type: 'invalid_request_error', code: 'x' }],
  ['cerebras', 400, undefined],
  ['together', 400, fault("The input (9 tokens) is longer than the model's context length (8 tokens).")],
  ['together', 422, fault('`inputs` tokens + `max_new_tokens` must be <= 8')],
  ['openrouter', 400, fault('Input length 9 exceeds the maximum allowed input length of 8 tokens.', { code: 400 })],
  ['openrouter', 400, fault('Bad', { code: 400, metadata: { error_type: 'context_length_exceeded' } })],
  ['deepinfra', 400, fault('Requested input length 9 exceeds maximum input length 8')],
  ['huggingface', 422, { error: 'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8' }],
  ['nvidia', 400, fault("The model's context length is only 8 tokens")],
  ['siliconflow', 400, { code: 20015, message: 'length of prompt_tokens (9) must be less than max_seq_len (8).' }],
  ['perplexity', 400, fault('Too many.', { type: 'too_many_prompt_tokens' })],
  ['vllm', 400, { object: 'error', message: 'The prompt is longer than the maximum model length of 8' }],
  ['vllm-messages', 400, fault('The prompt is longer than the maximum model length of 8')],
  ['vllm-responses', 400, fault('The prompt is longer than the maximum model length of 8')],
  [
    'llama-cpp',
    400,
    fault('request (9) exceeds the available context size (8)', { type: 'exceed_context_size_error' }),
  ],
  ['lmstudio', 400, { error: 'tokens to keep from the initial prompt is greater than the context length' }],
  ['ollama', 400, { error: 'prompt too long; exceeded max context length by 1 tokens' }],
]

/** A model that is unknown or retired, as each provider reports it. */
const gone: [string, number, unknown][] = [
  ['groq', 400, fault('The model `x` has been decommissioned.', { code: 'model_decommissioned' })],
  ['deepseek', 400, fault('Model Not Exist', { code: null })],
  ['deepseek', 400, fault('The supported API model names are deepseek-v4-pro, but you passed x.')],
  ['deepseek-messages', 400, fault('The supported API model names are deepseek-v4-pro, but you passed x.')],
  ['bedrock', 400, { message: 'The provided model identifier is invalid.' }],
  ['bedrock', 400, { message: "Invocation of model ID x with on-demand throughput isn't supported. Retry with 'y'." }],
  ['openrouter', 400, fault('x is not a valid model ID', { code: 400 })],
  ['mistral', 400, { message: 'Invalid model: x', type: 'invalid_model', code: '1500' }],
  ['minimax', 400, fault("invalid params, unknown model 'x' (2013)")],
  ['cloudflare', 400, { errors: [{ code: 5007, message: 'No such model x' }], success: false }],
  ['perplexity', 400, fault("Invalid model 'x'.", { type: 'invalid_model' })],
  ['zai', 400, fault('No such model.', { code: '1211' })],
  ['zai', 400, fault('Your plan does not include it.', { code: '1311' })],
  ['openai', 400, fault('The requested model does not exist.', { code: 'model_not_found' })],
  [
    'xai',
    404,
    { code: 'Some requested entity was not found', error: 'The model x does not exist or your team has no access.' },
  ],
]

/** What else follows from the words of a provider: the class of the failure. */
const others: [string, string, number, unknown][] = [
  ['credential', 'xai', 400, { code: 'Invalid argument', error: 'Incorrect API key provided: xa***.' }],
  ['credential', 'openai', 400, fault('Incorrect API key provided: sk-x.')],
  ['credential', 'zai', 400, fault('x', { code: '1002' })],
  ['credential', 'openai', 429, fault('x', { code: 'project_spend_limit_exceeded' })],
  ['credential', 'xai', 429, { error: 'Your team has used all available credits.' }],
  ['credential', 'zai', 429, fault('x', { code: '1308' })],
  ['credential', 'minimax', 400, fault('x', { code: '2056' })],
  ['credential', 'fireworks', 412, fault('Account suspended.')],
  ['credential', 'cloudflare', 429, { errors: [{ code: 3036, message: 'x' }] }],
  ['credential', 'anthropic', 429, fault('x', { type: 'billing_error' })],
  ['failed', 'groq', 498, fault('Flex tier capacity exceeded', { code: 'capacity_exceeded' })],
  ['failed', 'openai', 503, fault('x', { code: 'slow_down' })],
  ['failed', 'zai', 400, fault('x', { code: '1312' })],
  ['rate_limited', 'zai', 400, fault('x', { code: '1303' })],
  ['blocked', 'deepseek', 400, fault('Content Exists Risk')],
  ['refused', 'vllm-responses', 501, fault("Only 'auto' or 'none' tool_choice is supported")],
  ['refused', 'deepinfra', 405, fault('Tool calling is not supported for model: x')],
]

test.each(tooLong)('%s reports a full context with status %i: %j', async (slug, status, body) => {
  expect((await read(slug, status, body)).code).toBe('context_length')
})

test.each(gone)('%s reports a model that is gone with status %i: %j', async (slug, status, body) => {
  expect(failureClass(await read(slug, status, body)).name).toBe('gone')
})

test.each(others)('%s: %s reports it with status %i: %j', async (name, slug, status, body) => {
  expect(failureClass(await read(slug, status, body)).name).toBe(name)
})

test.each([
  ['openai', 400, 'Invalid content type. image_url is only supported by certain models.', 'image'],
  ['deepseek', 400, 'messages[0]: unknown variant `image_url`, expected `text`', 'image'],
  ['openrouter', 404, 'No endpoints found that support image input', 'image'],
  ['vllm', 400, 'System message must be at the beginning.', 'system_message'],
  ['llama-cpp', 500, 'Jinja Exception: System message must be at the beginning.', 'system_message'],
  ['vllm-messages', 400, 'System message must be at the beginning.', 'system_message'],
  ['ollama', 500, 'system message must be at the beginning', 'system_message'],
] as const)('%s refuses a part of the request with status %i: %s', async (slug, status, message, rejected) => {
  const error = await read(slug, status, fault(message))
  expect([error.code, error.rejected]).toEqual(['invalid_request', rejected])
  expect(failureClass(error).same).toBe('never')
})

test('words of the caller that a provider quotes close no target and no credential', async () => {
  for (const words of ['incorrect api key', 'unknown model', 'used all available credits'])
    expect((await read('xai', 400, fault(`Invalid value: '${words}'.`))).code).toBe('invalid_request')
})

test('an error inside a stream is classified by the same words', () => {
  const failed = (slug: string, code: string, message: string) => reportedFailure(serving(slug), { code, message }).code
  expect(failed('together', '400', "The input is longer than the model's context length")).toBe('context_length')
  expect(failed('openrouter', '429', 'Slow down')).toBe('rate_limited')
  expect(failed('openrouter', '404', 'There is no such model')).toBe('model_not_found')
  expect(failed('zai', '1308', 'x')).toBe('quota_exhausted')
})

test('the member that a provider blames is named, without secrets', async () => {
  const error = await read(
    'openai',
    400,
    fault('Unsupported value', { param: 'temperature', code: 'unsupported_value' }),
  )
  expect([error.code, error.param]).toEqual(['invalid_request', 'temperature'])
  expect((await read('openai', 401, fault('No.', { param: 'key' }))).param).toBeUndefined()
})

const now = Date.parse('2026-11-28T00:00:00Z')
const zero = (remaining: string, reset?: string, value = '31.5') => ({
  [remaining]: '0',
  ...(reset !== undefined && { [reset]: value }),
})

test.each([
  ['cerebras', zero('x-ratelimit-remaining-tokens-minute', 'x-ratelimit-reset-tokens-minute'), 31_500],
  ['mistral', zero('x-ratelimit-remaining-req-minute'), 60_000],
  ['fireworks', zero('x-ratelimit-remaining-tokens-generated'), 60_000],
  ['together', zero('x-ratelimit-remaining', 'x-ratelimit-reset'), 31_500],
  ['openrouter', zero('x-ratelimit-remaining', 'x-ratelimit-reset', String(now + 90_000)), 90_000],
  ['groq', zero('x-ratelimit-remaining-tokens', 'x-ratelimit-reset-tokens', '7.66s'), 7_660],
  [
    'anthropic',
    zero('anthropic-ratelimit-requests-remaining', 'anthropic-ratelimit-requests-reset', '2026-11-28T00:00:30Z'),
    30_000,
  ],
] as const)('%s reports in its own headers how long a refusal lasts', (slug, headers, ms) => {
  expect(exhaustedMs(serving(slug), { headers, body: {} }, () => now)).toBe(ms)
})

test('openrouter repeats its headers in the error', () => {
  const headers = { 'X-RateLimit-Limit': '50', 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': String(now + 90_000) }
  const body = fault('Rate limit exceeded', { code: 429, metadata: { headers } })
  expect(exhaustedMs(serving('openrouter'), { headers: {}, body }, () => now)).toBe(90_000)
})

test('a whole window is no reason to avoid a target that has not refused', () => {
  expect(
    exhaustedMs(serving('mistral'), { headers: zero('x-ratelimit-remaining-req-minute') }, () => now),
  ).toBeUndefined()
})
