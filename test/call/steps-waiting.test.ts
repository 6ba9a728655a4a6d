import { afterAll, expect, test, vi } from 'vitest'
import { Accounts } from '../../src/accounts/accounts.ts'
import { type QuotaGate, quotaWaits } from './quota-steps.ts'
import { staleExceptions, tests } from './table.ts'

// Part of the table: calls that wait for quota. With one instance nobody waits for another, so reservations wait here.

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

const { reserve } = Accounts.prototype
const waiting = vi.spyOn(Accounts.prototype, 'reserve').mockImplementation(function (this: Accounts, needs) {
  const step = () => reserve.call(this, needs)
  // Only calls of keys with a limit of calls at once wait.
  if (!closed || needs.every(({ kind }) => kind !== 'running')) return step()
  count++
  return closed.promise.then(step)
})
afterAll(() => waiting.mockRestore())

const scenarios = [quotaWaits(gate)]

test('exceptions of the table are about routes that there are', () => {
  expect(staleExceptions(scenarios)).toEqual([])
})

tests(scenarios)
