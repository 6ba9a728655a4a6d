import { expect, vi } from 'vitest'

/** How much longer than usual the tests of this run may take: on a busy machine set TEST_TIME_FACTOR above 1. */
export const timeFactor = Number(process.env.TEST_TIME_FACTOR || 1)

/** A time limit of so many milliseconds on an idle machine. */
export function limit(ms: number): number {
  return ms * timeFactor
}

/** Repeats an expectation until it holds. */
export async function eventually<T>(expectation: () => T | Promise<T>, ms = 15_000): Promise<T> {
  return await vi.waitFor(expectation, { timeout: limit(ms), interval: 10 })
}

/** The processor time of this process while something ran, in milliseconds; other processes are not included. */
export async function processorTime<T>(run: () => T | Promise<T>): Promise<{ result: T; ms: number }> {
  const before = process.cpuUsage()
  const result = await run()
  const { user, system } = process.cpuUsage(before)
  return { result, ms: (user + system) / 1_000 }
}

/** `slack` is how many times as long each unit of the large size may take; below `floorMs` times are mostly noise. */
type Growth = { small: number; large: number; slack: number; floorMs: number }

/**
 * Expects that `work` takes time in proportion to its size, as the processor time of this thread. What else the machine does
 * only ever makes a measurement longer: each is made up to five times, and the least counts.
 */
export function expectLinear(work: (size: number) => void, { small, large, slack, floorMs }: Growth): void {
  work(small)
  const few = Math.min(...[1, 2, 3].map(() => threadTime(() => work(small))))
  const most = Math.max(floorMs, few * (large / small) * slack)
  let least = Number.POSITIVE_INFINITY
  for (let times = 0; times < 5 && least >= most; times++)
    least = Math.min(
      least,
      threadTime(() => work(large)),
    )
  expect(least).toBeLessThan(most)
}

function threadTime(run: () => void): number {
  const before = process.threadCpuUsage()
  run()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}
