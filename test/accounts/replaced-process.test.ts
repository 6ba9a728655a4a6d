import { expect, test } from 'vitest'
import type { Need } from '../../src/accounts/account.ts'
import { Accounts } from '../../src/accounts/accounts.ts'
import { MainAccounts } from '../../src/accounts/instance-accounts.ts'
import { allocateAccounts } from '../../src/accounts/memory.ts'
import { ReplacedProcess } from '../../src/accounts/replaced-process.ts'
import { atOnce } from './local.ts'

const account = 'o\norganization'
const money = (least: bigint): Need => ({ account, kind: 'money', limit: 100n, least, wish: least })
const requests: Need = { account: 'o\nrequests key a', kind: 'minute', limit: 3n, least: 1n, wish: 1n }

/** A process with one worker, and another process that it replaces. The tables have 20. */
function replacing() {
  const memory = allocateAccounts({ columns: 3, rows: 64, slots: 64 })
  const now = () => 5_000
  const accounts = new MainAccounts(memory, { now })
  const readSpent = () => 20n
  const replaced = new ReplacedProcess({ accounts, thread: 2, readSpent })
  const worker = new Accounts({ memory, thread: 1, readSpent, now })
  const fits = (nano: bigint) => {
    const reserved = atOnce(worker.reserve([money(nano)]))
    if (reserved.isReserved) worker.spend(reserved.parts, { cost: 0n, released: nano, ends: 1n })
    return reserved.isReserved
  }
  const held = (nano: bigint, answered = 0) => replaced.held([{ ...money(0n), held: nano, uses: [] }], answered)
  return { accounts, replaced, worker, fits, held }
}

test('what the calls of a replaced process hold cannot be spent here', async () => {
  const { fits, held } = replacing()
  await held(50n)
  expect([fits(30n), fits(31n)]).toEqual([true, false])
  await held(10n)
  expect([fits(70n), fits(71n)]).toEqual([true, false])
})

test('a report that crosses a reservation frees nothing of it', async () => {
  const { replaced, fits, held } = replacing()
  await held(10n)
  expect(await replaced.reserve(7, [money(40n)])).toMatchObject({ isReserved: true })
  // It was sent before the answer arrived.
  await held(5n)
  expect([fits(35n), fits(36n)]).toEqual([true, false])
  await held(45n, 7)
  expect([fits(35n), fits(36n)]).toEqual([true, false])
  await held(0n, 7)
  expect([fits(80n), fits(81n)]).toEqual([true, false])
})

test('a need of a replaced process that does not fit is refused as a call of this process is', async () => {
  const { replaced, worker, held } = replacing()
  await held(10n)
  const refused = await replaced.reserve(1, [money(71n)])
  expect(refused).toEqual(atOnce(worker.reserve([money(71n)])))
  expect(refused).toMatchObject({
    isReserved: false,
    statuses: [{ spent: 20n, reserved: 10n, left: 70n, isShort: true }],
  })
})

test('rows of a replaced process are spent before they are on disk, and stay spent when it is gone', async () => {
  const { accounts, replaced, fits, held } = replacing()
  await held(50n)
  await replaced.spend([{ accounts: [account], cost: 30n }])
  await held(0n)
  expect([fits(50n), fits(51n)]).toEqual([true, false])
  await held(25n)
  await replaced.gone()
  await accounts.written([{ accounts: [account], cost: 30n }])
  expect([fits(50n), fits(51n)]).toEqual([true, false])
  expect(await accounts.step((step) => step.read(account))).toMatchObject({ held: 0n })
})

test('uses of a minute count once, however often they are reported, and are held until they are', async () => {
  const { replaced, worker } = replacing()
  const report = (uses: bigint, answered = 0) =>
    replaced.held([{ ...requests, held: 0n, uses: [[64_900, uses]] }], answered)
  await report(1n)
  await report(1n)
  expect(await replaced.reserve(1, [requests])).toMatchObject({ isReserved: true })
  expect(atOnce(worker.statuses([requests]))).toMatchObject([{ spent: 1n, reserved: 1n, left: 1n }])
  await report(2n, 1)
  expect(atOnce(worker.statuses([requests]))).toMatchObject([{ spent: 2n, reserved: 0n, left: 1n }])
  atOnce(worker.reserve([requests]))
  expect(await replaced.reserve(2, [requests])).toMatchObject({
    isReserved: false,
    statuses: [{ isShort: true, waitMs: 59_900 }],
  })
})

test('a process that holds money of thousands of accounts is counted whole', async () => {
  const memory = allocateAccounts({ columns: 3, rows: 8_192, slots: 64 })
  const accounts = new MainAccounts(memory, { now: () => 5_000 })
  const replaced = new ReplacedProcess({ accounts, thread: 2, readSpent: () => 0n })
  const names = Array.from({ length: 4_000 }, (_, index) => `o${index}\norganization`)
  await replaced.held(
    names.map((account) => ({ account, kind: 'money', limit: 100n, held: 60n, uses: [] })),
    0,
  )
  await replaced.spend(names.map((account) => ({ accounts: [account], cost: 1n })))
  for (const account of names) expect(await accounts.step((step) => step.read(account))).toMatchObject({ held: 61n })
})
