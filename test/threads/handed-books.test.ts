import { describe, expect, test, vi } from 'vitest'
import type { AccountState, Answer, Held } from '../../src/lending/account.ts'
import { type Bank, openBank } from '../../src/lending/bank.ts'
import { openLedger } from '../../src/money/ledger.ts'
import { StoreError } from '../../src/store/store-error.ts'
import { type ChannelToNew, HandedBooks } from '../../src/workers/threads/handed-books.ts'
import type { FromOld } from '../../src/workers/threads/handover-messages.ts'
import { sentRows } from '../../src/workers/threads/sent-rows.ts'
import { plainRecord } from '../store/plain-record.ts'

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
      isWritten: () => false,
    }
    const returned = handed.returnTo(books, { all: () => [1, 2], recall })
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

test('a call does not wait for ever for a process that has the books and does not answer', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const handed = new HandedBooks({ send() {} } as unknown as ChannelToNew, [])
    const answered = vi.fn()
    handed.bank.lend(1, [], answered)
    handed.bank.lend(2, [], answered)
    handed.bank.leave(2)
    await vi.advanceTimersByTimeAsync(9_900)
    expect(answered).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(200)
    expect(answered.mock.calls).toEqual([[new Error('The process that holds accounting does not respond.')]])
  } finally {
    vi.useRealTimers()
  }
})

describe('rows that nobody has answered when the books come back', () => {
  const account = 'key key-1 2026-11'
  const row = () => sentRows([{ record: plainRecord(), response: undefined }])
  const recall = async () => [{ account, held: 100n }]

  /** The row of a call that cost 1,000; the limit is 1,500, of which another call holds 100. */
  function comeBack({ isWritten, write }: { isWritten(): boolean; write(): Promise<[]> }) {
    const lent: AccountState['lent'] = [[1, 1_100n]]
    const handed = new HandedBooks({ send() {} } as unknown as ChannelToNew, [
      { account, kind: 'money', limit: 1_500n, uses: [], lent },
    ])
    const spill = { append: async () => {}, clear: async () => {}, close: async () => {} }
    const ledger = openLedger({ write, ready: async () => {}, close: async () => {}, spill }, { onError() {} })
    const bank = openBank({ readSpent: () => (isWritten() ? 1_000n : 0n), recall })
    const { writeFailure } = ledger
    const settled = handed.settleRows(1, row())
    const books = { bank, ledger, settleRows: async () => [], writeFailure, isWritten }
    return { bank, settled, returned: handed.returnTo(books, { all: () => [1], recall }) }
  }

  /** What a call is granted that needs so much. */
  function lend(bank: Bank, least: bigint): Promise<Answer | Error> {
    return new Promise((resolve) =>
      bank.lend(1, [{ account, kind: 'money', limit: 1_500n, least, wish: least }], resolve),
    )
  }

  test.each([
    ['can be written', async (): Promise<[]> => []],
    ['cannot be written at present', async () => Promise.reject(new Error('the disk is full'))],
  ])('count once where they %s', async (_, write) => {
    const { bank, settled, returned } = comeBack({ isWritten: () => false, write })
    await returned
    expect(await settled).toEqual([])
    expect(await lend(bank, 401n)).toMatchObject({ isGranted: false, standings: [{ spent: 1_000n, lent: 100n }] })
    expect(await lend(bank, 400n)).toMatchObject({ isGranted: true })
  })

  test('count once where the other process has written them, and are not written again', async () => {
    const write = vi.fn(async (): Promise<[]> => [])
    const { bank, settled, returned } = comeBack({ isWritten: () => true, write })
    await returned
    expect(await settled).toEqual([])
    expect(write).not.toHaveBeenCalled()
    expect(await lend(bank, 401n)).toMatchObject({ isGranted: false, standings: [{ spent: 1_000n, lent: 100n }] })
  })

  test('wait until the tables can be read', async () => {
    let tries = 0
    const isWritten = () => {
      if (++tries < 3) throw new StoreError('the database is locked', undefined, 'it is locked')
      return false
    }
    const { bank, settled, returned } = comeBack({ isWritten, write: async () => [] })
    await returned
    expect(await settled).toEqual([])
    expect(await lend(bank, 401n)).toMatchObject({ isGranted: false, standings: [{ lent: 100n }] })
  })
})

describe('lines that follow to another process', () => {
  const account = 'key key-1 2026-11'
  const endOfTime = Number.MAX_SAFE_INTEGER
  const rowOf = (id: string) => sentRows([{ record: plainRecord({ id }), response: undefined }])

  /** Lines that have two rows and a loan unanswered, and a process that answers with these words. */
  function open(...answers: ('adopted' | 'refused')[]) {
    const handed = new HandedBooks({ send() {} } as unknown as ChannelToNew, [
      { account, kind: 'money', limit: 10_000n, uses: [], lent: [[1, 9_000n]] },
      { account: 'requests', kind: 'minute', limit: 10n, uses: [], lent: [] },
    ])
    const said: FromOld[] = []
    const channel = {
      send: (item: FromOld) => void said.push(item),
      take: async () => {
        const kind = answers.shift()
        // Said while the other process has not answered.
        void handed.settleRows(1, rowOf(`late ${answers.length}`))
        handed.bank.use(1, [{ account: 'requests', endsAt: endOfTime, uses: 2n, lent: 2n }])
        return kind && { kind, reason: 'busy' }
      },
    } as unknown as ChannelToNew
    const answered = vi.fn()
    void handed.settleRows(1, rowOf('early'))
    handed.bank.lend(1, [{ account, kind: 'money', limit: 10_000n, least: 1n, wish: 1n }], answered)
    const purses = { all: () => [1], recall: async () => [{ account, held: 50n }] }
    return { handed, said, answered, follow: () => handed.followTo(channel, 1, purses) }
  }

  test('take along what nobody has answered, and what their purses hold', async () => {
    const { handed, said, answered, follow } = open('adopted')
    expect(await follow()).toBeUndefined()
    expect(said).toMatchObject([
      { kind: 'adopt', purses: [1], accounts: [{ account, uses: [], lent: [[1, 50n]] }] },
      { kind: 'row', purse: 0, record: { id: 'early' } },
      { kind: 'row', purse: 1, record: { id: 'late 0' } },
      { kind: 'use', purse: 1, uses: [{ uses: 2n, lent: 2n }] },
      { kind: 'lend', purse: 1 },
    ])
    const { id } = said.at(-1) as Extract<FromOld, { kind: 'lend' }>
    handed.hear({ kind: 'lent', id, answer: { isGranted: true, standings: [] } })
    expect(answered).toHaveBeenCalledWith({ isGranted: true, standings: [] })
  })

  test('have their uses counted once, also when the books come here after all', async () => {
    const { handed, follow } = open('adopted')
    await follow()
    const bank = openBank({ readSpent: () => 0n, recall: async () => [] })
    const writeFailure = () => undefined
    const books = { bank, ledger: { settle: async () => {} }, settleRows: async () => [], writeFailure }
    await handed.returnTo({ ...books, isWritten: () => true }, { all: () => [1], recall: async () => [] })
    const need = { account: 'requests', kind: 'minute', limit: 10n, least: 0n, wish: 0n } as const
    const answer = await new Promise((resolve) => bank.lend(1, [need], resolve))
    expect(answer).toMatchObject({ standings: [{ spent: 2n }] })
  })

  test('may be refused, and try again', async () => {
    const { said, follow } = open('refused', 'adopted')
    expect(await follow()).toBe('busy')
    expect(said.splice(0)).toMatchObject([{ kind: 'adopt' }, { kind: 'row', purse: 0, record: { id: 'early' } }])
    expect(await follow()).toBeUndefined()
    expect(said).toMatchObject([
      { kind: 'adopt' },
      { kind: 'row', purse: 0, record: { id: 'early' } },
      // Its purse has told again what it holds since.
      { kind: 'row', purse: 0, record: { id: 'late 1' } },
      { kind: 'row', purse: 1, record: { id: 'late 0' } },
      { kind: 'use', purse: 1 },
      { kind: 'lend', purse: 1 },
    ])
  })
})
