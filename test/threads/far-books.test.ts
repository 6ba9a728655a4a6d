import { MessageChannel } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
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
  expect(said.at(-1)).toEqual({ kind: 'held', id: 7, held: [{ account: need.account, held: 0n }] })
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
