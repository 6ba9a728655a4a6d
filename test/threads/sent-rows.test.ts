import { expect, test } from 'vitest'
import { accountName, type Need } from '../../src/accounts/account.ts'
import { Accounts } from '../../src/accounts/accounts.ts'
import { MainAccounts } from '../../src/accounts/instance-accounts.ts'
import { allocateAccounts } from '../../src/accounts/memory.ts'
import type { CallRecord } from '../../src/core/call.ts'
import { RouterError } from '../../src/core/errors.ts'
import type { RefusedRow, RowsText } from '../../src/money/ledger-entries.ts'
import { combined, paymentOf } from '../../src/money/payments.ts'
import { SentRows } from '../../src/workers/threads/sent-rows.ts'
import { atOnce } from '../accounts/local.ts'
import { plainRecord } from '../store/plain-record.ts'

const november = Date.UTC(2026, 10, 21)
const names = ['key key-1 2026-11', 'group g 2026-11', 'organization'].map((name) => accountName('org-1', name))

/** The row of a call of one key, which has cost so much. */
function rowOf(nanoUsd: number, facts: Partial<CallRecord> = {}): CallRecord {
  return plainRecord({ at: november, group: 'g', cost: { nanoUsd, parts: {}, priceVersion: '' }, ...facts })
}

function rowsOf(...records: CallRecord[]): RowsText {
  return { text: JSON.stringify(records), count: records.length }
}

/** A worker that spends, what the main thread knows of it, and a ledger that writes when it is told to. */
function world() {
  const memory = allocateAccounts({ columns: 2, rows: 64, slots: 8 })
  const worker = new Accounts({ memory, thread: 1, readSpent: () => 0n })
  const accounts = new MainAccounts(memory)
  const writing: ((refused: RefusedRow[]) => void)[] = []
  const estimated: CallRecord[] = []
  const ledger = {
    settleSent: () => new Promise<RefusedRow[]>((resolve) => void writing.push(resolve)),
    async settle(record: CallRecord) {
      estimated.push(record)
    },
  }
  const sent = new SentRows(1, { accounts, ledger })
  const needs = (nano: bigint) =>
    names.map((account): Need => ({ account, kind: 'money', limit: null, least: nano, wish: nano }))
  const unwritten = () => names.map((name) => worker.table.rows.unwritten(worker.table.rows.find(name)))
  return {
    worker,
    sent,
    estimated,
    unwritten,
    spend(nano: bigint) {
      const reserved = atOnce(worker.reserve(needs(nano)))
      if (reserved.isReserved) worker.spend(reserved.parts, { cost: nano, released: nano, ends: 1n })
    },
    async write(refused: RefusedRow[] = []) {
      writing.shift()?.(refused)
      await new Promise(setImmediate)
    },
  }
}

test('costs whose rows a worker had not sent when it died become one row of its key, and nothing counts twice', async () => {
  const { worker, sent, estimated, unwritten, spend, write } = world()
  for (const nano of [1n, 10n, 100n, 1_000n, 10_000n]) spend(nano)
  // It knows that the first row is on disk, not yet that the second one is; the third is being written.
  for (const nano of [1, 10, 100]) void sent.settle(rowsOf(rowOf(nano)))
  await write()
  worker.written([paymentOf(rowOf(1))], 1)
  await write()
  await sent.gone()
  await new Promise(setImmediate)
  expect(estimated).toMatchObject([
    {
      key: 'key-1',
      group: 'g',
      organization: 'org-1',
      at: expect.toSatisfy((at) => new Date(at).toISOString().startsWith('2026-11')),
      outcome: 'failed',
      status: 500,
      error: 'worker_ended',
      cost: { nanoUsd: 11_000, estimated: true },
    },
  ])
  expect(unwritten()).toEqual([100n, 100n, 100n])
  await write()
  expect(unwritten()).toEqual([0n, 0n, 0n])
})

test('a worker that dies with all its rows sent leaves no estimate', async () => {
  const { sent, estimated, unwritten, spend, write } = world()
  spend(7n)
  const settled = sent.settle(rowsOf(rowOf(3), rowOf(4)))
  await sent.gone()
  await write()
  expect(await settled).toEqual([])
  expect(estimated).toEqual([])
  expect(unwritten()).toEqual([0n, 0n, 0n])
})

test('the cost of a row that can never be written becomes an estimate when its worker dies', async () => {
  const { worker, sent, estimated, spend, write } = world()
  spend(7n)
  const refused = { index: 1, error: new RouterError('internal', 'It cannot be written.') }
  const settled = sent.settle(rowsOf(rowOf(3), rowOf(4)))
  await write([refused])
  expect(await settled).toEqual([refused])
  worker.written([paymentOf(rowOf(3))], 1)
  await sent.gone()
  expect(estimated).toMatchObject([{ cost: { nanoUsd: 4 } }])
})

test('rows cost their key, their group and their organization in the month of the call', () => {
  const september = Date.UTC(2026, 8, 30, 23)
  const rows = [
    rowOf(1, { at: september }),
    rowOf(10),
    rowOf(100, { at: Date.UTC(2026, 9, 1, 1) }),
    rowOf(1_000, { at: september }),
    rowOf(10_000, { key: 'key-2' }),
  ]
  const of = (key: string, group: string) => [key, 'organization', group].map((name) => accountName('org-1', name))
  expect(combined(rows.map(paymentOf))).toEqual([
    { accounts: of('key key-1 2026-09', 'group g 2026-09'), cost: 1_001n },
    { accounts: of('key key-1 2026-11', 'group g 2026-11'), cost: 10n },
    { accounts: of('key key-1 2026-10', 'group g 2026-10'), cost: 100n },
    { accounts: of('key key-2 2026-11', 'group g 2026-11'), cost: 10_000n },
  ])
})
