import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { endOf, valuesInMemory } from '../../src/plugin/kit.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: 0 }))
afterEach(() => void vi.useRealTimers())

test('a value in memory is there until its end, again and again', async () => {
  const values = valuesInMemory()
  for (let round = 0; round < 3; round++) {
    const began = Date.now()
    expect(await values.add('one', 'k', `"${round}"`, began + 1_000)).toBe(true)
    expect(await values.add('one', 'k', '"late"', began + 9_000)).toBe(false)
    vi.setSystemTime(began + 999)
    expect(await values.get('one', 'k')).toBe(`"${round}"`)
    vi.setSystemTime(began + 1_000)
    expect(await values.get('one', 'k')).toBeUndefined()
  }
  await values.set('one', 'k', '1', Date.now() + 1_000)
  vi.setSystemTime(Date.now() + 900)
  // Set anew, it ends later.
  await values.set('one', 'k', '2', Date.now() + 1_000)
  vi.setSystemTime(Date.now() + 900)
  expect([await values.get('one', 'k'), await values.get('two', 'k')]).toEqual(['2', undefined])
  await values.delete('one', 'k')
  expect(await values.get('one', 'k')).toBeUndefined()
})

test('a value is kept for 90 days at most, from the moment it is set', () => {
  const longest = 90 * 86_400_000
  for (const now of [0, 1_000_000]) {
    vi.setSystemTime(now)
    expect([endOf(), endOf(5_000), endOf(longest + 1)]).toEqual([now + longest, now + 5_000, now + longest])
  }
})
