import { expect, test } from 'vitest'
import { WorkerMetrics } from '../../src/observe/worker-metrics.ts'
import { eventually } from '../helpers/time.ts'

test('readers of the delay of an event loop do not take it from each other, and it passes', async () => {
  let now = 0
  const metrics = new WorkerMetrics(() => now)
  metrics.watch()
  try {
    const maxOf = () => metrics.facts().delay?.max ?? 0
    await eventually(async () => expect(maxOf()).toBeGreaterThan(0))
    const until = performance.now() + 300
    while (performance.now() < until);
    await eventually(async () => expect(maxOf()).toBeGreaterThan(0.2))
    expect([maxOf(), maxOf()].every((max) => max > 0.2)).toBe(true)
    now += 30_000
    expect([maxOf(), maxOf()].every((max) => max > 0.2)).toBe(true)
    await eventually(async () => {
      now += 30_000
      expect(maxOf()).toBeLessThan(0.2)
    })
  } finally {
    metrics.close()
  }
})
