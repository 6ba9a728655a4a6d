import { expect, test } from 'vitest'
import { Accounts } from '../../src/accounts/accounts.ts'
import { allocateAccounts } from '../../src/accounts/memory.ts'
import { openBudget } from '../../src/money/budget.ts'
import { atOnce } from './local.ts'

// Threads that admit calls of one organization: a call is refused only if it does not fit at that moment.

function threeThreads(creditNano: bigint) {
  const memory = allocateAccounts({ columns: 4, rows: 64, slots: 8 })
  const open = (thread: number): Reserving => {
    const budget = openBudget(new Accounts({ memory, thread, readSpent: () => 0n }))
    const key = { id: `k${thread}`, monthlyLimitNano: null }
    const payers = { at: Date.UTC(2026, 10, 21), key, organization: { id: 'o', creditNano, enforcesBalance: true } }
    return { reserve: (nanoUsd: bigint) => atOnce(budget.reserve({ ...payers, nanoUsd })) }
  }
  return [open(1), open(2), open(3)] as const
}

type Reserving = { reserve(nanoUsd: bigint): { settle(nanoUsd: bigint): void; maxNano(): bigint } }

test('a call that fits is admitted at once, while calls of two other threads come and go', () => {
  const [first, second, third] = threeThreads(200n)
  const running = second.reserve(100n)
  third.reserve(92n).settle(0n)
  expect(first.reserve(50n).maxNano()).toBe(50n)
  running.settle(0n)
  third.reserve(92n)
})

test('a call that does not fit is refused, whichever thread holds the rest, and admitted when that is free', () => {
  const [first, second, third] = threeThreads(200n)
  const running = second.reserve(100n)
  for (let round = 0; round < 20; round++) {
    const other = third.reserve(92n)
    expect(() => first.reserve(50n)).toThrow('0.000000192 USD reserved by running calls')
    other.settle(0n)
  }
  running.settle(0n)
  expect(first.reserve(200n).maxNano()).toBe(200n)
})
