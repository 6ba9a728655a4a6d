import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { RouterError } from '../../src/core/errors.ts'
import type { Answer, Standing } from '../../src/lending/account.ts'
import { openBank } from '../../src/lending/bank.ts'
import { idleIn, Purse, type PurseAccount } from '../../src/lending/purse.ts'
import { withLoans } from '../../src/lending/with-loans.ts'
import type { Budget, PayingAccounts, Reservation } from '../../src/money/budget.ts'
import { openQuotaBudget } from '../../src/money/quota-budget.ts'
import { testInRuns } from '../helpers/slow.ts'
import { manySteps, openWires, patienceMs, Refusals, settleDown } from './wires.ts'

type World = ReturnType<typeof openWorld>

/** Limits of the organization and of keys; null is none. */
type MoneyLimits = { organization: bigint | null; keys?: readonly (bigint | null)[] }

const organization = 'organization o'
const nameOf = (key: number) => `key ${key} 1970-01`

/** An organization, its keys, and a budget for each purse. */
function openWorld(count: number, limits: MoneyLimits, mostIdle?: number) {
  /** `over`: what calls have cost beyond what they held. */
  const world = { ...limits, over: 0n, isChanged: false }
  const rowsOf = new Map<number, { key: number; cost: bigint }[]>()
  const rows = (id: number) => rowsOf.get(id) ?? (rowsOf.set(id, []).get(id) as { key: number; cost: bigint }[])
  /** What rows say of each account, what the tables say, and what travels to a purse. */
  const spent = new Sums()
  const written = new Sums()
  const granted = new Sums()
  /** What is to be called when rows are on disk. */
  const disk: (() => void)[] = []
  const wires = openWires(count, {
    mostIdle,
    readSpent: (account) => written.of(account),
    onWay(standings, sign) {
      for (const one of standings) granted.add(one.account, sign * one.granted)
    },
    unsaid: ({ id }, bank) =>
      rows(id)
        .splice(0)
        .map(({ key, cost }) => {
          const accounts = [nameOf(key), organization]
          for (const account of accounts) spent.add(account, cost)
          return () => {
            const onWritten = bank.spend(id, accounts, cost)
            disk.push(() => {
              for (const account of accounts) written.add(account, cost)
              onWritten()
            })
          }
        }),
  })
  const budgets = new Map<Purse, Budget>()
  const payers = (key = 0): PayingAccounts => ({
    at: 0,
    key: { id: `${key}`, monthlyLimitNano: world.keys?.[key] ?? null },
    organization: { id: 'o', creditNano: world.organization ?? 0n, enforcesBalance: world.organization !== null },
  })
  return {
    ...wires,
    world,
    rows,
    disk,
    spent,
    granted,
    payers,
    budgetOf(purse: Purse) {
      const budget = budgets.get(purse) ?? openQuotaBudget(purse)
      budgets.set(purse, budget)
      return budget
    },
    /** What all purses have of all accounts, free and held. */
    shares: () => {
      const ofKeys = (world.keys ?? []).map((limit, key) => [nameOf(key), limit] as const)
      const limited = [...ofKeys, [organization, world.organization] as const]
      const shares = limited.flatMap(([account, limit]) =>
        limit === null ? [] : wires.purses.map(({ purse }) => purse.find({ account, kind: 'money', limit })),
      )
      return shares.reduce((sum, account) => sum + (account ? idleIn(account) + account.reserved : 0n), 0n)
    },
  }
}

/** Sums of accounts. */
class Sums {
  readonly #sums = new Map<string, bigint>()

  of(account: string): bigint {
    return this.#sums.get(account) ?? 0n
  }

  add(account: string, amount: bigint): void {
    this.#sums.set(account, this.of(account) + amount)
  }
}

/** One call: refused, or running with what it holds. */
type Call = {
  purse: World['purses'][number]
  key: number
  need: bigint
  reservation?: Reservation
  error?: RouterError
  isOver: boolean
  isSeen: boolean
}

function begin(world: World, index: number, need: bigint, key = 0): Call {
  const purse = world.purses[index] as Call['purse']
  const call: Call = { purse, key, need, isOver: false, isSeen: false }
  const reserve = () => world.budgetOf(purse.purse).reserve({ ...world.payers(key), nanoUsd: need })
  void (async () => withLoans(reserve))().then(
    (reservation) => {
      call.reservation = reservation
    },
    (error: RouterError) => {
      call.error = error
    },
  )
  return call
}

function end(world: World, { purse, key, need, reservation }: Call, cost: bigint): void {
  if (!purse.isDead && cost > need) world.world.over += cost - need
  reservation?.settle(cost)
  if (!purse.isDead) world.rows(purse.id).push({ key, cost })
  reservation?.written()
}

describe('purses', () => {
  test('one that has been lent enough admits without asking', async () => {
    const world = openWorld(2, { organization: 1_000n })
    const first = begin(world, 0, 10n)
    await world.deliverAll()
    expect(first.reservation).toBeDefined()
    const { purse, toBank } = world.purses[0] as World['purses'][number]
    expect(toBank).toEqual([])
    expect(world.budgetOf(purse).reserve({ ...world.payers(), nanoUsd: 10n })).toBeDefined()
    expect(toBank).toEqual([])
    // The key's and the organization's.
    expect(purse.totals()).toEqual({ accounts: 2, reserved: 40n })
  })

  test('what lies idle in another purse is called back before a call is refused', async () => {
    const world = openWorld(4, { organization: 100n })
    const calls = [begin(world, 0, 40n)]
    await world.deliverAll()
    end(world, calls[0] as Call, 0n)
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
    const world = openWorld(3, { organization: 100n })
    const calls = [begin(world, 0, 1_000n), begin(world, 1, 60n), begin(world, 2, 40n)]
    await world.deliverAll()
    expect(calls.map(({ reservation }) => reservation !== undefined)).toEqual([false, true, true])
  })

  test.each([
    ['lowered', 1_000n],
    ['set for the first time', null],
  ])('a limit that is %s counts what runs already', async (_, before) => {
    const world = openWorld(2, { organization: before })
    begin(world, 0, 60n)
    await world.deliverAll()
    world.world.organization = 100n
    const tooMuch = begin(world, 1, 50n)
    const fits = begin(world, 1, 40n)
    await world.deliverAll()
    expect(tooMuch.error).toMatchObject({ code: 'budget_exhausted' })
    expect(fits.reservation).toBeDefined()
  })

  test('a limit that is lowered below what runs leaves nothing to spend when that ends', async () => {
    const world = openWorld(2, { organization: 100n })
    const running = begin(world, 0, 60n)
    await world.deliverAll()
    world.world.organization = 50n
    const free = begin(world, 0, 0n)
    await world.deliverAll()
    expect(free.reservation).toBeDefined()
    end(world, running, 50n)
    const next = begin(world, 0, 10n)
    await world.deliverAll()
    expect(next.error).toMatchObject({ code: 'budget_exhausted' })
  })

  test('a limit that is raised while a call waits is the one that it is admitted under', async () => {
    const world = openWorld(2, { organization: 5n })
    const waiting = begin(world, 0, 1n)
    world.world.organization = 25n
    const other = begin(world, 1, 5n)
    await world.deliver(1)
    expect(other.reservation).toBeDefined()
    await world.deliverAll()
    expect(waiting.reservation, waiting.error?.message).toBeDefined()
  })

  test('calls that know different limits of an account are decided one after the other', async () => {
    const world = openWorld(3, { organization: 50n })
    const [small, large] = [begin(world, 0, 40n), begin(world, 1, 40n)]
    world.world.organization = 105n
    const others = [begin(world, 1, 60n), begin(world, 2, 60n)]
    await world.deliverAll()
    const admitted = [small, large, ...others].filter(({ reservation }) => reservation)
    expect([small, large, ...others].every(({ reservation, error }) => reservation ?? error)).toBe(true)
    expect(admitted.reduce((sum, { need }) => sum + need, 0n)).toBeLessThanOrEqual(105n)
  })
})

const keyCount = 6
const steps = manySteps(
  { begin: 8, end: 6, deliver: 5, toBank: 4, toPurse: 4, flush: 2, write: 2, late: 1, die: 1, limit: 1 },
  { at: fc.nat(1_000), key: fc.nat(keyCount - 1), amount: fc.nat(40) },
)
type Step = typeof steps extends fc.Arbitrary<(infer One)[]> ? One : never

const limit = fc.option(fc.bigInt({ min: 0n, max: 200n }))

test('an account that something is on its way to is not forgotten', async () => {
  const waiting = Promise.withResolvers<void>()
  const bank = openBank({ readSpent: () => 0n, recall: () => waiting.promise.then(() => []), mostIdle: 100 })
  bank.join(1)
  bank.join(2)
  const toPurse: (() => void)[] = []
  const purse = new Purse(
    {
      lend: (needs, onAnswer) => bank.lend(1, needs, (answer) => toPurse.push(() => onAnswer(answer))),
      giveBack: (account, amount, closes) => bank.giveBack(1, account, amount, closes),
    },
    { mostIdle: 1 },
  )
  const need = (account: string, least: bigint) =>
    ({ account, kind: 'money', limit: 100n, least, wish: least }) as const
  const borrow = async (account: string, least: bigint) => {
    const loan = purse.borrow([need(account, least)])
    for (const deliver of toPurse.splice(0)) deliver()
    return await loan
  }
  const first = await borrow('a', 10n)
  first.use(() => {})
  const second = purse.borrow([need('a', 60n)])
  // Others come meanwhile, so that the purse looks for what it has not used for long.
  for (const account of ['b', 'c', 'd', 'e', 'f']) {
    const loan = purse.borrow([need(account, 1n)])
    toPurse.splice(-1)[0]?.()
    ;(await loan).use(() => {})
  }
  expect(purse.find(need('a', 0n))).toBeDefined()
  for (const deliver of toPurse.splice(0)) deliver()
  expect((await second).refused).toBeUndefined()
  let answered: Answer | Error | undefined
  bank.lend(2, [need('a', 41n)], (answer) => {
    answered = answer
  })
  waiting.resolve()
  await settleDown()
  expect(answered).toMatchObject({ isGranted: false })
})

test('a purse that closes an account keeps what is on its way to it', () => {
  const bank = openBank({ readSpent: () => 0n, recall: () => Promise.resolve([]) })
  for (const purse of [1, 2]) bank.join(purse)
  const lend = (least: bigint) => {
    let came = 0n
    bank.lend(1, [{ account: 'organization o', kind: 'money', limit: 100n, least, wish: least }], (answer) => {
      const [standing] = answer instanceof Error ? [] : answer.standings
      came = (standing?.granted ?? 0n) + (standing?.extra ?? 0n)
    })
    return came
  }
  const first = lend(10n)
  const onItsWay = lend(30n)
  bank.giveBack(1, 'organization o', first, true)
  expect(bank.totals().lent).toBe(onItsWay)
  expect(onItsWay).toBeGreaterThanOrEqual(30n)
  bank.giveBack(1, 'organization o', onItsWay, true)
  expect(bank.totals().lent).toBe(0n)
})

test('a recall that is heard while a call is being admitted takes nothing that the call was granted', async () => {
  const need = { account: 'organization o', kind: 'money', limit: 100n, least: 10n, wish: 10n } as const
  const bank = openBank({ readSpent: () => 0n, recall: () => Promise.resolve([]) })
  bank.join(1)
  const purse = new Purse({
    lend: (needs, onAnswer) => bank.lend(1, needs, onAnswer),
    giveBack: (account, amount, closes) => bank.giveBack(1, account, amount, closes),
  })
  const loan = await purse.borrow([need])
  const other = await purse.borrow([{ ...need, least: 0n, wish: 0n }])
  const free = () => idleIn(purse.find(need) as PurseAccount)
  expect(free()).toBe(90n)
  loan.use(() => {
    other.use(() => {})
    expect(purse.recall(['organization o'])).toMatchObject([{ account: 'organization o', held: 10n }])
    expect(free()).toBe(10n)
  })
  expect(purse.recall(['organization o'])).toMatchObject([{ account: 'organization o', held: 0n }])
  expect(free()).toBe(0n)
})

test('what is not in the tables yet, or counts for a minute, is kept while accounts are forgotten', () => {
  const clock = { ms: 0 }
  const bank = openBank({ readSpent: () => 0n, recall: () => Promise.resolve([]), now: () => clock.ms, mostIdle: 1 })
  bank.join(1)
  const lend = (account: string, kind: 'money' | 'minute', least: bigint) => {
    let standing: Standing | undefined
    bank.lend(1, [{ account, kind, limit: 10n, least, wish: least }], (answer) => {
      standing = answer instanceof Error ? undefined : answer.standings[0]
    })
    return standing
  }
  lend('organization a', 'money', 10n)
  const onWritten = bank.spend(1, ['organization a'], 10n)
  lend('requests key k', 'minute', 10n)
  bank.use(1, [{ account: 'requests key k', endsAt: 60_000, uses: 10n, lent: 10n }])
  for (const account of ['organization a', 'requests key k']) bank.giveBack(1, account, 0n, true)
  for (let other = 0; other < 20; other++) lend(`organization ${other}`, 'money', 1n)
  expect(lend('organization a', 'money', 0n)?.spent).toBe(10n)
  expect(lend('requests key k', 'minute', 0n)?.spent).toBe(10n)
  // Later both are forgotten: a table has the one, and the minute of the other is over.
  onWritten()
  clock.ms = 60_000
  const { accounts } = bank.totals()
  for (const account of ['organization a', 'requests key k']) bank.giveBack(1, account, 0n, true)
  for (let other = 20; other < 100; other++) lend(`organization ${other}`, 'money', 1n)
  expect(bank.totals().accounts).toBe(accounts - 2 + 80)
})

test('a purse that runs low asks for more in the background, and no call waits for it', async () => {
  const world = openWorld(2, { organization: 1_000n })
  begin(world, 0, 10n)
  await world.deliverAll()
  const { purse, toBank } = world.purses[0] as World['purses'][number]
  const admit = () => world.budgetOf(purse).reserve({ ...world.payers(), nanoUsd: 10n })
  for (let calls = 0; toBank.length === 0 && calls < 100; calls++) admit()
  expect(toBank).toHaveLength(1)
  admit()
  await world.deliverAll()
  for (let calls = 0; calls < 10; calls++) admit()
})

test('a call is granted as much of what it wishes as is left, and no less than it needs', () => {
  const bank = openBank({ readSpent: () => 0n, recall: () => Promise.resolve([]) })
  bank.join(1)
  const of = (least: bigint, wish: bigint) => {
    let granted: bigint | undefined
    const need = { account: 'tokens key k', kind: 'minute', limit: 100n, least, wish } as const
    bank.lend(1, [need], (answer) => {
      granted = answer instanceof Error ? undefined : answer.standings[0]?.granted
    })
    bank.leave(1)
    bank.join(1)
    return granted
  }
  expect(of(1n, 60n)).toBe(60n)
  expect(of(1n, 160n)).toBe(100n)
  expect(of(100n, 160n)).toBe(100n)
})

describe('for any order of calls, messages, delays and deaths', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
  afterEach(() => void vi.useRealTimers())

  const runs = { fast: 25, slow: Number(process.env.RUNS ?? 100) }
  testInRuns('no limit is exceeded, no call refused that would fit, and nothing stays lent', runs, async (numRuns) => {
    await fc.assert(
      fc.asyncProperty(
        steps,
        fc.integer({ min: 1, max: 4 }),
        fc.record({ organization: limit, keys: fc.array(limit, { minLength: keyCount, maxLength: keyCount }) }),
        // Purses and the bank forget accounts early or never.
        fc.constantFrom(1, undefined),
        async (steps, count, limits, mostIdle) => await play(openWorld(count, limits, mostIdle), steps),
      ),
      { numRuns },
    )
  })
})

/** The limits that a call is under. */
function limitsOf({ world }: World, key: number): [account: string, limit: bigint][] {
  const all = [[organization, world.organization] as const, [nameOf(key), world.keys?.[key] ?? null] as const]
  return all.flatMap(([account, most]) => (most === null ? [] : [[account, most]]))
}

/** What is held of an account by running calls, and spent. */
function used(world: World, calls: readonly Call[], account: string): bigint {
  const isPayer = (one: { key: number }) => paysFrom(one, account)
  const running = calls.filter((call) => isRunning(call) && isPayer(call))
  const unsaid = world.purses.flatMap(({ id }) => world.rows(id)).filter(isPayer)
  const held = [...running.map(({ need }) => need), ...unsaid.map(({ cost }) => cost)]
  return held.reduce((sum, each) => sum + each, world.spent.of(account))
}

function paysFrom({ key }: { key: number }, account: string): boolean {
  return account === organization || account === nameOf(key)
}

function isRunning({ reservation, isOver, purse }: Call): boolean {
  return reservation !== undefined && !isOver && !purse.isDead
}

async function play(world: World, steps: readonly Step[]): Promise<void> {
  const calls: Call[] = []
  const refusals = new Refusals<Call>()
  const observe = () => {
    const frees = new Map<string, bigint>()
    const admitted = calls.filter(({ reservation, isSeen }) => reservation && !isSeen)
    for (const [account, most] of calls.flatMap(({ key }) => limitsOf(world, key))) {
      if (frees.has(account)) continue
      const sum = used(world, calls, account)
      // A limit that was lowered may be exceeded by what ran before.
      if (admitted.some((call) => call.need > 0n && paysFrom(call, account)))
        expect(sum, account).toBeLessThanOrEqual(most + world.world.over)
      frees.set(account, most - sum - world.granted.of(account))
    }
    const waiting = calls.filter(({ reservation, isSeen, purse }) => !reservation && !isSeen && !purse.isDead)
    const wanted = waiting.flatMap((call) => {
      return limitsOf(world, call.key).map(([account]) => ({ call, account, need: Number(call.need) }))
    })
    refusals.observe(wanted, (account) => Number(frees.get(account)))
    for (const call of waiting) {
      if (!call.error) continue
      call.isSeen = true
      expect(call.error.code).toBe('budget_exhausted')
      expect(refusals.isRight(call), `would have fitted: ${call.error.message}`).toBe(true)
    }
    for (const call of admitted) call.isSeen = true
  }
  for (const one of steps) {
    await act(world, calls, one, observe)
    await settleDown()
    observe()
  }
  await world.deliverAll(observe)
  observe()
  await endsWell(world, calls)
}

async function act(world: World, calls: Call[], { what, at, key, amount }: Step, watch: () => void): Promise<void> {
  const index = at % world.purses.length
  const purse = world.purses[index] as Call['purse']
  if (what === 'begin') calls.push(begin(world, index, BigInt(amount), key))
  if (what === 'end') {
    const running = calls.filter(isRunning)
    const call = running[at % Math.max(running.length, 1)]
    if (call) {
      call.isOver = true
      end(world, call, (call.need * BigInt(amount)) / 30n)
    }
  }
  if (what === 'toBank') purse.toBank.shift()?.()
  if (what === 'toPurse') purse.toPurse.shift()?.()
  if (what === 'flush') purse.flush()
  if (what === 'deliver') await world.deliver(index, watch)
  if (what === 'write') world.disk.shift()?.()
  if (what === 'late') vi.advanceTimersByTime(patienceMs)
  if (what === 'die') await world.die(index)
  if (what === 'limit') {
    world.world.organization = amount % 4 === 0 ? null : 5n * BigInt(amount)
    world.world.isChanged = true
  }
}

/** Every call is decided, and what is left can be had by one call, wherever it arrives. */
async function endsWell(world: World, calls: readonly Call[]): Promise<void> {
  for (const call of calls) {
    if (isRunning(call)) end(world, call, 0n)
    if (!call.purse.isDead) expect(call.reservation ?? call.error).toBeDefined()
  }
  await world.deliverAll()
  for (const written of world.disk.splice(0)) written()
  if (!world.world.isChanged) expect(world.bank.totals().lent).toBe(world.shares())
  const frees = limitsOf(world, 0).map(([account, most]) => most - world.spent.of(account))
  const rest = frees.reduce((some, free) => (free < some ? free : some), 1_000n)
  const most = rest > 0n ? rest : 0n
  const last = begin(world, 0, most)
  await world.deliverAll()
  expect(last.reservation, last.error?.message).toBeDefined()
  end(world, last, 0n)
  await world.deliverAll()
  for (const { id } of world.purses) world.bank.leave(id)
  expect(world.bank.totals().lent).toBe(0n)
}
