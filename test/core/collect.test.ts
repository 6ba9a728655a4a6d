import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { collectWhenIdle } from '../../src/runtime/collect.ts'
import { slow } from '../helpers/slow.ts'

setFlagsFromString('--expose-gc')
const gc: NodeJS.GCFunction = runInNewContext('gc')
setFlagsFromString('--no-expose-gc')

const MiB = 1024 * 1024

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

/** Whether what nobody uses is gone after `work`. */
function collects(work: () => void): boolean {
  // Room for what follows, so that nothing else makes V8 collect.
  gc({ type: 'minor' })
  const made = Array.from({ length: 10_000 }, () => ({ unused: 0 })).length
  const before = youngBytes()
  work()
  return youngBytes() < before - made * 8
}

function youngBytes(): number {
  return getHeapSpaceStatistics().find((space) => space.space_name === 'new_space')?.space_used_size ?? 0
}

// V8 may collect at any time by itself: then it is tried again, from the beginning.
test('memory is collected for each 4 MB that passed, in a process that has no flag for it', { retry: 5 }, async () => {
  vi.resetModules()
  const { collectPassed } = await import('../../src/runtime/collect.ts')
  expect(collects(() => collectPassed(3 * MiB))).toBe(false)
  expect(collects(() => collectPassed(MiB))).toBe(true)
  expect(collects(() => collectPassed(3 * MiB))).toBe(false)
  expect(runInNewContext('typeof gc')).toBe('undefined')
})

test('what a start has left is collected once, after a second without a request', slow, () => {
  const running = { begun: 5, size: 1 }
  expect(
    collects(() => {
      collectWhenIdle(running)
      vi.advanceTimersByTime(5_000)
      running.size = 0
      running.begun++
      vi.advanceTimersByTime(1_000)
    }),
  ).toBe(false)
  expect(collects(() => vi.advanceTimersByTime(1_000))).toBe(true)
  expect(collects(() => vi.advanceTimersByTime(60_000))).toBe(false)
})

test('what many requests have left is collected when there was none for a minute', slow, () => {
  const running = { begun: 0, size: 0 }
  collectWhenIdle(running)
  vi.advanceTimersByTime(1_000)
  expect(
    collects(() => {
      running.begun += 999
      vi.advanceTimersByTime(120_000)
    }),
  ).toBe(false)
  expect(
    collects(() => {
      running.begun++
      vi.advanceTimersByTime(60_000)
    }),
  ).toBe(false)
  expect(collects(() => vi.advanceTimersByTime(1_000))).toBe(true)
})

test(
  'a process that has been busy since its start is not collected in its first pause, but after a minute',
  slow,
  () => {
    const running = { begun: 0, size: 1 }
    expect(
      collects(() => {
        collectWhenIdle(running)
        running.begun = 1_000
        vi.advanceTimersByTime(1_000)
        running.size = 0
        vi.advanceTimersByTime(59_000)
      }),
    ).toBe(false)
    expect(collects(() => vi.advanceTimersByTime(2_000))).toBe(true)
  },
)
