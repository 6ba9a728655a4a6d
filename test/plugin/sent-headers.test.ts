import { expect, test } from 'vitest'
import { sentHeaders } from '../../src/plugin/results.ts'

const refused = [
  'Authorization',
  'Proxy-Authorization',
  'X-Api-Key',
  'api-key',
  'x-goog-api-key',
  'x-auth-token',
  'x-client-secret',
  'Cookie',
  'Cookie2',
  'Host',
  'Content-Type',
  'Content-Length',
  'Content-Encoding',
  'Accept',
  'Accept-Encoding',
  'Connection',
  'Keep-Alive',
  'Proxy-Connection',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'Expect',
  'X-Amz-Date',
  'x-amz-content-sha256',
]
test.each(refused)('a plugin may not send %s', (name) => {
  expect(() => sentHeaders({ [name]: 'x' })).toThrow(`a plugin may not send the header '${name.toLowerCase()}'`)
})

const allowed = [
  'x-tenant',
  'x-cookie',
  'accept-language',
  'anthropic-beta',
  'user-agent',
  'x-host',
  'x-amzn-trace-id',
  'x-tokens',
]
test.each(allowed)('a plugin may send %s', (name) => {
  expect(sentHeaders({ [name.toUpperCase()]: 'a value' })).toEqual({ [name]: 'a value' })
})

test.each([
  ['a name of two words', { 'x y': '1' }, `'x y' is not the name of a header`],
  ['a second header in a value', { 'x-a': '1\r\nhost: b' }, `the header 'x-a' is not plain text`],
  ['a value that is no text', { 'x-a': 1 }, `the header 'x-a' is not plain text`],
])('%s is refused', (_, headers, message) => {
  expect(() => sentHeaders(headers)).toThrow(message)
})
