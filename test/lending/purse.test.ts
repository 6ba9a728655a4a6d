import { expect, test } from 'vitest'
import { openBank } from '../../src/lending/bank.ts'
import { Purse } from '../../src/lending/purse.ts'
import { withLoans } from '../../src/lending/with-loans.ts'
import type { Reservation } from '../../src/money/budget.ts'
import { openQuotaBudget } from '../../src/money/quota-budget.ts'
import { settleDown } from './wires.ts'

/** A bank and two purses; what the bank answers arrives at once, or where that is `held`, when a test delivers it. */
function openWorld({ mostIdle = 10_000 } = {}) {
  const answers: (() => void)[] = []
  const world = { isHeld: false }
  const recall = async (id: number, accounts: readonly string[]) => purses.get(id)?.recall(accounts) ?? []
  const bank = openBank({ readSpent: () => 0n, recall })
  const purses = new Map<number, Purse>()
  for (const id of [1, 2]) {
    const link = {
      lend: (needs, onAnswer) =>
        bank.lend(id, needs, (answer) => {
          if (world.isHeld) answers.push(() => onAnswer(answer))
          else onAnswer(answer)
        }),
      giveBack: (account, amount, closes) => bank.giveBack(id, account, amount, closes),
    } satisfies ConstructorParameters<typeof Purse>[0]
    purses.set(id, new Purse(link, { mostIdle }))
    bank.join(id)
  }
  const budgets = new Map([...purses].map(([id, purse]) => [id, openQuotaBudget(purse)]))
  const namesOf = (key: string) => [`key ${key} 1970-01`, 'organization o']
  return {
    world,
    deliver() {
      world.isHeld = false
      for (const each of answers.splice(0)) each()
    },
    async begin(id: number, nanoUsd: bigint, monthlyLimitNano: bigint | null, key = 'k'): Promise<Reservation> {
      const payers = {
        at: 0,
        key: { id: key, monthlyLimitNano },
        organization: { id: 'o', creditNano: 0n, enforcesBalance: false },
      }
      return await withLoans(() => budgets.get(id)?.reserve({ ...payers, nanoUsd }) as Reservation)
    },
    end(id: number, call: Reservation, cost: bigint, key = 'k') {
      call.settle(cost)
      bank.spend(id, namesOf(key), cost)()
      call.written()
    },
  }
}

test('what a call costs beyond what it holds counts, also where it began before there was a limit', async () => {
  const { begin, end } = openWorld()
  const before = await begin(1, 10n, null)
  const other = await begin(2, 10n, 100n)
  end(1, before, 60n)
  end(2, other, 10n)
  for (let n = 0; n < 3; n++) await begin(2, 10n, 100n)
  await expect(begin(2, 10n, 100n)).rejects.toMatchObject({ code: 'budget_exhausted' })
})

test('an account is kept while something that the bank lends without limit is on its way to it', async () => {
  const { world, deliver, begin, end } = openWorld({ mostIdle: 4 })
  const unlimited = (key: string) => begin(1, 1n, null, key)
  end(1, await begin(1, 1n, 100n), 0n)
  // The purse looks twice for accounts that are not used: the first time this one has been.
  for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) end(1, await unlimited(key), 0n, key)
  world.isHeld = true
  const others = ['g', 'h', 'i', 'j', 'l', 'm'].map(unlimited)
  const running = begin(1, 90n, null)
  await settleDown()
  deliver()
  await Promise.all([running, ...others])
  await begin(2, 10n, 100n)
  await expect(begin(2, 10n, 100n)).rejects.toMatchObject({ code: 'budget_exhausted' })
})
