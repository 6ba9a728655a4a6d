import { expect, test } from 'vitest'
import { secretOf } from '../../src/access/secrets.ts'

test.each([
  [{ authorization: 'Bearer ir-abc' }, 'ir-abc'],
  [{ authorization: 'bearer  ir-abc ' }, 'ir-abc'],
  [{ 'x-api-key': 'ir-abc' }, 'ir-abc'],
  [{ 'x-api-key': [' ir-abc ', 'ir-def'] }, 'ir-abc'],
  [{ authorization: 'Bearer ir-abc', 'x-api-key': 'ir-def' }, 'ir-abc'],
  [{ authorization: '', 'x-api-key': 'ir-def' }, 'ir-def'],
  [{ authorization: 'Bearer ', 'x-api-key': 'ir-def' }, 'ir-def'],
  [{ authorization: 'Basic dXNlcjpwdw==', 'x-api-key': 'ir-def' }, 'ir-def'],
])('%j has the key %j', (headers, secret) => {
  expect(secretOf(headers)).toBe(secret)
})

test.each([
  {},
  { authorization: '' },
  { authorization: '  ' },
  { authorization: 'Bearer' },
  { authorization: 'Bearer   ' },
  { 'x-api-key': '' },
  { 'x-api-key': [] },
])('%j has no key', (headers) => {
  expect(secretOf(headers)).toBeUndefined()
})

test.each(['Basic dXNlcjpwdw==', 'ir-abc', 'Bearerir-abc', 'Token ir-abc'])(
  'Authorization: %s has a text that is no key',
  (authorization) => {
    expect(secretOf({ authorization })).toMatch(/ /)
  },
)
