import { expect, test, vi } from 'vitest'
import type { AccountState, Answer, Held } from '../../src/lending/account.ts'
import { openBank } from '../../src/lending/bank.ts'
import { type ChannelToNew, HandedBooks } from '../../src/threads/handed-books.ts'

test('books that come back do not wait for a line that does not answer, and lend nothing that it may have', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  try {
    const organization = { account: 'organization o', kind: 'money', limit: 100n, uses: [], lent: [] } as const
    const handed = new HandedBooks({ send() {} } as unknown as ChannelToNew, [organization as unknown as AccountState])
    const answers: ((held: Held[]) => void)[] = []
    const recall = (purse: number) =>
      new Promise<Held[]>((resolve) => (purse === 1 ? answers.push(resolve) : resolve([])))
    const bank = openBank({ readSpent: () => 0n, recall, patienceMs: 10 })
    const books = {
      bank,
      ledger: { settle: async () => {} },
      settleRows: async () => [],
      writeFailure: () => undefined,
    }
    const returned = handed.returnTo(books, () => [1, 2], recall)
    await vi.advanceTimersByTimeAsync(2_000)
    await returned
    let answer: Answer | Error | undefined
    bank.lend(2, [{ account: 'organization o', kind: 'money', limit: 100n, least: 60n, wish: 60n }], (given) => {
      answer = given
    })
    await vi.advanceTimersByTimeAsync(20)
    expect(answer).toBeUndefined()
    for (const each of answers) each([{ account: 'organization o', held: 50n }])
    await vi.advanceTimersByTimeAsync(20)
    expect(answer).toMatchObject({ isGranted: false, standings: [{ lent: 50n }] })
  } finally {
    vi.useRealTimers()
  }
})
