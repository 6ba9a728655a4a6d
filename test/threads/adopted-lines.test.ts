import { expect, test, vi } from 'vitest'
import type { AccountState } from '../../src/lending/account.ts'
import { openBank } from '../../src/lending/bank.ts'
import { AdoptedLines, type ChannelToOld, type Handed } from '../../src/workers/threads/adopted-lines.ts'
import type { FromNew, FromOld } from '../../src/workers/threads/handover-messages.ts'
import type { MoneyBooks } from '../../src/workers/threads/near-line.ts'
import { plainRecord } from '../store/plain-record.ts'

const account = 'organization o'

function alone() {
  let last = 0
  return { underWay: new Map(), newPurse: () => --last, onSaid() {} }
}

/** The lines of a process, of which the one with the purse -1 is of a process before that. */
function adopt({ lent = [], isWritten = () => false }: { lent?: AccountState['lent']; isWritten?: () => boolean }) {
  const said: FromNew[] = []
  const ended = Promise.withResolvers<void>()
  let hear: (said: FromOld) => void = () => {}
  const channel = {
    send: (told: FromNew) => void said.push(told),
    listen(onItem: typeof hear) {
      hear = onItem
    },
    ended: () => ended.promise,
    isOver: false,
  } as unknown as ChannelToOld
  const recall = (purse: number, names: readonly string[]) => lines.recall(purse, names)
  const bank = openBank({ readSpent: () => 0n, recall, patienceMs: 10 })
  const money = { bank, ledger: { settle: async () => {} }, writeFailure() {} } as unknown as MoneyBooks
  const accounts: AccountState[] = [{ account, kind: 'money', limit: 100n, uses: [], lent }]
  const handed = { channel, accounts, purses: [1, -1], port: 1 }
  const lines = new AdoptedLines(handed, { money: () => money, isWritten, ...alone() })
  lines.listen()
  return { bank, lines, said, say: (item: FromOld) => hear(item), end: ended.resolve }
}

test('what lines hold is not lent while they may still come from the process that had adopted them', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const { bank, lines, end } = adopt({
      lent: [
        [1, 30n],
        [-1, 20n],
      ],
    })
    expect(bank.totals().lent).toBe(50n)
    end()
    await lines.ended()
    await null
    expect(bank.totals().lent).toBe(20n)
    expect(lines.purses()).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(5_000)
    expect(bank.totals().lent).toBe(0n)
    expect(lines.purses()).toEqual([])
  } finally {
    vi.useRealTimers()
  }
})

test('what they hold comes back at once when they have come otherwise', async () => {
  const { bank, lines, end } = adopt({ lent: [[-1, 20n]] })
  end()
  await lines.ended()
  lines.release()
  expect(bank.totals().lent).toBe(0n)
})

test.each([
  ['is in the tables', () => true, 0n],
  ['is not in the tables', () => false, 1_000n],
  [
    'may be in the tables, which cannot be read',
    () => {
      throw new Error('busy')
    },
    1_000n,
  ],
])('a row that is said once more and %s counts right', async (_, isWritten, counted) => {
  const { bank, said, say } = adopt({ isWritten })
  say({ kind: 'row', id: 7, purse: 0, accounts: [account], cost: 1_000n, record: plainRecord(), response: undefined })
  bank.join(5)
  bank.lend(5, [{ account, kind: 'money', limit: 10_000n, least: 0n, wish: 0n }], (answer) =>
    expect(answer).toMatchObject({ standings: [{ spent: counted }] }),
  )
  await expect.poll(() => said, { interval: 1 }).toEqual([{ kind: 'settled', id: 7 }])
})

test('a row that is said once more while it is written counts once', async () => {
  const { bank, said, say } = adopt({})
  const row = { kind: 'row', accounts: [account], cost: 1_000n, record: plainRecord(), response: undefined } as const
  say({ ...row, id: 1, purse: -1 })
  say({ ...row, id: 2, purse: 0 })
  await expect.poll(() => said.length, { interval: 1 }).toBe(2)
  expect(said).toEqual([
    { kind: 'settled', id: 1 },
    { kind: 'settled', id: 2 },
  ])
  bank.join(5)
  bank.lend(5, [{ account, kind: 'money', limit: 10_000n, least: 0n, wish: 0n }], (answer) =>
    expect(answer).toMatchObject({ standings: [{ spent: 1_000n }] }),
  )
})

test('lines that cannot be adopted yet leave nothing behind', () => {
  const left: number[] = []
  const bank = {
    join() {},
    leave: (purse: number) => left.push(purse),
    adopt() {
      throw new Error('busy')
    },
  }
  const handed = { channel: {}, accounts: [], purses: [1, -1], port: 1 } as unknown as Handed
  const options = { money: () => ({ bank }) as unknown as MoneyBooks, isWritten: () => false, ...alone() }
  expect(() => new AdoptedLines(handed, options)).toThrow('busy')
  expect(left).toEqual([-1, -2])
})
