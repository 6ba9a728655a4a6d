import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test, vi } from 'vitest'
import { startPurge } from '../../src/app/accounting.ts'
import type { CallRecord } from '../../src/core/call.ts'
import { type LedgerErrorListener, type LedgerQueue, openLedger } from '../../src/money/ledger.ts'
import { openStore } from '../../src/store/open.ts'
import { connect, proveWritable, waitAtMost } from '../../src/store/sqlite/connection.ts'
import { ledgerThread } from '../../src/store/sqlite/ledger/ledger-thread.ts'
import { unavailable } from '../../src/store/store-error.ts'
import { within } from '../helpers/provider.ts'
import { eventually, limit } from '../helpers/time.ts'
import { plainRecord } from './plain-record.ts'
import { temporaryFile } from './temporary.ts'

const patienceMs = 100

/** A store and its ledger, written by a thread whose database the test can break. */
async function open() {
  const path = temporaryFile('books/router.sqlite')
  const store = await openStore(`sqlite:${path}`)
  const onError = vi.fn<LedgerErrorListener>()
  const writer = ledgerThread(path, new URL('./faulty-worker.ts', import.meta.url))
  const ledger = openLedger(writer, { onError, patienceMs })
  onTestFinished(async () => {
    await ledger.close().catch(() => {})
    await store.close()
  })
  return { path, store, ledger, onError }
}

/** Too large for the free pages of a new database. */
const large = (): CallRecord => plainRecord({ metadata: { note: 'x'.repeat(60_000) } })

/** Rows are tried again once a second. */
async function ledgerRecovered(ledger: LedgerQueue): Promise<void> {
  await eventually(() => expect(ledger.writeFailure()).toBeUndefined())
}

type Fault = { reason: string; begin(path: string): () => void }

const faults: { [name: string]: Fault } = {
  'a disk that is full': { reason: 'the disk is full', begin: injected('full') },
  'a file that is read-only': { reason: 'the database file or its folder is read-only', begin: injected('read-only') },
  'another process that keeps the lock': {
    reason: 'the disk does not respond',
    begin(path) {
      const other = new Database(path)
      other.exec('BEGIN IMMEDIATE')
      return () => other.close()
    },
  },
  'a file that was moved away': {
    reason: 'the database file was deleted or moved away',
    begin: (path) => moved(path, `${path}.away`),
  },
  'a folder that is gone': {
    reason: 'the database file was deleted or moved away',
    begin: (path) => moved(dirname(path), `${dirname(path)}.away`),
  },
}

function injected(fault: string) {
  return (path: string) => {
    writeFileSync(`${path}.fault`, fault)
    return () => rmSync(`${path}.fault`)
  }
}

function moved(from: string, to: string) {
  renameSync(from, to)
  return () => renameSync(to, from)
}

test.each(Object.entries(faults))(
  '%s: nobody waits for long, nothing is lost, all is written once it is over',
  async (_, { reason, begin }) => {
    const { path, store, ledger, onError } = await open()
    const rows = [large(), large(), large(), large()]
    const [before, ...after] = rows as [CallRecord, ...CallRecord[]]
    await ledger.settle(before)
    await ledgerRecovered(ledger)
    const end = begin(path)
    await within(5_000, 'the settling', Promise.all(after.map((record) => ledger.settle(record))))
    expect(ledger.writeFailure()).toBe(`The router cannot write its ledger: ${reason}.`)
    expect(onError).toHaveBeenCalledWith(expect.any(Error), { backlog: 3, lost: [] })
    // Reads still work.
    expect(await store.ledger.find(before.id)).toEqual(before)
    end()
    await ledgerRecovered(ledger)
    expect(ledger.backlog()).toBe(0)
    expect(new Set(await Array.fromAsync(store.ledger.each({ key: 'key-1' })))).toEqual(new Set(rows))
    expect(await store.spend.ofKey('key-1', before.at)).toBe(4_000n)
    expect(await store.spend.ofOrganization('org-1', before.at)).toBe(4_000n)
  },
)

test('a file that was replaced is left alone: nothing is mixed into it', async () => {
  const { path, store, ledger } = await open()
  await ledger.settle(plainRecord())
  await ledgerRecovered(ledger)
  const back = moved(path, `${path}.away`)
  writeFileSync(path, 'the database of somebody else')
  await ledger.settle(plainRecord())
  expect(ledger.writeFailure()).toContain('was replaced while the router was running')
  await expect(store.atomically(async () => {})).rejects.toThrow(
    /replaced while the router was running; stop the router/,
  )
  expect(readFileSync(path, 'utf8')).toBe('the database of somebody else')
  back()
  await ledgerRecovered(ledger)
  expect(await Array.fromAsync(store.ledger.each({ key: 'key-1' }))).toHaveLength(2)
})

test('a change that meets a lock gives up after the configured time', async () => {
  const { path, store } = await open()
  store.waitAtMost(50)
  const other = new Database(path)
  onTestFinished(() => void other.close())
  other.exec('BEGIN IMMEDIATE')
  const before = performance.now()
  const changing = await caught(() => store.organizations.create('acme'))
  expect(performance.now() - before).toBeLessThan(limit(1_000))
  const message = 'The router cannot use its database now: the database is locked by another process. Try again later.'
  expect(unavailable(changing)).toMatchObject({ code: 'unavailable', status: 503, message })
  expect(await store.organizations.list()).toEqual([])
})

test('only a database that fails is unavailable, not a change it refuses nor a mistake', async () => {
  const { store } = await open()
  await store.organizations.create('acme')
  expect(unavailable(await caught(() => store.organizations.create('acme')))).toBeUndefined()
  expect(unavailable(await caught(() => store.organizations.credit('nobody', 1n)))).toBeUndefined()
  expect(unavailable(new TypeError('oops'))).toBeUndefined()
})

test('purging goes on after a lock', async () => {
  const { path, store } = await open()
  store.waitAtMost(20)
  const other = new Database(path)
  onTestFinished(() => void other.close())
  other.exec('BEGIN IMMEDIATE')
  const onError = vi.fn()
  const purge = vi.fn(store.responses.purge)
  const purging = startPurge({ purge }, onError, 20)
  onTestFinished(() => purging.stop())
  await eventually(() => expect(onError).toHaveBeenCalledOnce())
  expect(unavailable(onError.mock.calls[0]?.[0])).toMatchObject({ code: 'unavailable' })
  other.exec('ROLLBACK')
  await eventually(() => expect(purge.mock.settledResults.at(-1)).toEqual({ type: 'fulfilled', value: 0 }))
})

test('a database is proved writable, and an obstacle is reported with its remedy', () => {
  const path = temporaryFile('router.sqlite')
  const db = connect(path)
  onTestFinished(() => void db.close())
  proveWritable(db)
  const other = new Database(path)
  onTestFinished(() => void other.close())
  const written = () => other.pragma('user_version', { simple: true })
  expect(written()).toBe(1)
  db.pragma('query_only = ON')
  expect(() => proveWritable(db)).toThrow(
    /router\.sqlite: the database file or its folder is read-only; make it writable/,
  )
  db.pragma('query_only = OFF')
  waitAtMost(db, 20)
  other.exec('BEGIN IMMEDIATE')
  expect(() => proveWritable(db)).toThrow(/router\.sqlite: the database is locked by another process; end that process/)
  other.exec('ROLLBACK')
  proveWritable(db)
  expect(written()).toBe(2)
})

test('a start on a full disk leaves nothing half-made', async () => {
  const path = temporaryFile('router.sqlite')
  const db = connect(path)
  db.pragma('max_page_count = 3')
  db.close()
  const { transaction } = Database.prototype
  onTestFinished(() => {
    Database.prototype.transaction = transaction
  })
  Database.prototype.transaction = function (this: Database.Database, change: (...args: never[]) => unknown) {
    this.pragma('max_page_count = 3')
    return transaction.call(this, change)
  } as typeof transaction
  await expect(openStore(`sqlite:${path}`)).rejects.toThrow(/router\.sqlite: the disk is full; free some space/)
  Database.prototype.transaction = transaction
  const store = await openStore(`sqlite:${path}`)
  expect(await store.keys.any()).toBe(false)
  await store.close()
})

async function caught(run: () => unknown): Promise<unknown> {
  try {
    await run()
  } catch (thrown) {
    return thrown
  }
  throw new Error('nothing was thrown')
}
