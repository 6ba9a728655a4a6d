import { expect, test, vi } from 'vitest'
import { type QuotaGate, quotaWaits } from './quota-steps.ts'
import { staleExceptions, tests } from './table.ts'

// Part of the table: calls that wait for quota. Nobody waits with one instance, so the limits wait here before they decide.

const { gate, pass } = vi.hoisted(() => {
  let closed: PromiseWithResolvers<void> | undefined
  let count = 0
  const gate: QuotaGate = {
    close() {
      closed = Promise.withResolvers()
      count = 0
    },
    open() {
      closed?.resolve()
      closed = undefined
    },
    waiting: () => count,
  }
  /** Takes a step once the gate is open, at once where it is. Only calls of keys with limits wait. */
  const pass = <Result>(step: () => Result | Promise<Result>, waits: boolean): Result | Promise<Result> => {
    if (!closed || !waits) return step()
    count++
    return closed.promise.then(step)
  }
  return { gate, pass }
})

vi.mock('../../src/access/limits.ts', async (original) => {
  const limits = await original<typeof import('../../src/access/limits.ts')>()
  const openLimits: typeof limits.openLimits = (accounts) => {
    const { take } = limits.openLimits(accounts)
    const isLimited = (limited: Parameters<typeof take>[0]) =>
      limited.some((one) => one.limits.concurrentCalls !== null)
    return { take: (limited, request) => pass(() => take(limited, request), isLimited(limited)) }
  }
  return { ...limits, openLimits }
})

const scenarios = [quotaWaits(gate)]

test('exceptions of the table are about routes that there are', () => {
  expect(staleExceptions(scenarios)).toEqual([])
})

tests(scenarios)
