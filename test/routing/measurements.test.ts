import { describe, expect, test } from 'vitest'
import { type ErrorCode, RouterError } from '../../src/core/errors.ts'
import type { Target } from '../../src/manifest/target.ts'
import type { AttemptHandle } from '../../src/routing/health/health.ts'
import { callClass, Gauge, Measurements } from '../../src/routing/measurements.ts'

const target = { provider: { slug: 'maker' }, model: 'm' } as unknown as Target
const id = 'maker/m'
const streamed = callClass('chat', true, 100)
const whole = callClass('chat', false, 100)

/** Measurements under a clock that is moved by hand, and attempts of so many milliseconds. */
function underClock() {
  const clock = { at: 0 }
  const measurements = new Measurements({ now: () => clock.at, isShared: true })
  const heard: string[] = []
  const passage: AttemptHandle = {
    succeeded: () => void heard.push('succeeded'),
    failed: ({ code }) => void heard.push(code),
    ended: () => void heard.push('ended'),
  }
  const begin = (kind = streamed, limitMs = 10_000) => measurements.begin(target, { kind, limitMs }, passage)
  const speed = measurements.of(target)
  const known = (kind = streamed) => [speed.toContent(kind), speed.perToken(kind)].map((one) => one.estimate(clock.at))
  const failure = (code: ErrorCode) => new RouterError(code, 'No.', { provider: 'maker' })
  return { clock, measurements, begin, speed, known, heard, failure }
}

describe('what an event loop has measured', () => {
  test('is one finding of each gauge since the last time: how often, the largest, the mean and when', () => {
    const { measurements } = underClock()
    for (const [value, at] of [
      [100, 1],
      [700, 2],
      [100, 3],
      [300, 4],
    ] as const) {
      measurements.add(id, 'content', value, at)
    }
    measurements.add(id, 'token', 5, 3)
    expect(measurements.takeFindings()).toEqual([
      { kind: 'speed', target: id, gauge: 'content', at: 4, count: 4, most: 700, mean: 300 },
      { kind: 'speed', target: id, gauge: 'token', at: 3, count: 1, most: 5, mean: 5 },
    ])
    expect(measurements.takeFindings()).toEqual([])
    measurements.add(id, 'content', 200, 9)
    expect(measurements.takeFindings()).toEqual([
      { kind: 'speed', target: id, gauge: 'content', at: 9, count: 1, most: 200, mean: 200 },
    ])
  })

  test('is kept for nobody where nobody asks', () => {
    const measurements = new Measurements({ now: () => 0 })
    measurements.add(id, 'content', 100, 1)
    expect(measurements.takeFindings()).toEqual([])
    expect(measurements.findings()).toMatchObject([{ gauge: 'content', most: 100 }])
  })
})

describe('an attempt', () => {
  test('is under way until its call has ended, however often that is told', () => {
    const { begin, speed } = underClock()
    for (let round = 0; round < 3; round++) {
      const passages = [begin(), begin()]
      expect(speed.underWay).toBe(2)
      passages[0]?.ended()
      passages[0]?.ended()
      expect(speed.underWay).toBe(1)
      passages[1]?.ended()
      expect(speed.underWay).toBe(0)
    }
  })

  test('that streams has the time to its first content, and that of each token after it', () => {
    const { clock, begin, known, heard } = underClock()
    const passage = begin()
    clock.at = 300
    passage.succeeded()
    clock.at = 800
    passage.produced?.(50)
    passage.ended()
    expect(known()).toEqual([300, 10])
    expect(heard).toEqual(['succeeded', 'ended'])
  })

  test('that answers at once has the time of the whole for its tokens, and one without tokens none', () => {
    const { clock, begin, known } = underClock()
    const empty = begin(whole)
    clock.at = 200
    empty.succeeded()
    empty.produced?.(0)
    expect(known(whole)).toEqual([200, Infinity])
    const passage = begin(whole)
    clock.at = 700
    passage.succeeded()
    passage.produced?.(100)
    expect(known(whole)).toEqual([500, 5])
  })

  test('tells how fast its model writes, thinking and waiting included, if it is long and was counted', () => {
    const { clock, begin, measurements } = underClock()
    const answer = (tokens: number, isEstimated: boolean) => {
      const handle = begin()
      clock.at += 1_000
      handle.succeeded()
      clock.at += 1_000
      handle.produced?.(tokens, isEstimated)
      handle.ended()
    }
    answer(100, false)
    answer(10_000, true)
    expect(measurements.tokensPerSecond(target)).toBeUndefined()
    answer(400, false)
    expect(measurements.tokensPerSecond(target)).toBe(200)
  })

  test('takes a millisecond at least for its tokens', () => {
    const { begin, known } = underClock()
    const passage = begin()
    passage.succeeded()
    passage.produced?.(4)
    expect(known()[1]).toBe(0.25)
  })

  test('that fails counts as if it had taken its whole time', () => {
    const { clock, begin, known, failure } = underClock()
    const passage = begin(streamed, 10_000)
    clock.at = 5
    passage.failed(failure('provider_failed'))
    expect(known()).toEqual([10_000, 10_000])
    const longer = begin(streamed, 1_000)
    clock.at = 20_000
    longer.failed(failure('provider_failed'))
    expect(known()[0]).toBe(19_995)
  })

  test('that breaks off after its first content says nothing new of the time until then', () => {
    const { clock, begin, known, failure } = underClock()
    const passage = begin()
    clock.at = 100
    passage.succeeded()
    clock.at = 400
    passage.failed(failure('provider_cut'))
    expect(known()).toEqual([100, 10_000])
  })

  test('at a busy target says nothing, unless it has waited longer than usual', () => {
    const { clock, begin, known, failure } = underClock()
    const never = begin()
    clock.at = 50
    never.failed(failure('rate_limited'))
    expect(known()).toEqual([Infinity, Infinity])
    const usual = begin()
    clock.at = 250
    usual.succeeded()
    for (const [ms, expected] of [
      [100, 200],
      [500, 500],
    ] as const) {
      const busy = begin()
      clock.at += ms
      busy.failed(failure('rate_limited'))
      expect(known()[0]).toBe(expected)
    }
  })
})

test('calls are compared with those whose input has a size of the same class', () => {
  const sizes = [1, 1_000, 1_001, 4_000, 4_001, 16_000, 64_000, 64_001, 1e9]
  const names = sizes.map((tokens) => callClass('chat', true, tokens).toContent.replace('chat streamed ', ''))
  expect(names).toEqual(['0', '0', '1', '1', '2', '2', '3', '4', '4'])
  expect(callClass('embeddings', false, 5)).toEqual({
    toContent: 'embeddings whole 0',
    perToken: 'whole',
    streams: false,
  })
})

describe('a gauge', () => {
  const halfLife = 10_000

  test('rises at once and falls by half within its half-life', () => {
    const gauge = new Gauge()
    expect(gauge.estimate(0)).toBe(Infinity)
    gauge.add(100, 0)
    gauge.add(900, 1)
    expect(gauge.estimate(1)).toBe(900)
    gauge.add(100, 1 + halfLife)
    expect(gauge.estimate(1 + halfLife)).toBe(500)
    expect(gauge.count).toBe(3)
  })

  test('falls while nothing is measured, but only as often as it was passed over since', () => {
    const gauge = new Gauge()
    const passOver = (times: number) => {
      for (let time = 0; time < times; time++) gauge.passOver()
    }
    gauge.add(800, 0)
    expect(gauge.estimate(100 * halfLife)).toBe(800)
    passOver(10)
    expect(gauge.estimate(100 * halfLife)).toBe(400)
    passOver(1_000)
    expect(gauge.estimate(2 * halfLife)).toBe(200)
    for (let round = 1; round <= 3; round++) {
      const at = round * 1_000 * halfLife
      gauge.add(800, at)
      expect(gauge.estimate(at + 100 * halfLife)).toBe(800)
      passOver(20)
      expect(gauge.estimate(at + 100 * halfLife)).toBe(200)
    }
  })

  test('takes what is older than what it knows as measured at the same time', () => {
    const gauge = new Gauge()
    gauge.add(100, 5_000)
    gauge.addSeveral({ at: 1_000, count: 4, most: 60, mean: 50 })
    expect([gauge.count, gauge.estimate(5_000), gauge.measured.at]).toEqual([5, 100, 5_000])
    gauge.addSeveral({ at: 5_000 + halfLife, count: 2, most: 60, mean: 50 })
    expect(gauge.measured).toEqual({ at: 5_000 + halfLife, count: 7, most: 75, mean: 75 })
  })
})
