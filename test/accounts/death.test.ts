import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { Accounts } from '../../src/accounts/accounts.ts'
import { MainAccounts } from '../../src/accounts/instance-accounts.ts'
import { type AccountMemory, allocateAccounts, column, header, row, slot } from '../../src/accounts/memory.ts'
import { AccountTable } from '../../src/accounts/table.ts'
import { slow } from '../helpers/slow.ts'
import { type BareWorker, key, limit, organization, steps } from './bare-worker.ts'
import { atOnce } from './local.ts'

const script = new URL('./bare-worker.ts', import.meta.url)

function smallMemory(columns = 3): AccountMemory {
  return allocateAccounts({ columns, rows: 64, slots: 64, maxIdle: 8 })
}

/** Starts a thread, and resolves with its first message. */
async function started(data: BareWorker): Promise<{ worker: Worker; message: string }> {
  const worker = new Worker(script, { workerData: data })
  const message = await new Promise<string>((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
  })
  return { worker, message }
}

/** Everything that is true of a table between two steps. */
function requireSound(memory: AccountMemory): void {
  const table = new AccountTable(memory, 0)
  const { memory: cells, rows, windows } = table
  expect(cells.int(header.lock)).toBe(0)
  expect(cells.int(header.journalLength)).toBe(0)
  let [count, slots] = [0, 0]
  for (const account of rows.all()) {
    count++
    const columns = Array.from({ length: memory.columns }, (_, thread) => rows.column(account, thread))
    const sum = (cell: number) => columns.reduce((all, own) => all + cells.big(own + cell), 0n)
    expect(cells.big(account + row.reserved)).toBe(sum(column.reserved))
    expect(cells.big(account + row.open)).toBe(sum(column.open))
    expect(rows.find(rows.name(account))).toBe(account)
    if (rows.kind(account) !== 'minute') continue
    const all = windows.all(account)
    slots += all.length
    expect(all.reduce((uses, one) => uses + cells.big(one + slot.uses), 0n)).toBe(cells.big(account + row.spent))
  }
  expect(count).toBe(cells.int(header.rowCount))
  const free = (from: number, next: number) => {
    let length = 0
    for (let at = from; at !== 0; at = cells.int(at + next)) length++
    return length
  }
  expect(count + free(cells.int(header.freeRow), row.next)).toBe(cells.int(header.rowsUsed))
  expect(slots + free(cells.int(header.freeSlot), slot.next)).toBe(cells.int(header.slotsUsed))
}

/** A living thread can use everything that is left, and not more. */
function requireRest(living: Accounts, spent: bigint, held: bigint): void {
  const rest = limit - spent - held
  const need = (least: bigint) => ({ account: key, kind: 'money' as const, limit, least, wish: least })
  expect(atOnce(living.reserve([need(rest + 1n)])).isReserved).toBe(false)
  const all = atOnce(living.reserve([need(rest)]))
  if (!all.isReserved) throw new Error('a call was refused that fits')
  living.spend(all.parts, { cost: 0n, released: rest, ends: 1n })
}

/** Terminates a thread at its n-th store, and checks what is left. Returns false when it has no such store. */
async function dieAt(stopAt: number): Promise<boolean> {
  const memory = smallMemory()
  const living = new Accounts({ memory, thread: 2, readSpent: () => 0n, now: () => 5_000 })
  const own = atOnce(living.reserve([{ account: key, kind: 'money', limit, least: 7n, wish: 7n }]))
  const progress = new Int32Array(new SharedArrayBuffer(4))
  const { worker, message } = await started({ memory, thread: 1, progress, stopAt })
  await worker.terminate()
  const main = new MainAccounts(memory, { now: () => 5_000 })
  const { unwritten, acknowledged } = await main.release(1)
  requireSound(memory)
  const [over, next] = [Atomics.load(progress, 0), Atomics.load(progress, 0) + 1]
  // The step that was under way has happened as a whole, or not at all.
  const before = steps[over - 1] ?? { spent: 0n, written: 0n }
  const after = steps[next - 1] ?? before
  const [status] = atOnce(living.statuses([{ account: key, kind: 'money', limit, least: 0n, wish: 0n }]))
  const spent = status?.spent ?? -1n
  expect([before.spent, after.spent]).toContain(spent)
  expect(status?.reserved).toBe(7n)
  const nano = unwritten.reduce((sum, one) => sum + one.nano, 0n)
  expect([spent - before.written, spent - after.written]).toContain(nano)
  expect(acknowledged).toBe(nano < spent || (spent === 25n && nano === 0n) ? 1 : 0)
  const payer = { key: 'a', organization: 'o', group: undefined, month: '2026-11' }
  expect(unwritten).toEqual(nano === 0n ? [] : [{ ...payer, nano }])
  requireRest(living, spent, 7n)
  await main.written([{ accounts: [key, organization], cost: nano }])
  const table = new AccountTable(memory, 0)
  expect(table.rows.unwritten(table.rows.find(key))).toBe(0n)
  if (own.isReserved) living.spend(own.parts, { cost: 0n, released: 7n, ends: 1n })
  expect(table.held(table.rows.find(key))).toBe(0n)
  return message === 'stopped'
}

/** Dies at every `every`-th store, and returns how often. */
async function dieEverywhere(first: number, every: number): Promise<number> {
  let deaths = 0
  for (let stopAt = first; await dieAt(stopAt); stopAt += every) deaths++
  return deaths
}

test('a thread that is terminated at any store leaves the accounts whole: what it held is free, what it spent is not', async () => {
  expect(await dieEverywhere(1, 23)).toBeGreaterThan(10)
})

test('a thread that is terminated at every single store leaves the accounts whole', {
  ...slow,
  timeout: 600_000,
}, async () => {
  expect(await dieEverywhere(1, 1)).toBeGreaterThan(200)
})

/** Terminates a thread again and again while another one works at full speed, which must never be refused. */
async function dieAtRandom(times: number): Promise<void> {
  const memory = smallMemory()
  const main = new MainAccounts(memory, { now: () => 5_000 })
  const counter = () => new Int32Array(new SharedArrayBuffer(4))
  const livingProgress = counter()
  const living = await started({ memory, thread: 2, progress: livingProgress, loops: true })
  let failure: unknown
  living.worker.on('error', (thrown) => {
    failure = thrown
  })
  for (let time = 0; time < times; time++) {
    const before = Atomics.load(livingProgress, 0)
    const { worker } = await started({ memory, thread: 1, progress: counter(), loops: true })
    const until = performance.now() + (time % 7) * 0.3
    while (performance.now() < until);
    await worker.terminate()
    await main.release(1)
    await expect.poll(() => Atomics.load(livingProgress, 0), { interval: 1 }).toBeGreaterThan(before)
    expect(failure).toBeUndefined()
  }
  await living.worker.terminate()
  await main.release(2)
  requireSound(memory)
  const table = new AccountTable(memory, 0)
  for (const account of [key, organization, 'calls key a'])
    expect(table.memory.big(table.rows.find(account) + row.reserved)).toBe(0n)
}

test('a thread that is terminated at any time holds up no other', { timeout: 60_000 }, async () => {
  await dieAtRandom(25)
})

/** How often threads die in the slow suite: `ACCOUNT_DEATHS=10000` takes half an hour. */
const deaths = Number(process.env.ACCOUNT_DEATHS ?? 500)

test('threads that are terminated hundreds of times hold up no other', { ...slow, timeout: 3_000_000 }, async () => {
  await dieAtRandom(deaths)
})
