import fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { LimitReservation, Limits } from '../../src/access/limits.ts'
import { openQuotaLimits } from '../../src/access/quota-limits.ts'
import type { RouterError } from '../../src/core/errors.ts'
import { idleIn, type Purse } from '../../src/lending/purse.ts'
import { slotEnd } from '../../src/lending/window.ts'
import { withLoans } from '../../src/lending/with-loans.ts'
import type { RateLimits } from '../../src/store/keys.ts'
import { testInRuns } from '../helpers/slow.ts'
import { manySteps, openWires, patienceMs, Refusals, settleDown, type WiredPurse } from './wires.ts'

// Limits that several purses share, whatever the order of calls, messages, time, delays and deaths.

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

type Call = {
  wired: WiredPurse
  key: number
  tokens: number
  /** What counts until when: the present estimate, or what was used. */
  counted: { tokens: number; endsAt: number }
  reservation?: LimitReservation
  error?: RouterError
  isOver: boolean
  isRefused: boolean
}
type What = 'calls' | 'requests' | 'tokens'
type World = ReturnType<typeof openWorld>

function openWorld(count: number, limits: RateLimits, mostIdle?: number) {
  const clock = { ms: 5_000 }
  const now = () => clock.ms
  /** What travels to purses, by account. */
  const onWay = new Map<string, number>()
  const wires = openWires(count, {
    now,
    mostIdle,
    onWay(standings, sign) {
      for (const { account, granted } of standings) {
        onWay.set(account, (onWay.get(account) ?? 0) + Number(sign * granted))
      }
    },
    unsaid({ id, purse }, bank) {
      const uses = purse.takeUses()
      return uses.length === 0 ? [] : [() => bank.use(id, uses)]
    },
  })
  const known = new Map<Purse, Limits>()
  const limitsOf = (purse: Purse) => {
    const opened = known.get(purse) ?? openQuotaLimits(purse, { now })
    known.set(purse, opened)
    return opened
  }
  const calls: Call[] = []
  const begin = (
    index: number,
    { key = 0, tokens, isRolledBack = false }: { key?: number; tokens: number; isRolledBack?: boolean },
  ) => {
    const wired = wires.purses[index] as WiredPurse
    const call: Call = {
      wired,
      key,
      tokens,
      counted: { tokens: 0, endsAt: 0 },
      isOver: false,
      isRefused: false,
    }
    calls.push(call)
    const take = () => {
      const request = { prompt: tokens, output: 0, hasOutputLimit: true }
      const taken = limitsOf(wired.purse).take([{ id: `${key}`, scope: 'key', limits }], request)
      if (isRolledBack) taken.undo()
      else call.counted = { tokens, endsAt: slotEnd(clock.ms) }
      call.isOver = isRolledBack
      return taken
    }
    void (async () => withLoans(take))().then(
      (reservation) => {
        call.reservation = reservation
      },
      (error: RouterError) => {
        call.error = error
      },
    )
    return call
  }
  return { ...wires, clock, onWay, limits, calls, begin, refusals: new Refusals<Call>() }
}

/** What is used of each limit of a key. Calls of threads that have died may count or not: what they had said does. */
function used({ calls, clock }: World, key: number, withDead: boolean): Record<What, number> {
  const ofKey = calls.filter((call) => call.key === key)
  const admitted = ofKey.filter(({ reservation, wired }) => reservation && (withDead || !wired.isDead))
  const counting = admitted.filter(({ counted }) => counted.endsAt > clock.ms)
  return {
    calls: admitted.filter(({ isOver, wired }) => !isOver && !wired.isDead).length,
    requests: counting.length,
    tokens: counting.reduce((sum, { counted, wired, tokens }) => sum + (wired.isDead ? tokens : counted.tokens), 0),
  }
}

const whats = ['calls', 'requests', 'tokens'] as const
const limitOf = ({ concurrentCalls, requestsPerMinute, tokensPerMinute }: RateLimits): Record<What, number> => ({
  calls: concurrentCalls ?? Infinity,
  requests: requestsPerMinute ?? Infinity,
  tokens: tokensPerMinute ?? Infinity,
})

function observe(world: World): void {
  const limit = limitOf(world.limits)
  const waiting = world.calls.filter(({ reservation, isRefused, wired }) => {
    return !reservation && !isRefused && !wired.isDead
  })
  for (const key of new Set(world.calls.map((call) => call.key))) {
    const [now, most] = [used(world, key, false), used(world, key, true)]
    for (const what of whats) expect(now[what], what).toBeLessThanOrEqual(limit[what])
    const wanted = waiting
      .filter((call) => call.key === key)
      .flatMap((call) => whats.map((what) => ({ call, account: what, need: what === 'tokens' ? call.tokens : 1 })))
    const onWay = (what: string) => world.onWay.get(`${what} key ${key}`) ?? 0
    world.refusals.observe(wanted, (what) => limit[what as What] - most[what as What] - onWay(what))
  }
  for (const call of waiting) {
    if (!call.error) continue
    call.isRefused = true
    expect(call.error.code).toBe('rate_limited')
    expect(world.refusals.isRight(call), `would have fitted: ${call.error.message}`).toBe(true)
  }
}

/** What all purses have of all accounts, free and held. */
function shares({ purses, calls, limits }: World): bigint {
  const keys = [...new Set(calls.map(({ key }) => key))]
  const named = keys.flatMap((key) =>
    whats.map((what) => ({ account: `${what} key ${key}`, limit: limitOf(limits)[what] })),
  )
  const found = purses.flatMap(({ purse }) => {
    return named.flatMap(({ account, limit }) =>
      limit === Infinity ? [] : (purse.find({ account, kind: 'minute', limit: BigInt(limit) }) ?? []),
    )
  })
  return found.reduce((sum, account) => sum + idleIn(account) + account.reserved, 0n)
}

function end(call: Call, tokens: number): void {
  call.isOver = true
  call.counted.tokens = tokens
  call.reservation?.settle(tokens)
}

const steps = manySteps(
  { begin: 10, end: 6, rollBack: 1, deliver: 5, toBank: 4, toPurse: 4, say: 2, wait: 2, late: 1, die: 1 },
  { at: fc.nat(1_000), key: fc.constantFrom(0, 0, 1, 2, 3), amount: fc.nat(20) },
)
type Step = typeof steps extends fc.Arbitrary<(infer One)[]> ? One : never

const limitsUpTo = (calls: number, requests: number, tokens: number) =>
  fc.record({
    concurrentCalls: fc.option(fc.integer({ min: 1, max: calls })),
    requestsPerMinute: fc.option(fc.integer({ min: 1, max: requests })),
    // A call that alone exceeds the limit is another matter.
    tokensPerMinute: fc.option(fc.integer({ min: 20, max: tokens })),
  })

const runs = { fast: 25, slow: Number(process.env.RUNS ?? 100) }

testInRuns('no limit is exceeded, no call refused that would fit, and everything comes back', runs, async (numRuns) => {
  await fc.assert(
    // Purses and the bank forget accounts early or never.
    fc.asyncProperty(
      steps,
      fc.integer({ min: 1, max: 4 }),
      limitsUpTo(6, 12, 100),
      fc.constantFrom(1, undefined),
      async (steps, count, limits, mostIdle) => {
        const world = openWorld(count, limits, mostIdle)
        for (const one of steps) {
          await play(world, one)
          await settleDown()
          observe(world)
        }
        await comesBack(world)
      },
    ),
    { numRuns },
  )
})

async function play(world: World, { what, at, key, amount: tokens }: Step): Promise<void> {
  const index = at % world.purses.length
  const wired = world.purses[index] as WiredPurse
  const running = world.calls.filter(({ reservation, isOver, wired }) => reservation && !isOver && !wired.isDead)
  const call = running[at % Math.max(running.length, 1)]
  if (what === 'begin') world.begin(index, { key, tokens })
  if (what === 'rollBack') world.begin(index, { key, tokens, isRolledBack: true })
  if (what === 'end' && call) end(call, Math.floor((call.tokens * tokens) / 20))
  if (what === 'toBank') wired.toBank.shift()?.()
  if (what === 'toPurse') wired.toPurse.shift()?.()
  if (what === 'say') wired.flush()
  if (what === 'deliver') await world.deliver(index, () => observe(world))
  if (what === 'wait') world.clock.ms += tokens * 1_000
  if (what === 'late') vi.advanceTimersByTime(patienceMs)
  if (what === 'die') await world.die(index)
}

/** When all calls have ended and a minute is over, all of each limit can be used again, wherever the calls arrive. */
async function comesBack(world: World): Promise<void> {
  await world.deliverAll(() => observe(world))
  observe(world)
  for (const call of world.calls) {
    if (call.wired.isDead) continue
    expect(call.reservation ?? call.error).toBeDefined()
    if (call.reservation && !call.isOver) end(call, call.tokens)
  }
  await world.deliverAll()
  expect(world.bank.totals().lent).toBe(shares(world))
  world.clock.ms += 60_100
  const { calls, requests, tokens } = limitOf(world.limits)
  const count = Math.min(calls, requests, 4)
  const share = tokens === Infinity ? 1 : Math.floor(tokens / count)
  const last = []
  for (let n = 0; n < count; n++) {
    last.push(world.begin(n % world.purses.length, { tokens: share }))
    await world.deliverAll()
  }
  for (const call of last) expect(call.reservation, call.error?.message).toBeDefined()
  for (const call of last) end(call, 0)
  await world.deliverAll()
  for (const { id } of world.purses) world.bank.leave(id)
  expect(world.bank.totals().lent).toBe(0n)
}

test('a call that alone exceeds the limit passes while nothing else is used, wherever that was', async () => {
  const world = openWorld(2, { concurrentCalls: null, requestsPerMinute: null, tokensPerMinute: 50 })
  const small = world.begin(0, { tokens: 10 })
  await world.deliverAll()
  const beside = world.begin(1, { tokens: 60 })
  await world.deliverAll()
  expect([small.reservation !== undefined, beside.error?.code]).toEqual([true, 'rate_limited'])
  expect(beside.error?.retryAfterMs).toBe(60_100)
  end(small, 10)
  await world.deliverAll()
  world.clock.ms += 60_100
  const alone = world.begin(1, { tokens: 60 })
  await world.deliverAll()
  expect(alone.reservation).toBeDefined()
})

test('a refused call is told when as much as it needs is free again', async () => {
  const world = openWorld(2, { concurrentCalls: null, requestsPerMinute: 3, tokensPerMinute: 30 })
  for (const at of [0, 1, 1]) {
    world.begin(at, { tokens: 10 })
    await world.deliverAll()
    world.clock.ms += 10_000
  }
  const refused = [1, 10, 11, 20].map((tokens) => world.begin(0, { tokens }))
  await world.deliverAll()
  expect(refused.map(({ error }) => error?.retryAfterMs)).toEqual([30_100, 30_100, 40_100, 40_100])
})

test('a call ends once, however often it is ended', async () => {
  const world = openWorld(1, { requestsPerMinute: null, tokensPerMinute: 100, concurrentCalls: 2 })
  const [one, other] = [world.begin(0, { tokens: 40 }), world.begin(0, { tokens: 40 })]
  await world.deliverAll()
  for (let time = 0; time < 3; time++) one.reservation?.settle(60)
  one.reservation?.undo()
  expect(other.reservation).toBeDefined()
  // It has left the place of one call, and no tokens.
  const [third, fourth] = [world.begin(0, { tokens: 0 }), world.begin(0, { tokens: 0 })]
  await world.deliverAll()
  expect([third.reservation !== undefined, fourth.error?.code]).toEqual([true, 'rate_limited'])
})
