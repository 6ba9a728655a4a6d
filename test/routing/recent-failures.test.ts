import { expect, test } from 'vitest'
import { RecentFailures } from '../../src/routing/health/circuit.ts'

test('calls older than the window do not count, however long it runs', () => {
  const recent = new RecentFailures()
  for (let second = 0; second < 24 * 3_600; second++) {
    recent.add(second * 1_000, 30_000, second % 3 === 0 ? 'one' : undefined)
    if (second < 60) continue
    const { calls, failed } = recent.share()
    // A window is ten slots, of which the last one is being filled.
    expect(calls).toBeGreaterThan(27)
    expect(calls).toBeLessThanOrEqual(30)
    expect(failed).toBeCloseTo(1 / 3, 1)
  }
})

test('failures older than the window are nobody’s', () => {
  const recent = new RecentFailures()
  for (let call = 0; call < 9; call++) recent.add(call * 100, 30_000, 'one')
  expect(recent.share()).toEqual({ calls: 9, failed: 1, mostly: 'one' })
  recent.add(31_000, 30_000, 'other')
  expect(recent.share()).toEqual({ calls: 1, failed: 1, mostly: 'other' })
  recent.add(33_000, 30_000)
  expect(recent.share()).toEqual({ calls: 2, failed: 0.5, mostly: 'other' })
})

test('failures are mostly those of whom more than half of them are', () => {
  const recent = new RecentFailures()
  recent.add(0, 30_000, 'one')
  recent.add(1_000, 30_000, 'other')
  recent.add(4_000, 30_000)
  expect(recent.share()).toEqual({ calls: 3, failed: 2 / 3, mostly: undefined })
  recent.add(9_000, 30_000, 'one')
  expect(recent.share()).toEqual({ calls: 4, failed: 3 / 4, mostly: 'one' })
})
