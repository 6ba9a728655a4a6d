import { expect, test } from 'vitest'
import { openBank } from '../../src/lending/bank.ts'
import { Purse } from '../../src/lending/purse.ts'
import { withLoans } from '../../src/lending/with-loans.ts'
import type { PayingAccounts } from '../../src/money/budget.ts'
import { openQuotaBudget } from '../../src/money/quota-budget.ts'
import { settleDown } from './wires.ts'

// Workers that admit calls of one organization. The third is busy: it receives a recall only when the test lets it.

function threeWorkers(credit: bigint) {
  const purses = new Map<number, Purse>()
  let received = Promise.withResolvers<void>()
  received.resolve()
  const bank = openBank({
    readSpent: () => 0n,
    async recall(id, accounts) {
      if (id === 3) await received.promise
      return purses.get(id)?.recall(accounts) ?? []
    },
  })
  const open = (id: number) => {
    bank.join(id)
    const purse = new Purse({
      lend: (needs, onAnswer) => bank.lend(id, needs, onAnswer),
      giveBack: (account, amount, closes) => bank.giveBack(id, account, amount, closes),
    })
    purses.set(id, purse)
    const budget = openQuotaBudget(purse)
    const reserve = async (nanoUsd: bigint) =>
      withLoans(() => budget.reserve({ ...payers(credit), nanoUsd, ...unassumed }))
    return { reserve }
  }
  return {
    workers: [open(1), open(2), open(3)] as const,
    beBusy: () => {
      received = Promise.withResolvers<void>()
    },
    receive: () => received.resolve(),
  }
}

const unassumed = { assumedTokens: undefined, assumedUses: undefined }

const payers = (creditNano: bigint) =>
  ({
    at: 0,
    key: { id: 'k', monthlyLimitNano: null },
    organization: { id: 'o', creditNano, enforcesBalance: true },
  }) as unknown as PayingAccounts

test('a call that fits at every moment is admitted, although two workers report what they held one after the other', async () => {
  const { workers, beBusy, receive } = threeWorkers(200n)
  const [first, second, third] = workers
  const running = await second.reserve(100n)
  ;(await third.reserve(92n)).settle(0n)
  beBusy()
  const asked = first.reserve(50n)
  await settleDown()
  // The second has answered that it holds 100; its call fails and costs nothing.
  running.settle(0n)
  // The third admits a call with what it still has. In use: 92 of 200.
  await third.reserve(92n)
  receive()
  expect((await asked).maxNano()).toBe(50n)
})

test('a call that does not fit at any moment is refused, although other calls are admitted all the time', async () => {
  const { workers, beBusy, receive } = threeWorkers(200n)
  const [first, second, third] = workers
  await second.reserve(100n)
  let running = await third.reserve(92n)
  beBusy()
  const asked = first.reserve(50n).then(
    () => 'admitted',
    (error) => error.code,
  )
  for (let round = 0; round < 20; round++) {
    await settleDown()
    running.settle(0n)
    running = await third.reserve(92n)
    receive()
    beBusy()
  }
  receive()
  expect(await asked).toBe('budget_exhausted')
})
