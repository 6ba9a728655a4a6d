import { expect, test } from 'vitest'
import { isShutDown, nextShutdown, shutdownMessage } from '../../src/core/models/model.ts'

const day = Date.parse('2026-10-16T00:00:00Z')

test('a model is served until its day begins', () => {
  expect([day - 1, day, day + 1].map((at) => isShutDown({ shutdown: '2026-10-16' }, at))).toEqual([false, true, true])
  expect(isShutDown({}, day)).toBe(false)
})

test('the next shutdown is the first one after a moment', () => {
  const entries = [{}, { shutdown: '2026-10-16' }, { shutdown: '2026-10-18' }, { shutdown: '2026-10-17' }]
  expect(nextShutdown(entries, day - 1)).toBe(day)
  expect(nextShutdown(entries, day)).toBe(Date.parse('2026-10-17'))
  expect(nextShutdown(entries, Date.parse('2026-10-18'))).toBe(Infinity)
})

test('a message names the day and the successor', () => {
  const said = shutdownMessage('maker/old/one', { shutdown: '2026-10-16', successor: 'new/one' })
  expect(said).toBe(
    "The model 'maker/old/one' was shut down by its provider on 2026-10-16: call 'maker/new/one' instead.",
  )
  expect(shutdownMessage('maker/old', { shutdown: '2026-10-16' })).toContain(
    'GET /v1/models lists the available models',
  )
})
