import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { RouterError } from '../../src/core/errors.ts'
import { openBank } from '../../src/lending/bank.ts'
import { type BankLink, freeIn, Purse } from '../../src/lending/purse.ts'
import { withLoans } from '../../src/lending/with-loans.ts'
import type { Payers, Reservation } from '../../src/money/budget.ts'
import { openLentBudget } from '../../src/money/lent-budget.ts'

/** Lets everything go on that waits for no message. */
const settleDown = async () => {
  for (let turn = 0; turn < 12; turn++) await null
}

type World = ReturnType<typeof openWorld>

/** A bank and purses with a wire each way, whose messages arrive in order and when the test delivers them. */
function openWorld({ purses: count, limit }: { purses: number; limit: bigint | null }) {
  const world = { limit, spent: 0n, granted: 0n }
  const links = new Map<number, ReturnType<typeof openPurseOn>>()
  const bank = openBank({
    readSpent: () => 0n,
    recall: (id, accounts) =>
      new Promise((resolve, reject) => {
        const link = links.get(id)
        if (!link) return reject(new Error('gone'))
        link.whenDead.push(() => reject(new Error('gone')))
        link.toPurse.push(() => {
          link.flush()
          const held = link.purse.recall(accounts)
          link.toBank.push(() => resolve(held))
        })
      }),
    patienceMs: 60_000,
  })

  const openPurseOn = (id: number) => {
    const toBank: (() => void)[] = []
    const toPurse: (() => void)[] = []
    const rows: bigint[] = []
    const flush = () => {
      for (const cost of rows.splice(0)) {
        world.spent += cost
        toBank.push(() => bank.spend(id, ['organization o'], cost)())
      }
    }
    const link: BankLink = {
      lend(needs, onAnswer) {
        toBank.push(() => {
          bank.lend(id, needs, (answer) => {
            const standings = answer instanceof Error ? [] : answer.standings
            const sum = standings.reduce((all, { granted }) => all + granted, 0n)
            world.granted += sum
            toPurse.push(() => {
              world.granted -= sum
              onAnswer(answer)
            })
          })
        })
      },
      giveBack: (account, amount, closes) => void toBank.push(() => bank.giveBack(id, account, amount, closes)),
    }
    const purse = new Purse(link)
    const opened = {
      id,
      purse,
      budget: openLentBudget(purse),
      toBank,
      toPurse,
      rows,
      flush,
      isDead: false,
      whenDead: [] as (() => void)[],
    }
    links.set(id, opened)
    bank.join(id)
    return opened
  }

  let last = 0
  const purses = Array.from({ length: count }, () => openPurseOn(++last))
  const payers = (): Payers => ({
    at: 0,
    key: { id: 'k', monthlyLimitNano: null },
    organization: { id: 'o', creditNano: world.limit ?? 0n, enforcesBalance: world.limit !== null },
  })
  return {
    world,
    bank,
    purses,
    payers,
    /** A purse whose thread dies: what it had said arrives, the rest is lost; another takes its place. */
    die(index: number) {
      const dead = purses[index] as (typeof purses)[number]
      for (const message of dead.toBank.splice(0)) message()
      links.delete(dead.id)
      dead.isDead = true
      dead.toPurse.length = 0
      for (const end of dead.whenDead) end()
      bank.leave(dead.id)
      purses[index] = openPurseOn(++last)
    },
    /** What all purses have of the account, free and held. */
    shares: () =>
      purses.reduce((sum, { purse }) => {
        const account = purse.find({ account: 'organization o', kind: 'money', limit: world.limit })
        return sum + (account ? freeIn(account) + account.reserved : 0n)
      }, 0n),
    async deliverAll() {
      for (let isBusy = true; isBusy; ) {
        await settleDown()
        isBusy = false
        for (const { toBank, toPurse, flush } of purses) {
          flush()
          for (const message of [...toBank.splice(0), ...toPurse.splice(0)]) {
            isBusy = true
            message()
            // As between the messages of a port.
            await settleDown()
          }
        }
      }
    },
  }
}

/** One call: refused, or running with what it holds. */
type Call = {
  purse: World['purses'][number]
  need: bigint
  reservation?: Reservation
  error?: RouterError
  isOver: boolean
  isRefused: boolean
}

function begin(world: World, index: number, need: bigint): Call {
  const purse = world.purses[index] as Call['purse']
  const call: Call = { purse, need, isOver: false, isRefused: false }
  const reserve = () => purse.budget.reserve({ ...world.payers(), nanoUsd: need })
  withLoans(reserve).then(
    (reservation) => {
      call.reservation = reservation
    },
    (error: RouterError) => {
      call.error = error
    },
  )
  return call
}

function end({ purse, reservation }: Call, cost: bigint): void {
  reservation?.settle(cost)
  if (!purse.isDead) purse.rows.push(cost)
  reservation?.written()
}

describe('purses', () => {
  test('one that has been lent enough admits without asking', async () => {
    const world = openWorld({ purses: 2, limit: 1_000n })
    const first = begin(world, 0, 10n)
    await world.deliverAll()
    expect(first.reservation).toBeDefined()
    const { purse, budget, toBank } = world.purses[0] as World['purses'][number]
    expect(toBank).toEqual([])
    expect(budget.reserve({ ...world.payers(), nanoUsd: 10n })).toBeDefined()
    expect(toBank).toEqual([])
    // The key's and the organization's.
    expect(purse.totals()).toEqual({ accounts: 2, reserved: 40n })
  })

  test('what lies idle in another purse is called back before a call is refused', async () => {
    const world = openWorld({ purses: 4, limit: 100n })
    const calls = [begin(world, 0, 40n)]
    await world.deliverAll()
    end(calls[0] as Call, 0n)
    const all = begin(world, 1, 100n)
    await world.deliverAll()
    expect(all.error).toBeUndefined()
    expect(all.reservation).toBeDefined()
    const none = begin(world, 2, 1n)
    await world.deliverAll()
    expect(none.error).toMatchObject({ code: 'budget_exhausted' })
    expect(none.error?.message).toContain('reserved by running calls')
  })

  test('of several that wait for the same money each gets what it needs and no more', async () => {
    const world = openWorld({ purses: 3, limit: 100n })
    const calls = [begin(world, 0, 1_000n), begin(world, 1, 60n), begin(world, 2, 40n)]
    await world.deliverAll()
    expect(calls.map(({ reservation }) => reservation !== undefined)).toEqual([false, true, true])
  })

  test.each([
    ['lowered', 1_000n],
    ['set for the first time', null],
  ])('a limit that is %s counts what runs already', async (_, before) => {
    const world = openWorld({ purses: 2, limit: before })
    begin(world, 0, 60n)
    await world.deliverAll()
    world.world.limit = 100n
    const tooMuch = begin(world, 1, 50n)
    const fits = begin(world, 1, 40n)
    await world.deliverAll()
    expect(tooMuch.error).toMatchObject({ code: 'budget_exhausted' })
    expect(fits.reservation).toBeDefined()
  })

  test('a purse that does not answer counts as holding what it was lent', async () => {
    const bank = openBank({
      readSpent: () => 0n,
      recall: () => new Promise(() => {}),
      patienceMs: 10,
    })
    bank.join(1)
    bank.join(2)
    const need = { account: 'organization o', kind: 'money', limit: 100n } as const
    const lend = (purse: number) =>
      new Promise((resolve) => bank.lend(purse, [{ ...need, least: 60n, wish: 60n }], resolve))
    expect(await lend(1)).toMatchObject({ isGranted: true })
    const second = await lend(2)
    expect(second).toMatchObject({ isGranted: false, standings: [{ isShort: true, left: expect.any(BigInt) }] })
  })
})

type Step = { what: 'begin' | 'end' | 'toBank' | 'toPurse' | 'flush' | 'die'; at: number; amount: number }

const step = fc.record({
  what: fc.constantFrom<Step['what'][]>(
    'begin',
    'begin',
    'end',
    'toBank',
    'toBank',
    'toPurse',
    'toPurse',
    'flush',
    'die',
  ),
  at: fc.nat(1_000),
  amount: fc.nat(40),
})

describe('for any order of calls, messages and deaths', () => {
  test('no limit is exceeded, no call refused that would fit, and nothing stays lent', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 120 }),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 0, max: 200 }),
        async (steps, count, limit) => {
          const world = openWorld({ purses: count, limit: BigInt(limit) })
          await play(world, BigInt(limit), steps)
        },
      ),
      { numRuns: Number(process.env.RUNS ?? 500) },
    )
  })
})

async function play(world: World, limit: bigint, steps: readonly Step[]): Promise<void> {
  const calls: Call[] = []
  /** Of each call that waits, the least that was free in all while it waited. */
  const least = new Map<Call, bigint>()
  const settled = () => calls.filter(({ purse, isOver }) => isOver && !purse.isDead)
  const observe = () => {
    const lost = calls.filter(({ purse, isOver }) => purse.isDead && !isOver)
    for (const call of lost) least.delete(call)
    const running = calls.filter(({ reservation, isOver, purse }) => reservation && !isOver && !purse.isDead)
    const held = running.reduce((sum, { need }) => sum + need, 0n)
    const unread = world.purses.reduce((sum, { rows }) => sum + rows.reduce((all, cost) => all + cost, 0n), 0n)
    expect(held + world.world.spent + unread).toBeLessThanOrEqual(limit)
    const free = limit - held - world.world.spent - unread - world.world.granted
    for (const call of calls) {
      if (call.reservation || call.isRefused) continue
      const before = least.get(call) ?? free
      least.set(call, free < before ? free : before)
      if (!call.error) continue
      call.isRefused = true
      expect(call.error.code).toBe('budget_exhausted')
      expect(least.get(call)).toBeLessThan(call.need)
    }
  }
  for (const { what, at, amount } of steps) {
    const index = at % world.purses.length
    const purse = world.purses[index] as Call['purse']
    if (what === 'begin') calls.push(begin(world, index, BigInt(amount)))
    if (what === 'end') {
      const running = calls.filter((call) => call.reservation && !call.isOver && !call.purse.isDead)
      const call = running[at % Math.max(running.length, 1)]
      if (call) {
        call.isOver = true
        end(call, (call.need * BigInt(amount)) / 40n)
      }
    }
    if (what === 'toBank') purse.toBank.shift()?.()
    if (what === 'toPurse') purse.toPurse.shift()?.()
    if (what === 'flush') purse.flush()
    if (what === 'die') world.die(index)
    await settleDown()
    observe()
  }
  for (const call of settled()) expect(call.reservation).toBeDefined()
  await world.deliverAll()
  observe()
  for (const call of calls) {
    if (call.reservation && !call.isOver && !call.purse.isDead) end(call, 0n)
    if (!call.purse.isDead) expect(call.reservation ?? call.error).toBeDefined()
  }
  await world.deliverAll()
  expect(world.bank.totals().lent).toBe(world.shares())
  // Whatever is left can be had by one call, wherever it arrives.
  const rest = limit - world.world.spent
  const last = begin(world, 0, rest)
  await world.deliverAll()
  expect(last.reservation).toBeDefined()
  end(last, 0n)
  await world.deliverAll()
  for (const { id } of world.purses) world.bank.leave(id)
  expect(world.bank.totals().lent).toBe(0n)
}
