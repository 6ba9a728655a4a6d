import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openAccounting } from '../../src/app/accounting.ts'
import { defaultCreationLimits } from '../../src/core/creation-limits.ts'
import type { Held } from '../../src/lending/account.ts'
import { openBank } from '../../src/lending/bank.ts'
import { controlPathOf, openStore } from '../../src/store/open.ts'
import { Handover } from '../../src/workers/handover.ts'
import type { ChannelToOld } from '../../src/workers/threads/adopted-lines.ts'
import { connectToPredecessor } from '../../src/workers/threads/control-socket.ts'
import { handoverVersion } from '../../src/workers/threads/handover-messages.ts'
import { plainRecord } from '../store/plain-record.ts'

let folder: string
let storeUrl: string
const ends: (() => unknown)[] = []

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'handover-'))
  storeUrl = `sqlite:${join(folder, 'router.sqlite')}`
  await (await openStore(storeUrl)).close()
})

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
  rmSync(folder, { recursive: true, force: true })
})

const log = pino({ level: 'silent' })
type Recall = (purse: number, accounts: readonly string[]) => Promise<Held[]>

/** A process with two lines, which another one may take over. */
async function openProcess({ books, recall }: { books: object; recall: Recall }): Promise<Handover> {
  const lines = { ids: () => [1, 2], tell() {} }
  const handover = new Handover({
    storeUrl,
    port: 1,
    books,
    log,
    openBank: () => openBank({ readSpent: () => 0n, recall }),
    holder: { lines },
    recall,
    findings: () => [],
    retire: async () => {},
  } as unknown as ConstructorParameters<typeof Handover>[0])
  ends.push(() => handover.close())
  await handover.offer()
  return handover
}

/** Another process that takes over. */
async function takeOver(): Promise<ChannelToOld> {
  const path = controlPathOf(storeUrl) as string
  let connected: ChannelToOld | undefined
  await expect.poll(async () => (connected = await connectToPredecessor(path)), { interval: 20 }).toBeDefined()
  const channel = connected as unknown as ChannelToOld
  ends.push(() => channel.close())
  channel.send({ kind: 'takeOver', version: handoverVersion })
  expect(await channel.take('released')).toBeDefined()
  return channel
}

test('what a line tells too late is told nobody but the process that asked', async () => {
  const answers: (() => void)[] = []
  const recall: Recall = (purse, accounts) => {
    const { promise, resolve } = Promise.withResolvers<Held[]>()
    const answer = () => resolve(accounts.map((account) => ({ account, held: 0n })))
    if (purse === 1) answers.push(answer)
    else answer()
    return promise
  }
  const books = { ledger: {}, writeFailure() {}, release: async () => {}, reopen() {}, isWritten: () => false }
  await openProcess({ books, recall })
  const second = await takeOver()
  second.send({ kind: 'recall', id: 1, purse: 1, accounts: ['organization o'] })
  await expect.poll(() => answers.length, { interval: 5 }).toBe(1)
  second.close()
  const third = await takeOver()
  for (const answer of answers) answer()
  third.send({ kind: 'recall', id: 2, purse: 2, accounts: ['organization o'] })
  expect(await third.take('held')).toMatchObject({ id: 2 })
})

test('books come back as soon as the database can be used', async () => {
  const started = new AsyncDisposableStack()
  ends.push(() => started.disposeAsync())
  const metrics = { enabled: false, series: 10, labels: [] }
  const books = await openAccounting(
    storeUrl,
    {
      log,
      onFailure() {},
      metrics,
      config: () => ({ manage: { limits: defaultCreationLimits }, errors: { keepMs: 0 } }),
    },
    started,
  )
  books.store.waitAtMost(20)
  const handover = await openProcess({ books, recall: async () => [] })
  const own = handover.money()
  const second = await takeOver()
  // The other process has left rows that it could not write, and something else writes at present.
  writeFileSync(join(folder, 'router.sqlite-spill'), `${JSON.stringify(plainRecord({ id: 'left' }))}\n`)
  const other = new Database(join(folder, 'router.sqlite'))
  ends.push(() => other.close())
  other.exec('BEGIN IMMEDIATE')
  const handed = handover.money()
  expect(handed).not.toBe(own)
  second.close()
  await setTimeout(200)
  expect(handover.money()).toBe(handed)
  other.exec('COMMIT')
  await expect.poll(() => handover.money() !== handed, { interval: 5 }).toBe(true)
  expect(books.isWritten('left')).toBe(true)
})
