import { describe, expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { ClientApi } from '../../src/api/client-api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import { type ErrorCode, RouterError } from '../../src/core/errors.ts'
import type { NeutralRequest } from '../../src/core/request.ts'

const maker = { provider: 'maker', quotes: true }
const request = { messages: [], origin: { api: 'chat', body: {} } } as unknown as NeutralRequest
const facts = { model: 'maker/m', id: 'id-1' }

type Written = { type: string; code: string; message: string; param: string | null; provider_code?: string }

/** The error as it is written whole, and at the end of a stream. */
function written(api: ClientApi, error: RouterError): [Written, Written] {
  const { error: whole } = api.writeError(error) as { error: Written }
  const text = api.openStream(request, facts).fail(error)
  const last = JSON.parse(/data: (.*)\n\n$/.exec(text)?.[1] ?? '') as { error?: Written; response?: { error: Written } }
  return [whole, last.error ?? (last.response?.error as Written)]
}

const full = new RouterError('context_length', 'Range of input length should be [1, 8]', {
  ...maker,
  providerCode: 'invalid_parameter_error',
})

describe.each([chat, responses])('$api', (api) => {
  test('a full context has the code and the words on which clients compact, whole and streamed', () => {
    for (const { code, message } of written(api, full)) {
      expect(code).toBe('context_length_exceeded')
      expect(message).toBe(`Your input exceeds the context window of this model: ${full.message}`)
    }
    expect(written(api, full)[0].provider_code).toBe('invalid_parameter_error')
  })

  test.each([
    ['rate_limited', '1302', 'rate_limit_exceeded'],
    ['quota_exhausted', 'exceeded_current_quota_error', 'insufficient_quota'],
    ['quota_exhausted', 'billing_not_active', 'billing_not_active'],
    ['provider_overloaded', '1305', 'server_is_overloaded'],
    ['provider_overloaded', 'slow_down', 'slow_down'],
    ['model_not_found', '1211', 'model_not_found'],
    ['provider_refused', 'invalid_api_key', 'provider_refused'],
    ['invalid_request', 'unsupported_value', 'unsupported_value'],
  ] as const)('%s, which the provider calls %s, has the code %s', (code, providerCode, expected) => {
    expect(written(api, new RouterError(code, 'No.', { ...maker, providerCode }))[0].code).toBe(expected)
  })
})

test('an error of the router itself keeps its code', () => {
  for (const code of ['rate_limited', 'model_not_found', 'budget_exhausted'] satisfies ErrorCode[])
    expect(written(chat, new RouterError(code, 'No.'))[0]).toMatchObject({ code, message: 'No.' })
})

test('the member that a provider blames is named in every API', () => {
  const error = new RouterError('invalid_request', 'No.', { ...maker, param: 'temperature' })
  for (const api of [chat, responses, messages]) expect(written(api, error)[0].param).toBe('temperature')
})

test('Claude Code is told in its own words which part of a request was refused, other clients in those of the provider', () => {
  const error = new RouterError('invalid_request', 'No pictures.', { ...maker, rejected: 'image' })
  expect(messages.writeError(error, 'r', 'claude-cli/2.1.332 (external, cli)')).toMatchObject({
    error: { message: 'capability_rejected: image_block', details: { provider_message: 'No pictures.' } },
  })
  expect(messages.writeError(error, 'r', 'anthropic/JS')).toMatchObject({ error: { message: 'No pictures.' } })
})

test('a stream of Responses says how long to wait', () => {
  const error = new RouterError('rate_limited', 'Slow down.', { ...maker, retryAfterMs: 1_250 })
  expect(written(responses, error)[1]).toMatchObject({
    code: 'rate_limit_exceeded',
    message: 'Slow down. Please try again in 1.3s.',
  })
})

/** Reports of a full context, and the beginning of what clients of Messages read. */
const reports: [string, string][] = [
  [
    "This model's maximum context length is 400000 tokens. However, your messages resulted in 500000 tokens.",
    'prompt is too long: 500000 tokens > 400000 maximum. ',
  ],
  [
    "Requested token count exceeds the model's maximum context length of 262144 tokens. You requested a total of 262462 tokens: 230462 tokens from the input messages and 32000 tokens for the completion.",
    'input length and `max_tokens` exceed context limit: 230462 + 32000 > 262144. ',
  ],
  [
    "This model's maximum context length is 4097 tokens, however you requested 5000 tokens (1000 in the messages, 4000 in the completion).",
    'input length and `max_tokens` exceed context limit: 1000 + 4000 > 4097. ',
  ],
  [
    "The input (200000 tokens) is longer than the model's context length (131072 tokens).",
    'prompt is too long: 200000 tokens > 131072 maximum. ',
  ],
  [
    'Input length 300000 exceeds the maximum allowed input length of 262144 tokens.',
    'prompt is too long: 300000 tokens > 262144 maximum. ',
  ],
  [
    'Requested input length 99009 exceeds maximum input length 8192',
    'prompt is too long: 99009 tokens > 8192 maximum. ',
  ],
  [
    '`inputs` tokens + `max_new_tokens` must be <= 8192. Given: 9000 `inputs` tokens and 100 `max_new_tokens`',
    'prompt is too long: 9000 tokens > 8192 maximum. ',
  ],
  [
    'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
    'prompt is too long: 1200000 tokens > 1048576 maximum. ',
  ],
  [
    "This model's maximum prompt length is 131,072 but the request contains 200,000 tokens.",
    'prompt is too long: 200000 tokens > 131072 maximum. ',
  ],
  [
    'Prompt contains 150000 tokens, too large for model with 131072 maximum context length',
    'prompt is too long: 150000 tokens > 131072 maximum. ',
  ],
  [
    'Your request exceeded model token limit: 8192 (requested: 9000)',
    'prompt is too long: 9000 tokens > 8192 maximum. ',
  ],
  ['Current length is 9000 while limit is 8192', 'prompt is too long: 9000 tokens > 8192 maximum. '],
  [
    "You passed 7500 input tokens and requested 1000 output tokens. However, the model's context length is only 8192 tokens",
    'input length and `max_tokens` exceed context limit: 7500 + 1000 > 8192. ',
  ],
  [
    'length of prompt_tokens (9000) must be less than max_seq_len (8192).',
    'prompt is too long: 9000 tokens > 8192 maximum. ',
  ],
  [
    'the request (9000 tokens) exceeds the available context size (8192 tokens)',
    'prompt is too long: 9000 tokens > 8192 maximum. ',
  ],
  ['Your input exceeds the context window of this model.', 'prompt is too long: Your input'],
  ['Range of input length should be [1, 129024]', 'prompt is too long: Range'],
  ['HTTP status 413', 'prompt is too long: HTTP'],
  ['prompt is too long: 210000 tokens > 200000 maximum', 'prompt is too long: 210000 tokens > 200000 maximum'],
  [
    'input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000',
    'input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000',
  ],
]

test.each(reports)('clients of Messages compact on %s', (report, begins) => {
  const error = new RouterError('context_length', report, maker)
  for (const { message, type } of written(messages, error)) {
    expect(message.slice(0, begins.length)).toBe(begins)
    expect(message.endsWith(report)).toBe(true)
    expect(type).toBe('invalid_request_error')
  }
})
