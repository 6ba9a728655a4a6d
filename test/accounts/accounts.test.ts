import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Need, Part } from '../../src/accounts/account.ts'
import { Accounts } from '../../src/accounts/accounts.ts'
import { allocateAccounts } from '../../src/accounts/memory.ts'
import { testInRuns } from '../helpers/slow.ts'
import { atOnce } from './local.ts'
import { ModelAccounts, type ModelHold } from './model.ts'

const month = '2026-11'
const money = ['key a', 'key b', 'group g', 'organization o'].map((name) => `${name} ${month}`)

/** Three threads on one memory, and the tables that they read from: rows are in them once they are written. */
function threeThreads({ maxIdle = 2, rows = 64, slots = 512 } = {}) {
  const clock = { ms: 5_000 }
  const tables = new Map<string, bigint>()
  const readSpent = (account: string) => tables.get(account) ?? 0n
  const memory = allocateAccounts({ columns: 4, rows, slots, maxIdle })
  const threads = [1, 2, 3].map((thread) => new Accounts({ memory, thread, readSpent, now: () => clock.ms }))
  return { clock, tables, threads: threads as [Accounts, Accounts, Accounts], readSpent }
}

type Running = {
  thread: number
  parts: Part[]
  model: ModelHold
  isMoney: boolean
  reservations: bigint
  charged: bigint
}

/** Threads that do something at random, and beside them the model, which knows nothing of threads or of evictions. */
function world() {
  const { clock, tables, threads, readSpent } = threeThreads()
  const model = new ModelAccounts(readSpent)
  const running: Running[] = []
  const unwritten: { thread: number; accounts: string[]; cost: bigint }[] = []
  const limits = new Map<string, bigint | null>()
  const needOf = (account: string, kind: Need['kind'], least: bigint, more = 0n): Need => ({
    ...{ account, kind, limit: limits.get(account) ?? null, least, wish: least + more },
    ...(more > 0n && { passesAlone: true }),
  })
  const reserve = (thread: number, needs: Need[], isMoney: boolean) => {
    const expected = model.reserve(needs, clock.ms)
    const reserved = atOnce((threads[thread] as Accounts).reserve(needs))
    expect(reserved.isReserved).toBe(expected !== undefined)
    if (!reserved.isReserved || !expected) return
    expect(reserved.parts.map(({ amount }) => amount)).toEqual(expected.amounts)
    running.push({ thread, parts: reserved.parts, model: expected, isMoney, reservations: 1n, charged: 0n })
  }
  const spend = (one: Running, cost: bigint, ends: bigint) => {
    const most = one.model.reserved
    const released = ends > 0n || cost > most ? most : cost
    one.charged += cost
    model.spend(one.model, cost, released, clock.ms)
    ;(threads[one.thread] as Accounts).spend(one.parts, { cost, released, ends })
    const accounts = one.model.needs.map(({ account }) => account)
    if (cost > 0n) unwritten.push({ thread: one.thread, accounts, cost })
  }
  return {
    reserveMoney(thread: number, which: number, nano: bigint) {
      const names =
        which === 0 ? [money[0], money[2], money[3]] : which === 1 ? [money[1], money[3]] : [`key k${which} ${month}`]
      reserve(
        thread,
        (names as string[]).map((name) => needOf(name, 'money', nano)),
        true,
      )
    },
    reserveUses(thread: number, which: number, tokens: bigint, more: bigint) {
      const needs = [needOf(`calls key ${which}`, 'running', 1n), needOf(`requests key ${which}`, 'minute', 1n)]
      reserve(thread, [...needs, needOf(`tokens key ${which}`, 'minute', tokens, more)], false)
    },
    raise(which: number, more: bigint) {
      const one = running[which % Math.max(running.length, 1)]
      if (!one?.isMoney) return
      const needs = one.model.needs.map((need) => ({ ...need, least: more, wish: more }))
      const isRaised = atOnce((threads[one.thread] as Accounts).reserve(needs)).isReserved
      expect(isRaised).toBe(model.raise(one.model, more, clock.ms))
      if (isRaised) one.reservations++
    },
    charge(which: number, cost: bigint) {
      const one = running[which % Math.max(running.length, 1)]
      if (one?.isMoney) spend(one, cost, 0n)
    },
    end(which: number, cost: bigint) {
      const [one] = running.splice(which % Math.max(running.length, 1), 1)
      if (!one) return
      if (one.isMoney) return spend(one, cost, one.reservations)
      const changes = one.model.amounts.map((amount, index) => (index < 2 ? 0n : cost - amount))
      model.end(one.model, changes, clock.ms)
      ;(threads[one.thread] as Accounts).end(one.parts, changes)
    },
    undo(which: number) {
      const [one] = running.splice(which % Math.max(running.length, 1), 1)
      if (!one) return
      if (one.isMoney) return spend(one, 0n, one.reservations)
      const changes = one.model.amounts.map((amount) => -amount)
      model.end(one.model, changes, clock.ms)
      ;(threads[one.thread] as Accounts).end(one.parts, changes)
    },
    write(count: number) {
      for (const { thread, accounts, cost } of unwritten.splice(0, count)) {
        for (const account of accounts) tables.set(account, (tables.get(account) ?? 0n) + cost)
        ;(threads[thread] as Accounts).written([{ accounts, cost }], 1)
      }
    },
    limit(which: number, limit: bigint | null) {
      limits.set((money[which] ?? `${['calls', 'requests', 'tokens'][which % 3]} key ${which % 2}`) as string, limit)
    },
    wait(ms: number) {
      clock.ms += ms
    },
    /** What all threads see is what the model says. */
    check() {
      for (const account of [...money, 'calls key 0', 'requests key 1', 'tokens key 0']) {
        const kind = account.startsWith('calls') ? 'running' : account.includes(month) ? 'money' : 'minute'
        const need = { ...needOf(account, kind, 0n), limit: 1_000n }
        const { spent, reserved } = model.of(need, clock.ms)
        for (const thread of threads)
          expect(atOnce(thread.statuses([need]))).toMatchObject([
            { account, spent, reserved, left: 1_000n - spent - reserved },
          ])
      }
    },
    close() {
      while (running.length > 0) this.end(0, 1n)
      this.check()
      const reserved = threads.map((thread) => thread.totals().reservedNano)
      expect(reserved).toEqual([0n, 0n, 0n])
    },
  }
}

const thread = fc.nat(2)
const which = fc.nat(9)
const amount = fc.bigInt(0n, 60n)
type World = ReturnType<typeof world>
const step = fc.oneof(
  fc.tuple(thread, fc.nat(5), amount).map((given) => (on: World) => on.reserveMoney(...given)),
  fc.tuple(thread, fc.nat(1), amount, amount).map((given) => (on: World) => on.reserveUses(...given)),
  fc.tuple(which, fc.bigInt(1n, 30n)).map((given) => (on: World) => on.raise(...given)),
  fc.tuple(which, amount).map((given) => (on: World) => on.charge(...given)),
  fc.tuple(which, amount).map((given) => (on: World) => on.end(...given)),
  which.map((one) => (on: World) => on.undo(one)),
  fc.nat(4).map((count) => (on: World) => on.write(count)),
  fc.tuple(which, fc.option(fc.bigInt(0n, 200n))).map((given) => (on: World) => on.limit(...given)),
  fc.oneof(fc.nat(300), fc.nat(70_000)).map((ms) => (on: World) => on.wait(ms)),
)

testInRuns('three threads on one memory do what one list of sums would do', { fast: 150, slow: 2_000 }, (numRuns) =>
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const on = world()
      for (const take of steps) {
        take(on)
        on.check()
      }
      on.close()
    }),
    { numRuns },
  ),
)

describe('an account', () => {
  const need = (account: string, limit: bigint, least = 1n): Need => ({
    account,
    kind: 'money',
    limit,
    least,
    wish: least,
  })

  test('is read once for all threads, and again when it was evicted', () => {
    const { threads, tables } = threeThreads({ maxIdle: 4 })
    tables.set(`key a ${month}`, 7n)
    const [one, other] = threads
    expect(atOnce(one.statuses([need(`key a ${month}`, 10n)]))[0]?.spent).toBe(7n)
    tables.set(`key a ${month}`, 9n)
    expect(atOnce(other.statuses([need(`key a ${month}`, 10n)]))[0]?.spent).toBe(7n)
    for (let n = 0; n < 50; n++) atOnce(other.statuses([need(`key ${n} ${month}`, 10n)]))
    expect(atOnce(one.statuses([need(`key a ${month}`, 10n)]))[0]?.spent).toBe(9n)
  })

  test('that was read before another thread spent and evicted it is read again', async () => {
    const memory = allocateAccounts({ columns: 3, rows: 64, slots: 8, maxIdle: 0 })
    const tables = new Map<string, bigint>()
    const read = Promise.withResolvers<bigint>()
    let reads = 0
    const name = `key a ${month}`
    const slow = new Accounts({
      memory,
      thread: 1,
      readSpent: () => (++reads === 1 ? read.promise : (tables.get(name) ?? 0n)),
    })
    const other = new Accounts({ memory, thread: 2, readSpent: (account) => tables.get(account) ?? 0n })
    const reserving = slow.reserve([need(name, 10n, 4n)])
    const reserved = atOnce(other.reserve([need(name, 10n, 8n)]))
    if (!reserved.isReserved) throw new Error('it fits')
    other.spend(reserved.parts, { cost: 8n, released: 8n, ends: 1n })
    tables.set(name, 8n)
    other.written([{ accounts: [name], cost: 8n }])
    for (let n = 0; n < 20; n++) atOnce(other.statuses([need(`key ${n} ${month}`, 10n)]))
    read.resolve(0n)
    expect(await reserving).toMatchObject({ isReserved: false })
    expect(reads).toBe(2)
  })

  test('with a long name is one account for all threads', () => {
    const { threads } = threeThreads()
    const name = `key ${'x'.repeat(300)} ${month}`
    expect(atOnce(threads[0].reserve([need(name, 10n, 6n)])).isReserved).toBe(true)
    expect(atOnce(threads[1].reserve([need(name, 10n, 6n)])).isReserved).toBe(false)
    expect(atOnce(threads[1].reserve([need(`${name}x`, 10n, 6n)])).isReserved).toBe(true)
  })

  test('for which there is no room is refused as unavailable, and nothing stays reserved', () => {
    const { threads } = threeThreads({ rows: 4 })
    const [one, other] = threads
    const held = [1, 2, 3].map((n) => atOnce(one.reserve([need(`key ${n} ${month}`, 10n)])))
    const both = [need(`key 4 ${month}`, 10n), need(`key 5 ${month}`, 10n)]
    expect(() => other.reserve(both)).toThrow('The router tracks as many accounts as it can.')
    expect(other.totals()).toEqual({ accounts: 3, reservedNano: 0n })
    if (held[0]?.isReserved) one.spend(held[0].parts, { cost: 0n, released: 1n, ends: 1n })
    expect(atOnce(other.reserve(both)).isReserved).toBe(true)
  })

  test('whose uses have no room is refused as unavailable, until older ones no longer count', () => {
    const { threads, clock } = threeThreads({ slots: 2 })
    const uses = (least = 1n): Need => ({ account: 'requests key a', kind: 'minute', limit: 100n, least, wish: least })
    for (let n = 0; n < 2; n++) {
      expect(atOnce(threads[n]?.reserve([uses()]) as never)).toMatchObject({ isReserved: true })
      clock.ms += 100
    }
    expect(() => threads[2].reserve([uses()])).toThrow('The router tracks as many uses of rate limits as it can.')
    clock.ms += 60_000
    expect(atOnce(threads[2].reserve([uses(99n)]))).toMatchObject({ isReserved: true })
  })
})
