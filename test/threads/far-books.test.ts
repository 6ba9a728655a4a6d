import { MessageChannel } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
import { FarBooks } from '../../src/threads/far-books.ts'
import type { Said, Told } from '../../src/threads/messages.ts'
import { sharedCounter, ThreadPort } from '../../src/threads/port.ts'
import { plainRecord } from '../store/plain-record.ts'

test('what a line has spent and used is told before what it still holds', async () => {
  const { port1, port2 } = new MessageChannel()
  const [sentByBooks, sentByLine] = [sharedCounter(), sharedCounter()]
  const books = new FarBooks(port1, { ownSent: sentByLine, otherSent: sentByBooks }, () => {})
  const said: Said[] = []
  const main = new ThreadPort<Told, Said>(port2, {
    counters: { ownSent: sentByBooks, otherSent: sentByLine },
    onItem: (one) => void said.push(one),
  })
  onTestFinished(() => {
    books.port.close()
    main.close()
  })
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
