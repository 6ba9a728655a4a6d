import { expect, test } from 'vitest'
import type { Need } from '../../src/accounts/account.ts'
import { Accounts } from '../../src/accounts/accounts.ts'
import { MainAccounts } from '../../src/accounts/instance-accounts.ts'
import { allocateAccounts } from '../../src/accounts/memory.ts'
import { atOnce } from './local.ts'

/** An instance with one worker, of which the main thread decides what its grants do not cover. */
function instance() {
  const clock = { ms: 5_000 }
  const memory = allocateAccounts({ columns: 3, rows: 64, slots: 64 })
  const now = () => clock.ms
  const low: string[] = []
  const main = new MainAccounts(memory, { now })
  const caller = { thread: 1, isGone: false }
  const thread = new Accounts({
    ...{ memory, thread: 1, readSpent: () => 0n, now },
    beyondGrant: (needs) => main.decide(caller, needs),
    onLow: (needs) => void low.push(...needs.map(({ account }) => account)),
  })
  const read = (account: string) => main.step((accounts) => accounts.read(account))
  const grant = (need: Need, amount: bigint, spent = 0n, reserved = 0n) =>
    main.step((accounts) => accounts.grant(need, { amount, spent, reserved }))
  return { clock, main, thread, low, caller, read, grant }
}

const name = 'o\norganization'
const money = (least: bigint): Need => ({ account: name, kind: 'money', limit: 100n, least, wish: least })
const tokens = (least: bigint): Need => ({
  account: 'o\ntokens key a',
  kind: 'minute',
  limit: 100n,
  least,
  wish: least,
})
const calls: Need = { account: 'o\ncalls key a', kind: 'running', limit: 5n, least: 1n, wish: 1n }

test('an instance that shares uses what it was granted, and the main thread decides about the rest for the thread', async () => {
  const { main, thread, grant, read } = instance()
  atOnce(thread.reserve([money(10n)]))
  await main.step((accounts) => accounts.share())
  expect(await main.step((accounts) => accounts.inUse())).toMatchObject([{ account: name, held: 10n, granted: 10n }])
  await grant(money(0n), 20n)
  expect(atOnce(thread.reserve([money(20n)])).isReserved).toBe(true)
  main.decideBy(async (caller, needs) => {
    await grant(money(0n), 5n)
    return await main.step((accounts) => accounts.reserve(caller, needs))
  })
  expect(await thread.reserve([money(5n)])).toMatchObject({ isReserved: true })
  expect(await read(name)).toMatchObject({ held: 35n, granted: 35n })
  await main.step((accounts) => accounts.alone())
  expect(atOnce(thread.reserve([money(66n)])).isReserved).toBe(false)
  expect(atOnce(thread.reserve([money(65n)])).isReserved).toBe(true)
})

test('nothing is reserved for a thread that has died while it was decided about', async () => {
  const { main, thread, grant, caller, read } = instance()
  await main.step((accounts) => accounts.share())
  main.decideBy(async (who, needs) => {
    await grant(money(0n), 5n)
    caller.isGone = true
    await main.release(1)
    return await main.step((accounts) => accounts.reserve(who, needs))
  })
  atOnce(thread.statuses([money(0n)]))
  await expect(Promise.resolve(thread.reserve([money(5n)]))).rejects.toThrow('the worker ended')
  expect(await read(name)).toMatchObject({ held: 0n })
})

test('what is held stays when the rest is given back, and a number tells whether anything moved', async () => {
  const { main, thread, grant, read } = instance()
  await main.step((accounts) => accounts.share())
  await grant(money(0n), 50n)
  const reserved = atOnce(thread.reserve([money(30n)]))
  const first = await main.step((accounts) => accounts.giveBack(name))
  expect(first).toMatchObject({ held: 30n, granted: 30n })
  if (!reserved.isReserved) throw new Error('it was granted')
  thread.spend(reserved.parts, { cost: 12n, released: 30n, ends: 1n })
  expect(await main.step((accounts) => accounts.giveBack(name))).toMatchObject({ held: 12n, moved: first.moved })
  thread.written([{ accounts: [name], cost: 12n }])
  expect(await read(name)).toMatchObject({ held: 0n, granted: 0n, written: 12n })
  expect(await main.step((accounts) => accounts.inUse())).toEqual([])
  await grant(money(0n), 9n, 12n)
  const again = atOnce(thread.reserve([money(9n)]))
  const second = await read(name)
  expect(second.moved).toBeGreaterThan(first.moved)
  if (again.isReserved) thread.spend(again.parts, { cost: 10n, released: 9n, ends: 1n })
  expect((await read(name)).moved).toBeGreaterThan(second.moved)
})

test('what others have counts against the limit that callers are shown', async () => {
  const { main, thread, grant } = instance()
  await main.step((accounts) => accounts.share())
  await grant(money(0n), 20n, 30n, 15n)
  expect(atOnce(thread.statuses([money(0n)]))).toMatchObject([{ spent: 30n, left: 55n }])
  atOnce(thread.reserve([tokens(0n)]))
  await grant(tokens(0n), 20n, 40n, 10n)
  expect(atOnce(thread.reserve([tokens(20n)])).statuses).toMatchObject([{ left: 30n }])
})

test('a grant of which less than half is free is reported once', async () => {
  const { main, thread, low, grant } = instance()
  await main.step((accounts) => accounts.share())
  await grant(money(0n), 40n)
  for (const nano of [15n, 10n, 5n]) atOnce(thread.reserve([money(nano)]))
  expect(low).toEqual([name])
})

test('uses of a minute come out of the grant, and corrections go back to it', async () => {
  const { clock, main, thread, grant, read } = instance()
  atOnce(thread.reserve([tokens(10n), calls]))
  await main.step((accounts) => accounts.share())
  await grant(tokens(0n), 30n)
  clock.ms += 200
  const used = atOnce(thread.reserve([tokens(20n)]))
  const { uses, granted } = await read('o\ntokens key a')
  expect([uses.map(([, count]) => count), granted]).toEqual([[10n, 20n], 10n])
  expect(await read('o\ncalls key a')).toMatchObject({ held: 1n })
  if (used.isReserved) thread.end(used.parts, [-5n])
  expect(await read('o\ntokens key a')).toMatchObject({ granted: 15n, held: 0n })
  clock.ms = uses[0]?.[0] ?? 0
  expect((await read('o\ntokens key a')).uses.map(([, count]) => count)).toEqual([15n])
})

test('an instance that may no longer admit calls refuses them as unavailable, and ends those that run', async () => {
  const { clock, main, thread, read } = instance()
  const running = atOnce(thread.reserve([money(10n)]))
  main.admitUntil(clock.ms)
  atOnce(thread.reserve([money(1n)]))
  clock.ms++
  expect(() => thread.reserve([money(1n)])).toThrow('This instance of the router has lost contact with its store.')
  if (running.isReserved) thread.spend(running.parts, { cost: 4n, released: 10n, ends: 1n })
  expect(await read(name)).toMatchObject({ held: 5n })
})

test('the main thread does not wait for a thread that has the lock: its step comes as soon as that is free', async () => {
  const { main, thread } = instance()
  atOnce(thread.reserve([money(10n)]))
  const { waiting } = thread.table.memory.step(() => ({ waiting: main.step((accounts) => accounts.read(name)) }))
  expect(await waiting).toMatchObject({ held: 10n })
})
