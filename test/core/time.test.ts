import { expect, test } from 'vitest'
import { formatTime, monthStart, parseTime } from '../../src/core/time.ts'

test.each([
  ['2026-12-01T00:00:00Z', Date.UTC(2026, 11, 1)],
  ['2026-12-01t00:00:00z', Date.UTC(2026, 11, 1)],
  ['2026-12-01 00:00:00Z', Date.UTC(2026, 11, 1)],
  ['2026-12-01T00:00:00.250+08:00', Date.UTC(2026, 10, 30, 16, 0, 0, 250)],
  ['2028-02-29T00:00:00Z', Date.UTC(2028, 1, 29)],
])('%s is a time', (text, at) => {
  expect(parseTime(text)).toBe(at)
})

test.each([
  '2026-02-29T00:00:00Z',
  '2026-13-01T00:00:00Z',
  '2026-12-01T25:00:00Z',
  '2026-12-01T00:00Z',
  '2026-12-01T00:00:00',
  '2026-12-01',
  'soon',
])('%s is none', (text) => {
  expect(parseTime(text)).toBeUndefined()
})

test('a time is written without fractions of a second where they are zero', () => {
  expect(formatTime(Date.UTC(2026, 10, 30, 12))).toBe('2026-11-30T12:00:00Z')
  expect(formatTime(Date.UTC(2026, 10, 30, 12, 0, 0, 5))).toBe('2026-11-30T12:00:00.005Z')
})

test('a month begins at midnight UTC', () => {
  expect(monthStart(Date.UTC(2026, 11, 31, 23, 59))).toBe(Date.UTC(2026, 11))
  expect(monthStart(Date.UTC(2026, 11, 31), 1)).toBe(Date.UTC(2027, 0))
})
