import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Deadlines, type LoopStalls } from '../../src/upstream/http/deadlines.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] }))
afterEach(() => void vi.useRealTimers())

/** Something that ends when its limit has passed, and the real time of that. */
function limitedTo(ms: number, deadlines: Deadlines) {
  const endBy = deadlines.now + ms
  const limited = {
    place: -1,
    endedAt: undefined as number | undefined,
    checkLimits(now: number) {
      if (now < endBy) return
      limited.endedAt = performance.now()
      deadlines.delete(limited)
    },
  }
  deadlines.add(limited)
  return limited
}

test('a limit is not passed by the time in which the event loop stood still', () => {
  const stalls = { totalMs: 0 }
  const deadlines = new Deadlines(stalls as LoopStalls)
  const limited = limitedTo(100, deadlines)
  vi.advanceTimersByTime(50)
  stalls.totalMs += 300
  vi.advanceTimersByTime(300)
  expect(limited.endedAt).toBeUndefined()
  vi.advanceTimersByTime(50)
  expect(limited.endedAt).toBe(400)
  // Of a later request only what has stood still since then.
  const next = limitedTo(100, deadlines)
  vi.advanceTimersByTime(75)
  expect(next.endedAt).toBeUndefined()
  vi.advanceTimersByTime(25)
  expect(next.endedAt).toBe(500)
})

test('limits are watched while there are any, and again after a pause', () => {
  const deadlines = new Deadlines({ totalMs: 0 } as LoopStalls)
  for (let round = 0; round < 3; round++) {
    const [long, short] = [limitedTo(200, deadlines), limitedTo(50, deadlines)]
    const began = performance.now()
    vi.advanceTimersByTime(250)
    expect([short.endedAt, long.endedAt]).toEqual([began + 50, began + 200])
    vi.advanceTimersByTime(1_000)
    expect(vi.getTimerCount()).toBe(0)
  }
})
