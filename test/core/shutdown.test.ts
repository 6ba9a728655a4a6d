import { expect, test } from 'vitest'
import { isRetired, nextRetirement, retiredMessage } from '../../src/core/models/model.ts'

const day = Date.parse('2026-10-16T00:00:00Z')

test('a model is retired from the beginning of its day', () => {
  expect([day - 1, day, day + 1].map((at) => isRetired({ shutdown: '2026-10-16' }, at))).toEqual([false, true, true])
  expect(isRetired({}, day)).toBe(false)
})

test('the next retirement is the first one after a moment', () => {
  const entries = [{}, { shutdown: '2026-10-16' }, { shutdown: '2026-10-18' }, { shutdown: '2026-10-17' }]
  expect(nextRetirement(entries, day - 1)).toBe(day)
  expect(nextRetirement(entries, day)).toBe(Date.parse('2026-10-17'))
  expect(nextRetirement(entries, Date.parse('2026-10-18'))).toBe(Infinity)
})

test('a message names the day and the successor', () => {
  const message = retiredMessage('maker/old/one', { shutdown: '2026-10-16', successor: 'new/one' })
  expect(message).toBe(
    "The model 'maker/old/one' was retired by its provider on 2026-10-16: call 'maker/new/one' instead.",
  )
  expect(retiredMessage('maker/old', { shutdown: '2026-10-16' })).toContain('GET /v1/models lists the available models')
})
