import { describe, expect, test } from 'vitest'
import type { Provider } from '../../src/manifest/provider.ts'
import { failureClass } from '../../src/routing/health/failure-class.ts'
import { errorFor } from '../../src/upstream/provider-error.ts'

const provider = {
  slug: 'acme',
  auth: { scheme: 'bearer', secret: 'sk-1' },
  errorHeaders: ['x-amzn-errortype'],
  headers: { 'x-api-key': 'hdr-secret-2', 'x-version': '2024-01-01' },
  errors: { ThrottlingException: 'rate_limited', 'too long': 'context_length', 418: 'content_blocked' },
} as unknown as Provider

const refused = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  errorFor(provider, { status, headers, text: typeof body === 'string' ? body : JSON.stringify(body) })

test('an error is classified by its code in the body or a header, by its message, by its status', () => {
  expect(refused(400, { __type: 'com.amazon#ThrottlingException', message: 'Slow down' }).code).toBe('rate_limited')
  expect(refused(400, { message: 'x' }, { 'x-amzn-errortype': 'ThrottlingException:http://aws/' }).code).toBe(
    'rate_limited',
  )
  expect(refused(400, { error: { message: 'The prompt is too long.' } }).code).toBe('context_length')
  expect(refused(418, { error: 'no' }).code).toBe('content_blocked')
  expect(refused(422, { detail: [{ msg: 'bad' }] }).code).toBe('invalid_request')
  expect(refused(529, 'overloaded').code).toBe('provider_overloaded')
})

test('a refusal of one model is told from one of the credential', () => {
  const refusals = [401, 402, 403, 307].map((status) => refused(status, { error: { message: 'No.' } }))
  expect(refusals.map(({ code, concernsModel }) => [code, concernsModel])).toEqual([
    ['provider_refused', false],
    ['quota_exhausted', false],
    ['provider_refused', true],
    ['provider_refused', true],
  ])
  expect(refusals[3]?.message).toBe('The provider answered with a redirect, which is not followed: No.')
})

test.each([
  { error: { code: 'model_not_found', message: 'The model `x` does not exist or you do not have access to it.' } },
  { error: { code: 'DeploymentNotFound', message: 'It does not exist.' } },
  { error: { type: 'not_found_error', message: 'model: x' } },
  { error: "model 'x:latest' not found" },
  { error: { code: 404, message: 'models/x is not found for API version v1beta', status: 'NOT_FOUND' } },
])('a model that is gone is told from what else is not found: %j', (body) => {
  expect(refused(404, body).code).toBe('model_not_found')
  expect(refused(404, { error: { message: 'No file with id file-1.', code: 'not_found' } }).code).toBe(
    'invalid_request',
  )
})

test.each([
  "File 'model' not found.",
  'No such File object: model',
  'The file "my model.pdf" does not exist.',
  'Container not found: model_1',
  'Could not find the tool named `deployment`.',
])('what else is not found may have any name: %s', (message) => {
  expect(refused(404, { error: { message, code: 'not_found' } }).code).toBe('invalid_request')
})

test('a target that is busy is told from one that takes no request of this size', () => {
  const busy = refused(429, { error: { message: 'Rate limit reached for m1 on tokens per min (TPM).' } })
  expect([busy.concernsSize, busy.mayBeRetried, failureClass(busy).health]).toEqual([false, true, expect.anything()])
  const message = 'Request too large for m1 on tokens per min (TPM): Limit 10, Requested 20.'
  const large = refused(429, { error: { message } })
  expect([large.code, large.concernsSize, large.mayBeRetried]).toEqual(['rate_limited', true, false])
  expect(failureClass(large)).toEqual({ name: 'too_large', same: 'never', next: 'any' })
})

test('a code that does not say why leaves it to the message', () => {
  const errors = {
    busy: 'rate_limited',
    'used up': 'quota_exhausted',
    'request too large': 'too_large',
    no: 'content_blocked',
  }
  const codeOf = (code: string, message: string) =>
    errorFor({ ...provider, errors } as unknown as Provider, {
      status: 429,
      headers: {},
      text: JSON.stringify({ error: { code, message } }),
    }).code
  expect(codeOf('busy', 'Your limits are used up.')).toBe('quota_exhausted')
  expect(codeOf('busy', 'Slow down.')).toBe('rate_limited')
  expect(codeOf('no', 'Your limits are used up.')).toBe('content_blocked')
})

test.each([
  [{ error: { message: 'a' } }, 'a'],
  [[{ error: { message: 'b' } }], 'b'],
  [{ error: 'c' }, 'c'],
  [{ message: 'd' }, 'd'],
  [{ errors: [{ message: 'e' }] }, 'e'],
  [{ base_resp: { status_msg: 'f' } }, 'f'],
  ['<html>g</html>', '<html>g</html>'],
  ['', 'HTTP status 500'],
])('the message is found in %j', (body, message) => {
  expect(refused(500, body).message).toBe(message)
})

test('a wait is read from headers or from the body', () => {
  expect(refused(429, {}, { 'retry-after-ms': '1500' }).retryAfterMs).toBe(1_500)
  expect(refused(429, {}, { 'retry-after': '7' }).retryAfterMs).toBe(7_000)
  expect(refused(429, { error: { details: [{ retryDelay: '34.4s' }] } }).retryAfterMs).toBe(34_400)
})

test.each([
  [{ 'retry-after': '7' }, 7_000],
  [{ 'retry-after-ms': '1500' }, 1_500],
  [{ 'retry-after-ms': 'Infinity' }, 86_400_000],
  [{ 'retry-after': '1e300' }, 86_400_000],
  [{ 'retry-after': '-5' }, undefined],
  [{ 'retry-after': 'soon' }, undefined],
])('%o says how long to wait, a day at most', (headers, ms) => {
  expect(refused(429, {}, headers as unknown as Record<string, string>).retryAfterMs).toBe(ms)
})

test('no secret of ours is repeated, wherever a provider puts it: in a message, in a code, at the end of an excerpt', () => {
  const error = refused(400, { error: { message: 'sk-1 hdr-secret-2 2024-01-01', code: 'for sk-1' } })
  expect(error.message).toBe('[secret] [secret] 2024-01-01')
  expect(error.providerCode).toBe('for [secret]')
  const long = errorFor(provider, { status: 500, headers: {}, text: `${'x'.repeat(1_995)}hdr-secret-2` })
  expect(long.message).not.toContain('hdr-s')
})

const table = {
  ...provider,
  errors: {
    'incorrect api key': 'provider_refused',
    'model not exist': 'model_not_found',
    'balance is used up': 'quota_exhausted',
    'too long': 'context_length',
  },
} as unknown as Provider
const classified = (status: number, message: string) =>
  errorFor(table, { status, headers: {}, text: JSON.stringify({ error: { message } }) }).code

describe('words of the caller that a provider repeats', () => {
  const phrases = ['Incorrect API key', 'Model Not Exist', 'Your balance is used up']

  test.each(phrases)('close nothing in a message about the request: %s', (words) => {
    for (const status of [400, 422])
      for (const message of [
        `Invalid value: '${words}'. Supported values are: 'a' and 'b'.`,
        `Unknown parameter "${words}'s" in "tools[0]"`,
        `messages[0].name: ${words} does not match the pattern`,
        `The function \`${words}`,
      ])
        expect([message, classified(status, message)]).toEqual([message, 'invalid_request'])
  })

  test.each([
    ['Incorrect API key provided: sk-***.', 'provider_refused'],
    ['Model Not Exist', 'model_not_found'],
    ["Your balance is used up for 'mine'", 'quota_exhausted'],
  ])('are told from the words of the provider: %s', (message, code) => {
    expect(classified(400, message)).toBe(code)
  })

  test('count where they can only concern the caller', () => {
    expect(classified(400, "messages[0]: 'this is too long'")).toBe('context_length')
  })

  test('count outside of quotes where the status does not blame the request', () => {
    expect(classified(401, 'Key: Incorrect API key')).toBe('provider_refused')
    expect(classified(500, "No answer to 'Incorrect API key'")).toBe('provider_failed')
  })
})
