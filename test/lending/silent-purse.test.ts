import { setTimeout } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { Answer, Held } from '../../src/lending/account.ts'
import { type BankOptions, openBank } from '../../src/lending/bank.ts'

// A purse that does not answer a recall: its thread is busy, or stuck.

type Wanted = { purse?: number; account?: string; limit?: bigint | null }

/** Three purses, of which the first answers a recall when it is told to: it holds what is in `held`. The third holds what is in `third`. */
function withSilent(options: Pick<BankOptions, 'patienceMs' | 'longestMs' | 'mostIdle'> = {}) {
  const answers: (() => void)[] = []
  const failures: (() => void)[] = []
  const held: Held[] = []
  const third: Held[] = []
  const recall = (purse: number) => {
    const { promise, resolve, reject } = Promise.withResolvers<Held[]>()
    if (purse !== 1) resolve(purse === 3 ? third : [])
    else {
      answers.push(() => resolve(held))
      failures.push(() => reject(new Error('nobody to ask')))
    }
    return promise
  }
  const bank = openBank({ readSpent: () => 0n, recall, patienceMs: 5, longestMs: 60_000, ...options })
  for (const purse of [1, 2, 3]) bank.join(purse)
  const lendAll = (purse: number, ...wanted: (Wanted & { least: bigint })[]) =>
    new Promise<Answer | Error>((resolve) => {
      const needs = wanted.map(({ account = 'organization o', limit = 100n, least }) => {
        return { account, kind: 'money', limit, least, wish: least } as const
      })
      bank.lend(purse, needs, resolve)
    })
  return {
    bank,
    held,
    third,
    answers,
    lendAll,
    lend: (purse: number, least: bigint, wanted: Wanted = {}) => lendAll(purse, { ...wanted, least }),
    /** The answer, where it comes at once. */
    lendNow(purse: number, least: bigint, { account = 'organization o', limit = 100n }: Wanted = {}) {
      let answered: Answer | Error | undefined
      bank.lend(purse, [{ account, kind: 'money', limit, least, wish: least }], (answer) => {
        answered = answer
      })
      return answered
    },
    /** It has been asked so often. */
    asked: (times: number) => expect.poll(() => answers.length, { interval: 1 }).toBeGreaterThanOrEqual(times),
    answer() {
      for (const each of answers) each()
    },
    fail() {
      for (const each of failures) each()
    },
  }
}

const granted = { isGranted: true }
const refused = { isGranted: false }
const noAnswer = new Error('A worker that holds part of the limit does not respond.')
const soon = () => setTimeout(50, 'waits')

describe('a call that needs what it may hold', () => {
  test('waits until it answers', async () => {
    const { held, lend, asked, answer } = withSilent()
    await lend(1, 60n)
    const second = lend(2, 60n)
    await asked(3)
    held.push({ account: 'organization o', held: 40n })
    answer()
    expect(await second).toMatchObject(granted)
  })

  test('waits until it is gone', async () => {
    const { bank, lend, asked } = withSilent()
    await lend(1, 60n)
    const second = lend(2, 60n)
    await asked(2)
    bank.leave(1)
    expect(await second).toMatchObject(granted)
  })

  test('waits until it is gone, also where it cannot be asked before', async () => {
    const { bank, lend, asked, fail } = withSilent()
    await lend(1, 60n)
    const second = lend(2, 60n)
    await asked(1)
    fail()
    expect(await Promise.race([second, soon()])).toBe('waits')
    bank.leave(1)
    expect(await second).toMatchObject(granted)
  })

  test('is decided at once when it is gone', async () => {
    const { bank, lend, asked } = withSilent({ patienceMs: 60_000 })
    await lend(1, 60n)
    const second = lend(2, 60n)
    await asked(1)
    bank.leave(1)
    expect(await second).toMatchObject(granted)
  })

  test('fails after a time', async () => {
    const { lend } = withSilent({ patienceMs: 2, longestMs: 10 })
    await lend(1, 60n)
    expect(await lend(2, 60n)).toEqual(noAnswer)
  })

  test('does not fail while an answer may wait to be heard', async () => {
    const { held, lend, answer } = withSilent({ longestMs: 1 })
    await lend(1, 60n)
    const second = lend(2, 60n)
    held.push({ account: 'organization o', held: 40n })
    // This thread stands still: its timers run first.
    for (const until = performance.now() + 20; performance.now() < until; );
    setImmediate(answer)
    expect(await second).toMatchObject(granted)
  })

  test('is refused where what it answers is not enough', async () => {
    const { held, lend, asked, answer } = withSilent()
    await lend(1, 60n, { limit: null })
    const second = lend(2, 60n)
    await asked(2)
    held.push({ account: 'organization o', held: 50n })
    answer()
    expect(await second).toMatchObject({ ...refused, standings: [{ isShort: true, lent: 50n }] })
  })
})

describe('a call that does not need what it may hold', () => {
  test('is decided', async () => {
    const { held, lend, answer } = withSilent()
    await lend(1, 60n)
    await lend(2, 100n, { account: 'key k' })
    const stuck = lend(2, 60n)
    expect(await lend(2, 10n, { account: 'key k' })).toMatchObject({ ...refused, standings: [{ isShort: true }] })
    expect(await lend(2, 10n, { account: 'key l' })).toMatchObject(granted)
    expect(await lend(2, 200n)).toMatchObject(refused)
    held.push({ account: 'organization o', held: 0n })
    answer()
    expect(await stuck).toMatchObject(granted)
  })

  test('is granted at once where only accounts of other calls are short', async () => {
    const { lendAll, asked } = withSilent({ patienceMs: 500 })
    const both = (least: bigint) => [
      { account: 'key k', least },
      { limit: 1_000n, least },
    ]
    expect(await lendAll(1, ...both(60n))).toMatchObject(granted)
    const stuck = lendAll(2, ...both(60n))
    expect(await Promise.race([stuck, soon()])).toBe('waits')
    for (const times of [1, 2]) {
      await asked(times)
      const other = lendAll(3, { account: `key ${times}`, least: 60n }, { limit: 1_000n, least: 60n })
      expect(await Promise.race([other, soon()])).toMatchObject(granted)
    }
  })

  test('is granted soon where another call needed its account at one time', async () => {
    const { third, lend, lendAll, asked } = withSilent({ patienceMs: 300 })
    await lendAll(1, { account: 'key k', least: 60n }, { account: 'key l', least: 0n })
    void lendAll(2, { account: 'key k', least: 60n }, { limit: 1_000n, least: 600n })
    await asked(1)
    await lend(3, 500n, { limit: 1_000n })
    third.push({ account: 'organization o', held: 100n })
    await asked(3)
    expect(await Promise.race([lend(3, 200n, { limit: 1_000n }), soon()])).toMatchObject(granted)
  })

  test('is granted where what it needs besides has become short meanwhile', async () => {
    const { held, lend, lendAll, asked, answer } = withSilent({ patienceMs: 60_000 })
    await lendAll(1, { account: 'key k', least: 60n }, { least: 60n })
    const waiting = lendAll(2, { account: 'key k', least: 60n }, { least: 35n })
    await asked(1)
    expect(await Promise.race([lend(3, 30n), soon()])).toMatchObject(granted)
    held.push({ account: 'key k', held: 0n }, { account: 'organization o', held: 0n })
    answer()
    await asked(2)
    answer()
    expect(await waiting).toMatchObject(granted)
  })

  test.each([900n, 2_000n, null])('is granted where the limit has become %s', async (limit) => {
    const { lend } = withSilent()
    await lend(1, 10n, { limit: 1_000n })
    await lend(2, 10n, { limit: 950n })
    expect(await lend(2, 10n, { limit })).toMatchObject(granted)
    expect(await lend(2, 0n, { limit })).toMatchObject(granted)
  })

  test('is granted at once when a limit is removed under which others waited for it', async () => {
    const { lend, lendNow } = withSilent({ patienceMs: 1, longestMs: 1 })
    await lend(1, 0n, { limit: null })
    expect(await lend(2, 10n, { limit: 100n })).toEqual(noAnswer)
    expect(lendNow(2, 10n, { limit: null })).toMatchObject(granted)
    expect(lendNow(3, 10n, { limit: null })).toMatchObject(granted)
  })

  test('is refused for another limit, whatever it holds without one', async () => {
    const { lend, lendAll } = withSilent()
    await lend(1, 0n, { limit: null })
    await lend(2, 10n, { account: 'key k', limit: 10n })
    const both = [
      { account: 'key k', limit: 10n, least: 5n },
      { limit: 100n, least: 5n },
    ]
    expect(await lendAll(2, ...both)).toMatchObject(refused)
  })

  test('is refused only when all that is idle has come back, also of an account that was forgotten meanwhile', async () => {
    const { third, lend, lendAll } = withSilent({ patienceMs: 50, mostIdle: 3 })
    await lend(1, 100n)
    void lend(2, 1n)
    void lend(2, 1n)
    const call = lendAll(2, { account: 'key x', least: 99n }, { account: 'key y', least: 0n }, { least: 0n })
    for (let other = 0; other < 6; other++) await lend(3, 1n, { account: `key ${other}` })
    await setTimeout(60)
    await lend(3, 1n, { account: 'key x' })
    third.push({ account: 'key x', held: 1n })
    expect(await call).toMatchObject(granted)
  })
})

describe('a bank that goes on with what another has handed over', () => {
  test('waits for a purse that was lent without limit', async () => {
    const first = withSilent()
    await first.lend(1, 0n, { limit: null })
    void first.lend(2, 100n)
    await first.asked(2)
    const { accounts, waiting } = first.bank.handOver()
    const second = withSilent()
    second.bank.adopt(accounts)
    const answers = waiting.map(({ purse, needs }) => new Promise((resolve) => second.bank.lend(purse, needs, resolve)))
    expect(await Promise.race([...answers, soon()])).toBe('waits')
  })

  test('lends nothing to a purse that has left', async () => {
    const first = withSilent({ patienceMs: 200 })
    await first.lend(1, 10n, { limit: 1_000n })
    await first.lend(1, 60n, { account: 'key k' })
    void first.lendAll(3, { account: 'key k', least: 60n }, { limit: 1_000n, least: 1n })
    void first.lend(2, 300n, { limit: 1_000n })
    first.bank.leave(2)
    const { accounts, waiting } = first.bank.handOver()
    const second = withSilent()
    second.bank.leave(2)
    second.bank.adopt(accounts)
    for (const { purse, needs, onAnswer } of waiting) second.bank.lend(purse, needs, onAnswer)
    for (const purse of [1, 3]) second.bank.leave(purse)
    expect(second.bank.totals().lent).toBe(0n)
  })
})
