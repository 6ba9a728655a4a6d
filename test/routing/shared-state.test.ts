import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import { defaultHealth } from '../../src/core/routing/rules.ts'
import type { Target } from '../../src/manifest/target.ts'
import { type Finding, sharedClock } from '../../src/routing/findings.ts'
import { callClass } from '../../src/routing/measurements.ts'
import { openSharedState, type SharedState } from '../../src/routing/shared-state.ts'
import { testInRuns } from '../helpers/slow.ts'

// What one event loop finds out about providers, the others know.

const provider = { slug: 'maker', baseUrl: 'http://127.0.0.1', auth: { scheme: 'bearer', token: 'a secret' } }
const target = { provider, model: 'm1' } as unknown as Target
const other = { provider, model: 'm2' } as unknown as Target
const failure = new RouterError('provider_failed', 'No.', { provider: 'maker' })
const errors = [
  failure,
  new RouterError('provider_timeout', 'No.', { provider: 'maker' }),
  new RouterError('provider_refused', 'No.', { provider: 'maker' }),
  new RouterError('quota_exhausted', 'No.', { provider: 'maker' }),
  new RouterError('model_not_found', 'No.', { provider: 'maker' }),
  new RouterError('rate_limited', 'No.', { provider: 'maker', retryAfterMs: 10_000 }),
]

/** Event loops whose findings reach the others when they are delivered. */
function someLoops(count: number) {
  const world = { at: 1_000, told: 0 }
  const loops = Array.from({ length: count }, () => {
    const said: Finding[] = []
    const onFound = (finding: Finding) => void said.push(structuredClone(finding))
    const how = { settings: () => defaultHealth, now: () => world.at, random: () => 0.5 }
    return { said, state: openSharedState({ ...how, onFound }) }
  })
  const deliver = () => {
    for (const { said, state } of loops) {
      const findings = [...said.splice(0), ...state.measurements.takeFindings()]
      world.told += findings.length
      for (const one of loops) if (one.state !== state) one.state.merge(findings)
    }
  }
  const newcomer = (of: SharedState) => {
    const state = openSharedState({ settings: () => defaultHealth, now: () => world.at })
    state.merge(structuredClone(of.findings()))
    return state
  }
  return { world, states: loops.map(({ state }) => state), deliver, newcomer }
}

function twoLoops() {
  const { states, ...rest } = someLoops(2)
  return { ...rest, one: states[0] as SharedState, two: states[1] as SharedState }
}

function fail({ health }: SharedState, times: number, { error = failure, caller = 'one' } = {}): void {
  for (let time = 0; time < times; time++) {
    const passage = health.enter(target, caller)
    passage?.failed(error)
    passage?.ended()
  }
}

function succeed({ health }: SharedState, caller = 'one'): void {
  const passage = health.enter(target, caller)
  passage?.succeeded()
  passage?.ended()
}

// Times are shown by the clock of the day, which goes on while a test runs.
beforeAll(() => void vi.spyOn(Date, 'now').mockReturnValue(1_000_000))
afterAll(() => void vi.restoreAllMocks())

const callers = ['one', 'other']
const standing = ({ health }: SharedState) => ({
  troubled: health
    .degraded()
    .map(({ until, ...trouble }) => JSON.stringify(Object.entries(trouble).sort()))
    .sort(),
  closed: [target, other].flatMap((one) => callers.map((caller) => health.closedFor(one, caller))),
})

describe('circuits', () => {
  test('what opens in one event loop takes no calls of the others, until its time is over', () => {
    const { world, one, two, deliver } = twoLoops()
    fail(one, defaultHealth.inARow)
    deliver()
    expect(two.health.isOpen(target, true, 'one')).toBe(false)
    expect(two.health.degraded()).toMatchObject([{ name: 'maker/m1', state: 'open', reason: 'provider_failed' }])
    world.at += defaultHealth.openMs
    expect(two.health.degraded()).toMatchObject([{ name: 'maker/m1', state: 'half_open' }])
    succeed(two)
    deliver()
    succeed(one)
    deliver()
    expect([one, two].map(({ health }) => health.degraded())).toMatchObject([
      [{ state: 'recovering' }],
      [{ state: 'recovering' }],
    ])
  })

  test('what another event loop has closed again begins anew: own failures of before do not count', () => {
    const { world, one, two, deliver } = twoLoops()
    for (let round = 0; round < 3; round++) {
      fail(one, defaultHealth.of)
      deliver()
      world.at += 2 * defaultHealth.openMs
      succeed(two)
      deliver()
      succeed(two)
      deliver()
      expect(one.health.degraded()).toMatchObject([{ state: 'recovering' }])
      // Neither as many in a row as open it, nor a share of enough calls.
      fail(one, defaultHealth.inARow - 1)
      expect(one.health.degraded()).toMatchObject([{ state: 'recovering' }])
      succeed(one)
      world.at += defaultHealth.windowMs * 2
    }
  })

  test('calls that have no other target are paced together, not once in each event loop', () => {
    const begun = (count: number) => {
      const { world, states, deliver } = someLoops(count)
      let calls = 0
      for (let step = 0; step < 200; step++) {
        for (const { health } of states) {
          const handle = health.enterAsLastResort(target)
          handle?.failed(failure)
          handle?.ended()
          if (handle) calls++
        }
        world.at += 50
        deliver()
      }
      return calls
    }
    // Those until it is down, five at once and two and a half in each second; a message may cross another one.
    expect(begun(1)).toBeLessThanOrEqual(36)
    expect(begun(4)).toBeLessThanOrEqual(36 + 4 * 5)
    expect(begun(4)).toBeGreaterThanOrEqual(25)
  })

  test('what is found in one event loop counts as what another one meets', () => {
    const { one, two, deliver } = twoLoops()
    const gone = new RouterError('model_not_found', 'No.', { provider: 'maker' })
    fail(one, 1, { error: gone })
    deliver()
    expect(callers.map((caller) => two.health.isOpen(target, true, caller))).toEqual([false, true])
    fail(two, 1, { error: gone, caller: 'other' })
    deliver()
    expect(one.health.degraded()).toMatchObject([{ scope: 'target', state: 'open' }])
    expect(one.health.degraded()[0]).not.toHaveProperty('organization')
  })

  test('a success in another event loop counts against closing a target to all', () => {
    const { one, two, deliver } = twoLoops()
    const gone = new RouterError('model_not_found', 'No.', { provider: 'maker' })
    fail(one, 1, { error: gone, caller: 'one' })
    succeed(one, 'third')
    deliver()
    fail(two, 1, { error: gone, caller: 'other' })
    expect(['one', 'other', 'third'].map((caller) => two.health.isOpen(target, true, caller))).toEqual([
      true,
      false,
      true,
    ])
  })

  test('single failures, and calls that go well, are told nobody', () => {
    const { world, one, deliver } = twoLoops()
    fail(one, defaultHealth.inARow - 1)
    for (let call = 0; call < 100; call++) succeed(one)
    deliver()
    expect(world.told).toBe(0)
  })

  test('no finding tells a credential', () => {
    const { one } = twoLoops()
    fail(one, 1, { error: new RouterError('quota_exhausted', 'No.', { provider: 'maker' }) })
    expect(one.findings()).toMatchObject([{ scope: 'credential', name: 'maker' }])
    expect(JSON.stringify(one.findings())).not.toContain('a secret')
  })

  testInRuns(
    'whatever happens, all event loops come to know the same, and one that begins knows it too',
    { fast: 60, slow: 300 },
    (numRuns) => {
      const step = fc.record({
        loop: fc.nat(2),
        caller: fc.constantFrom(...callers),
        what: fc.oneof(
          fc.record({ error: fc.constantFrom(...errors), times: fc.integer({ min: 1, max: 6 }) }),
          fc.constantFrom('succeeds', 'is exhausted', 'waits', 'is told'),
        ),
      })
      const check = fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const { world, states, deliver, newcomer } = someLoops(3)
        for (const { loop, caller, what } of steps) {
          const state = states[loop] as SharedState
          world.at++
          if (typeof what === 'object') fail(state, what.times, { error: what.error, caller })
          else if (what === 'succeeds') succeed(state, caller)
          else if (what === 'is exhausted') state.health.exhausted(target, 500)
          else if (what === 'waits') world.at += defaultHealth.openMs / 2
          else deliver()
        }
        deliver()
        const [first, ...others] = states as [SharedState, ...SharedState[]]
        for (const one of [...others, newcomer(first)]) expect(standing(one)).toEqual(standing(first))
      })
      fc.assert(check, { numRuns })
    },
  )
})

describe('kept keys', () => {
  test('are kept at the same target everywhere, the last one that served', () => {
    const { world, one, two, deliver, newcomer } = twoLoops()
    one.affinity.keep('a', 'maker/m1', 3_600_000)
    deliver()
    expect(two.affinity.find('a')).toBe('maker/m1')
    world.at += 10
    two.affinity.keep('a', 'maker/m2', 1_000)
    deliver()
    for (const state of [one, two, newcomer(one)]) expect(state.affinity.find('a')).toBe('maker/m2')
    world.at += 1_000
    for (const state of [one, two, newcomer(one)]) expect(state.affinity.find('a')).toBeUndefined()
  })

  test('are told anew only before the others forget them', () => {
    const { world, one, two, deliver } = twoLoops()
    for (let call = 0; call < 100; call++) {
      one.affinity.keep('a', 'maker/m1', 1_000)
      world.at += 50
      deliver()
      expect(two.affinity.find('a')).toBe('maker/m1')
    }
    expect(world.told).toBeLessThanOrEqual(10)
  })
})

describe('measured times', () => {
  const kind = callClass('chat', true, 100)
  const measure = ({ measurements, health }: SharedState, world: { at: number }, ms: number) => {
    const entered = health.enter(target)
    if (!entered) throw new Error('no passage')
    const passage = measurements.begin(target, { kind, limitMs: 60_000 }, entered)
    world.at += ms
    passage.succeeded()
    world.at += 100
    passage.produced?.(10)
    passage.ended()
  }
  const known = ({ measurements }: SharedState) => {
    const speed = measurements.of(target)
    return [speed.toContent(kind), speed.perToken(kind)].map((gauge) => gauge.estimate(measurements.now()))
  }

  test('reach the others: the slowest at once, then what follows little by little', () => {
    const { world, one, two, deliver, newcomer } = twoLoops()
    measure(one, world, 200)
    deliver()
    expect(known(two)).toEqual([200, 10])
    measure(one, world, 900)
    measure(one, world, 200)
    deliver()
    expect(known(two)[0]).toBeGreaterThanOrEqual(900)
    for (let second = 0; second < 60; second++) {
      world.at += 1_000
      measure(one, world, 200)
      deliver()
    }
    expect(known(two)[0]).toBeLessThan(300)
    expect(known(newcomer(two))).toEqual(known(two))
  })

  test('are told once, and not back to whom they came from', () => {
    const { world, one, deliver } = twoLoops()
    for (let call = 0; call < 10; call++) measure(one, world, 200)
    deliver()
    deliver()
    expect(world.told).toBe(2)
  })
})

test('all threads measure times by the monotonic clock of the system', () => {
  const systemMs = () => Number(process.hrtime.bigint()) / 1e6
  expect(performance.now()).toBeGreaterThan(200)
  expect(Math.abs(sharedClock() - systemMs())).toBeLessThan(200)
})
