import { expect, test } from 'vitest'
import { messageIn } from '../../src/observe/otlp.ts'

test('the log has the message of what the SDK reports, without its stack and what the collector answered', () => {
  const reported = {
    stack: 'Error: Timed out\n    at send (transport.js:1)',
    message: 'Timed out',
    data: 'words',
    name: 'Error',
  }
  expect(messageIn(JSON.stringify(reported))).toBe('Timed out')
  expect([messageIn('Timed out'), messageIn('null'), messageIn('{"a":1}')]).toEqual(['Timed out', 'null', '{"a":1}'])
})
