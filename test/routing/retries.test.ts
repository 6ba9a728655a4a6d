import { describe, expect, test } from 'vitest'
import type { Target } from '../../src/manifest/target.ts'
import { backoffMs, RetryBudget, spreadMs } from '../../src/routing/health/retries.ts'

const named = (slug: string) => ({ provider: { slug }, model: 'm' }) as unknown as Target
const [a, b] = [named('a'), named('b')]

/** A budget whose clock is moved by hand. */
function fresh(): { retries: RetryBudget; clock: { now: number } } {
  const clock = { now: 0 }
  return { retries: new RetryBudget({ now: () => clock.now }), clock }
}

/** How many retries are left, which are used up by this. */
function takeAll(retries: RetryBudget, target: Target, caller: string): number {
  let taken = 0
  while (retries.take(target, caller)) taken++
  return taken
}

describe('retries', () => {
  test('are ten at first, and one for each five first attempts, of each target and organization', () => {
    const { retries } = fresh()
    expect(takeAll(retries, a, 'one')).toBe(10)
    expect([takeAll(retries, b, 'one'), takeAll(retries, a, 'other')]).toEqual([10, 10])
    for (let round = 0; round < 20; round++) {
      for (let attempt = 0; attempt < 4; attempt++) retries.earn(a, 'one')
      expect(retries.take(a, 'one')).toBe(false)
      retries.earn(a, 'one')
      expect(takeAll(retries, a, 'one')).toBe(1)
    }
    expect(takeAll(retries, b, 'one')).toBe(0)
  })

  test('are never more than ten, however many calls go well', () => {
    const { retries } = fresh()
    for (let round = 0; round < 3; round++) {
      expect(takeAll(retries, a, 'one')).toBe(10)
      for (let attempt = 0; attempt < 1_000; attempt++) retries.earn(a, 'one')
    }
    retries.take(a, 'one')
    for (let attempt = 0; attempt < 3; attempt++) retries.earn(a, 'one')
    expect(takeAll(retries, a, 'one')).toBe(9)
  })

  test('come back with time: one in each second, and never more than ten', () => {
    const { retries, clock } = fresh()
    expect(takeAll(retries, a, 'one')).toBe(10)
    for (let second = 0; second < 30; second++) {
      clock.now += 999
      expect(retries.take(a, 'one')).toBe(false)
      clock.now += 1
      expect(takeAll(retries, a, 'one')).toBe(1)
    }
    clock.now += 3_600_000
    expect(takeAll(retries, a, 'one')).toBe(10)
  })

  test('of a caller that makes a call every two seconds are always there, though each of its calls fails', () => {
    const { retries, clock } = fresh()
    for (let call = 0; call < 100; call++) {
      retries.earn(a, 'one')
      expect(retries.take(a, 'one')).toBe(true)
      clock.now += 2_000
    }
  })

  test('of names that a client invents do not pile up', () => {
    const { retries } = fresh()
    takeAll(retries, a, 'one')
    for (let name = 0; name < 10_001; name++) retries.take(named(`invented-${name}`), 'one')
    // All of them begin anew then, which lets some more retries through.
    expect(takeAll(retries, a, 'one')).toBe(10)
  })
})

test('so many calls wait for one busy target at once, and others again when they have waited', async () => {
  const { retries } = fresh()
  for (let round = 0; round < 3; round++) {
    const { promise: over, resolve: end } = Promise.withResolvers<void>()
    const waiting = [1, 2, 3].map(() => retries.wait(a, 3, () => over))
    expect(await retries.wait(a, 3, () => over)).toBe(false)
    const other = retries.wait(b, 3, () => over)
    end()
    expect(await Promise.all([...waiting, other])).toEqual([true, true, true, true])
  }
  // Also when their calls have ended meanwhile.
  for (let call = 0; call < 10; call++) {
    const gone = retries.wait(a, 1, () => Promise.reject(new Error('gone')))
    await expect(gone).rejects.toThrow('gone')
  }
  expect(await retries.wait(a, 1, async () => {})).toBe(true)
})

describe('waits', () => {
  test('before a retry double up to a bound, and may be nothing', () => {
    const longest = Array.from({ length: 8 }, (_, retry) => backoffMs(retry, () => 1))
    expect(longest).toEqual([250, 500, 1_000, 2_000, 4_000, 4_000, 4_000, 4_000])
    expect(backoffMs(3, () => 0)).toBe(0)
    expect(backoffMs(3, () => 0.5)).toBe(1_000)
  })

  test('for a busy target are never shorter than it says, and at most a fifth longer', () => {
    expect([0, 0.5, 1].map((random) => spreadMs(1_000, () => random))).toEqual([1_000, 1_100, 1_200])
  })
})
