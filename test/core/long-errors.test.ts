import { expect, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'

test('an error repeats no more than the beginning of a long text of the client', () => {
  const long = 'z'.repeat(1_000_000)
  const error = new RouterError('invalid_request', `'metadata.${long}' must be a text.`, { param: `metadata.${long}` })
  expect(error.message.length).toBe(10_000)
  expect(error.message).toMatch(/^'metadata\.z+…$/)
  expect(error.param).toMatch(/^metadata\.z+…$/)
  expect(error.param?.length).toBe(300)
  expect(error.with({}).message).toBe(error.message)
  const short = new RouterError('invalid_request', 'Short.', { param: 'metadata.a' })
  expect([short.message, short.param]).toEqual(['Short.', 'metadata.a'])
})
