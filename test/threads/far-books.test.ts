import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { MessageChannel } from 'node:worker_threads'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { JsonRequest } from '../../src/http/types.ts'
import type { KeptFinding } from '../../src/routing/findings.ts'
import { FarBooks } from '../../src/workers/threads/far-books.ts'
import type { Said, Told } from '../../src/workers/threads/messages.ts'
import { sharedCounter, ThreadPort } from '../../src/workers/threads/port.ts'
import { plainRecord } from '../store/plain-record.ts'

/** The books of a line, and the other end of the connection, which keeps what it is told. */
function connected() {
  const { port1, port2 } = new MessageChannel()
  const [sentByBooks, sentByLine] = [sharedCounter(), sharedCounter()]
  const counters = { ownSent: sentByLine, otherSent: sentByBooks }
  const books = new FarBooks(port1, { counters, onTold() {} })
  const said: Said[] = []
  const main = new ThreadPort<Told, Said>(port2, {
    counters: { ownSent: sentByBooks, otherSent: sentByLine },
    onItem: (one) => void said.push(one),
  })
  onTestFinished(() => {
    books.port.close()
    main.close()
  })
  return { books, main, said }
}

test('what a line has spent and used is told before what it still holds', async () => {
  const { books, main, said } = connected()
  const need = { account: 'requests key k', kind: 'minute', limit: 5n, least: 1n, wish: 1n } as const
  const lent = books.purse.borrow([need])
  main.catchUp()
  const standing = {
    ...need,
    granted: 1n,
    extra: 4n,
    spent: 0n,
    lent: 5n,
    left: 0n,
    isOverdrawn: false,
    isShort: false,
  }
  const answer = { isGranted: true, standings: [{ ...standing, waitMs: 0, resetMs: 0 }] }
  main.sayNow({ kind: 'lent', id: 1, answer })
  books.port.catchUp()
  const { use } = await lent
  use(() => {})
  const account = books.purse.find(need)
  if (!account) throw new Error('nothing is lent')
  books.purse.use(account, 60_000, 1n, 1n)
  void books.ledger.settle(plainRecord({}), undefined)
  main.sayNow({ kind: 'recall', id: 7, accounts: [need.account] })
  books.port.catchUp()
  main.catchUp()
  expect(said.map(({ kind }) => kind)).toEqual(['lend', 'rows', 'uses', 'held'])
  expect(said.at(-1)).toEqual({ kind: 'held', id: 7, held: [{ account: need.account, held: 0n, admitted: 2 }] })
})

test('of rows that are answered together those that can never be written are told apart', async () => {
  const { books, main, said } = connected()
  const settling = Array.from({ length: 3 }, () => books.ledger.settle(plainRecord({}), undefined))
  const all = Promise.allSettled(settling)
  const whole = books.allSettled()
  books.port.flush()
  main.catchUp()
  const [message] = said as Extract<Said, { kind: 'rows' }>[]
  const error = { code: 'internal', message: 'It cannot be written.', details: {} } as const
  main.sayNow({ kind: 'unsettled', id: message?.id ?? 0, refused: [{ index: 1, error }] })
  books.port.catchUp()
  expect((await all).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  await expect(settling[1]).rejects.toMatchObject({ code: 'internal', message: 'It cannot be written.' })
  await whole
})

test('a crowd of rows is several messages, each answered by itself', async () => {
  const { books, main, said } = connected()
  const record = plainRecord({})
  let open = 0
  for (let row = 0; row < 2_500; row++) {
    open++
    void books.ledger.settle(record, undefined)?.then(() => void open--)
  }
  books.port.flush()
  main.catchUp()
  const messages = said as Extract<Said, { kind: 'rows' }>[]
  expect(messages.map(({ rows }) => [rows.count, JSON.parse(rows.text).length])).toEqual([
    [1_000, 1_000],
    [1_000, 1_000],
    [500, 500],
  ])
  main.sayNow({ kind: 'settled', ids: messages.slice(1).map(({ id }) => id) })
  books.port.catchUp()
  await new Promise(setImmediate)
  expect(open).toBe(1_000)
})

describe('many messages', () => {
  test('contain each finding and each row once', () => {
    const { books, main, said } = connected()
    const finding = (key: string): KeptFinding => ({ kind: 'kept', at: 1, key, target: 'p/m', until: 2 })
    for (let round = 0; round < 5; round++) {
      books.found(finding(`${round}`))
      books.found(finding(`${round}, too`))
      void books.ledger.settle(plainRecord({ id: `${round}` }), undefined)
      books.port.flush()
      books.port.flush()
      main.catchUp()
      const [rows, found, ...others] = said.splice(0) as [Said, Said, ...Said[]]
      expect(rows).toMatchObject({ kind: 'rows', rows: { count: 1 } })
      expect(found).toEqual({ kind: 'found', findings: [finding(`${round}`), finding(`${round}, too`)] })
      expect(others).toEqual([])
    }
  })

  test('of rows are a few milliseconds apart while each has several, and at once from the first that has one', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const { books, main, said } = connected()
    const settle = () => void books.ledger.settle(plainRecord({}), undefined)
    /** The rows of each message that has been posted since. */
    const posted = async () => {
      await new Promise(setImmediate)
      main.catchUp()
      return said.splice(0).map((one) => (one.kind === 'rows' ? one.rows.count : one.kind))
    }
    vi.advanceTimersByTime(1_000)
    for (let round = 0; round < 3; round++) {
      settle()
      expect(await posted()).toEqual([1])
      settle()
      settle()
      expect(await posted()).toEqual([2])
      settle()
      vi.advanceTimersByTime(3)
      settle()
      expect(await posted()).toEqual([])
      vi.advanceTimersByTime(1)
      expect(await posted()).toEqual([2])
      settle()
      vi.advanceTimersByTime(3)
      expect(await posted()).toEqual([])
      vi.advanceTimersByTime(1)
      expect(await posted()).toEqual([1])
      // That one was alone: the next ones wait for nobody.
      settle()
      expect(await posted()).toEqual([1])
    }
  })
})

test('a request that was answered is no longer referenced', async () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const { books, main, said } = connected()
  const route = books.far({ path: '/v1/manage/keys', answer: async () => undefined } as never)
  const ask = async (answered: boolean) => {
    const request = { headers: {}, params: {}, query: {}, readBody: async () => undefined } as unknown as JsonRequest
    const asking = Promise.resolve(route.answer(request)).catch(() => {})
    main.catchUp()
    const [question] = said.splice(0) as Extract<Said, { kind: 'ask' }>[]
    main.sayNow({ kind: 'answer', id: question?.id ?? 0, ...(answered && { answer: { text: '{}' } }) })
    books.port.catchUp()
    if (answered) await asking
    return new WeakRef(request)
  }
  const references = [await ask(true), await ask(true)]
  await new Promise(setImmediate)
  collectGarbage()
  expect(references.map((one) => one.deref())).toEqual([undefined, undefined])
})

test('an answer of the allocator counts once', () => {
  const { books, main, said } = connected()
  const need = { account: 'requests key k', kind: 'minute', limit: 5n, least: 1n, wish: 1n } as const
  const facts = { spent: 0n, lent: 3n, left: 2n, isOverdrawn: false, isShort: false, waitMs: 0, resetMs: 0 }
  const answer = { isGranted: true, standings: [{ ...need, granted: 1n, extra: 2n, ...facts }] }
  void books.purse.borrow([need]).catch(() => {})
  main.catchUp()
  const [asked] = said as Extract<Said, { kind: 'lend' }>[]
  main.sayNow({ kind: 'lent', id: asked?.id ?? 0, answer })
  books.port.catchUp()
  const held = () => books.purse.find(need)?.share
  const once = held()
  expect(once).toBeDefined()
  main.sayNow({ kind: 'lent', id: asked?.id ?? 0, answer })
  books.port.catchUp()
  expect(held()).toBe(once)
})
