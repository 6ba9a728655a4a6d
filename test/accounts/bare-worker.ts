import { parentPort, workerData } from 'node:worker_threads'
import type { Need, Part } from '../../src/accounts/account.ts'
import { Accounts } from '../../src/accounts/accounts.ts'
import type { AccountMemory } from '../../src/accounts/memory.ts'

/** `stopAt` is the number of the store at which the thread stops for ever; `loops`: it goes on until it is terminated. */
export type BareWorker = { memory: AccountMemory; thread: number; progress: Int32Array; stopAt?: number; loops?: true }

export const key = 'o\nkey a 2026-11'
export const organization = 'o\norganization'
export const limit = 10n ** 15n

/** What each step of a call has spent, and written, when it is over. */
export const steps = [
  { spent: 0n, written: 0n },
  { spent: 0n, written: 0n },
  { spent: 0n, written: 0n },
  { spent: 10n, written: 0n },
  { spent: 25n, written: 0n },
  { spent: 25n, written: 0n },
  { spent: 25n, written: 25n },
] as const

const money = (least: bigint): Need[] =>
  [key, organization].map((account) => ({ account, kind: 'money', limit, least, wish: least }))
const uses: Need[] = [
  { account: 'calls key a', kind: 'running', limit: 1_000n, least: 1n, wish: 1n },
  { account: 'requests key a', kind: 'minute', limit, least: 1n, wish: 1n },
  { account: 'tokens key a', kind: 'minute', limit, least: 30n, wish: 40n },
]

function reserved(accounts: Accounts, needs: Need[]): Part[] {
  const result = accounts.reserve(needs)
  if (result instanceof Promise || !result.isReserved) throw new Error('a call was refused that fits')
  return result.parts
}

/** One call, as a serving worker makes its changes; counts what is over. */
function call(accounts: Accounts, over: () => void): void {
  const limits = reserved(accounts, uses)
  over()
  const parts = reserved(accounts, money(40n))
  over()
  reserved(accounts, money(20n))
  over()
  accounts.spend(parts, { cost: 10n, released: 10n, ends: 0n })
  over()
  accounts.spend(parts, { cost: 15n, released: 50n, ends: 2n })
  over()
  accounts.end(limits, [0n, 0n, -15n])
  over()
  accounts.written([{ accounts: [key, organization], cost: 25n }], 1)
  over()
}

function run({ memory, thread, progress, stopAt, loops }: BareWorker): void {
  const accounts = new Accounts({ memory, thread, readSpent: () => 0n, now: () => 5_000 })
  let stores = 0
  accounts.table.memory.onStore = () => {
    if (++stores !== stopAt) return
    parentPort?.postMessage('stopped')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  }
  if (loops) parentPort?.postMessage('runs')
  do call(accounts, () => void Atomics.add(progress, 0, 1))
  while (loops)
  parentPort?.postMessage('over')
}

if (parentPort && workerData) run(workerData)
