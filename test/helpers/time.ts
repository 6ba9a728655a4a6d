import { vi } from 'vitest'

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
