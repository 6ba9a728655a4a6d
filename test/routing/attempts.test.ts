import { describe, expect, test, vi } from 'vitest'
import { type ErrorCode, type ErrorDetails, RouterError } from '../../src/core/errors.ts'
import { defaultHealth, defaultRouting, type RoutingRules } from '../../src/core/routing/rules.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import type { Target } from '../../src/manifest/target.ts'
import { Affinity } from '../../src/routing/affinity.ts'
import { tryTargets } from '../../src/routing/attempts.ts'
import { ConcurrencyLimiters } from '../../src/routing/health/concurrency-limiter.ts'
import { Health } from '../../src/routing/health/health.ts'
import { RetryBudget } from '../../src/routing/health/retries.ts'
import { callClass, Measurements } from '../../src/routing/measurements.ts'
import type { Targets } from '../../src/routing/names/resolve.ts'
import type { AttemptLimits, RoutingState, UnseenUsage } from '../../src/routing/types.ts'

const minutes = {
  connectMs: 10_000,
  firstEventMs: 600_000,
  betweenEventsMs: 60_000,
  wholeMs: 600_000,
  totalMs: 600_000,
}
const named = (slug: string): Target => ({
  provider: { slug, baseUrl: `https://${slug}.example`, auth: { scheme: 'none' }, timeouts: minutes } as Provider,
  model: 'm',
})
const [a, b, c] = [named('a'), named('b'), named('c')]

/** State whose backoff is nothing and whose clock is moved by hand, and by waits. */
function fresh(): RoutingState & { at: number } {
  const state = { at: 0, random: () => 0, now: () => state.at } as RoutingState & { at: number }
  state.pause = async (ms) => {
    state.at += ms
  }
  state.retries = new RetryBudget({ now: () => state.at })
  state.limiters = new ConcurrencyLimiters()
  state.measurements = new Measurements({ now: () => state.at })
  state.affinity = new Affinity({ now: () => state.at })
  state.health = new Health({ settings: () => defaultHealth, now: () => state.at, random: () => 0.5 })
  return state
}

type End = ErrorCode | [ErrorCode, ErrorDetails & { sent?: boolean }] | undefined

type Options = {
  rules?: Partial<RoutingRules>
  acts?: boolean
  targets?: [Target, ...Target[]]
  able?: readonly string[]
  organization?: string
}

/** One call to targets that end like this, one after the other, or succeed where nothing is left. */
async function call(
  ends: readonly End[],
  { rules, acts, targets = [a, b, c], able = [], organization = 'o' }: Options = {},
  state = fresh(),
) {
  const requested: string[] = []
  const limits: AttemptLimits[] = []
  const moved: string[] = []
  const result = await tryTargets<{ dropped: string[]; error?: RouterError; sent?: boolean }>(
    {
      targets,
      rules: { ...defaultRouting, ...rules },
      signal: new AbortController().signal,
      caller: { organization, key: 'k', isLow: false },
      ...(acts && { acts }),
      async attempt({ provider: { slug } }, limit) {
        const end = ends[requested.length]
        requested.push(slug)
        limits.push(limit)
        const [code, { sent = true, ...details }] = Array.isArray(end) ? end : [end, {} as { sent?: boolean }]
        if (code === undefined) return { dropped: [`${slug}'s`] }
        // A busy provider refuses by a status, before it has begun.
        const refused = code === 'rate_limited' && { providerStatus: 429 }
        const error = new RouterError(code, `${slug} failed.`, { provider: slug, ...refused, ...details })
        return { dropped: [`${slug}'s`], error, sent }
      },
      onFailed: ({ target, error }) => moved.push(`${target.provider.slug} ${error.code}`),
      canTake: (other) => able.includes(other.provider.slug),
    },
    state,
  )
  return { requested: requested.join(' '), limits, moved, result, state }
}

/** Targets that are asked once. */
const failing = (...targets: [Target, ...Target[]]): Options => ({ targets, rules: { retries: 0 } })

describe('the table of failures', () => {
  const twice = (code: ErrorCode): End[] => [code, code]
  const all = (code: ErrorCode, times = 6): End[] => Array(times).fill(code)
  const cases: [code: ErrorCode, asked: string, told: string, end?: Options][] = [
    ['provider_unreachable', 'a b c a b c', 'provider_unreachable'],
    ['provider_failed', 'a b c a b c', 'provider_failed'],
    ['provider_overloaded', 'a b c a b c', 'provider_overloaded'],
    ['provider_unreadable', 'a b c a b c', 'provider_unreadable'],
    ['provider_cut', 'a b c a b c', 'provider_cut'],
    ['provider_timeout', 'a b c', 'provider_timeout'],
    ['provider_refused', 'a b c', 'provider_refused'],
    ['quota_exhausted', 'a b c', 'quota_exhausted'],
    ['model_not_found', 'a b c', 'model_not_found'],
    ['context_length', 'a', 'context_length'],
    ['context_length', 'a c', 'context_length', { able: ['c'] }],
    ['too_large', 'a c', 'too_large', { able: ['c'] }],
    ['content_blocked', 'a', 'content_blocked'],
    ['content_blocked', 'a b c', 'content_blocked', { rules: { onBlocked: 'next' } }],
    ['invalid_request', 'a', 'invalid_request'],
    ['invalid_request', 'a b', 'invalid_request', { able: ['b'] }],
    ['loss_refused', 'a b c', 'loss_refused'],
    ['budget_exhausted', 'a', 'budget_exhausted'],
    ['client_gone', 'a', 'client_gone'],
    ['stopping', 'a', 'stopping'],
  ]
  test.each(cases)('%s asks %s', async (code, asked, told, options) => {
    const { requested, result } = await call(all(code), options)
    expect(requested).toBe(asked)
    expect(result.error?.code).toBe(told)
    expect(result.error?.attempts?.length ?? 1).toBe(asked.split(' ').length)
  })

  test('a target that is busy is left at once, and asked again only when no other is open', async () => {
    const busy: End = ['rate_limited', { retryAfterMs: 20 }]
    expect((await call([busy, undefined])).requested).toBe('a b')
    expect((await call([busy, 'invalid_request', undefined])).requested).toBe('a b a')
    const again = await call([busy, 'invalid_request'], { rules: { retries: 0 } })
    expect(again).toMatchObject({ requested: 'a b', result: { error: { code: 'rate_limited', retryAfterMs: 20 } } })
    const alone = await call([busy, undefined], { targets: [a] })
    expect(alone.requested).toBe('a a')
    expect(alone.result.error).toBeUndefined()
    const long = await call([['rate_limited', { retryAfterMs: 6_000 }]], { targets: [a] })
    expect(long).toMatchObject({ requested: 'a', result: { error: { code: 'rate_limited' } } })
  })

  test('retries are as many as the rules say, and never more than six attempts are made', async () => {
    expect((await call(all('provider_failed'), { rules: { retries: 0 } })).requested).toBe('a b c')
    expect((await call(all('provider_failed', 9), { rules: { retries: 9 } })).requested).toBe('a b c a b c')
    expect((await call(twice('provider_failed'), { targets: [a] })).requested).toBe('a a')
  })

  test('a busy target that names a short time again and again is asked as often as the rules say', async () => {
    const busy: End = ['rate_limited', { retryAfterMs: 20 }]
    for (const retries of [0, 1, 3]) {
      const { requested, result } = await call(Array(9).fill(busy), { rules: { retries }, targets: [a] })
      expect(requested.split(' ')).toHaveLength(1 + retries)
      expect(result.error?.code).toBe('rate_limited')
    }
  })

  test('each target is asked once before any is asked again', async () => {
    const four = [a, b, c, named('d')] as const
    const { requested, result } = await call([...all('provider_overloaded', 3), undefined], { targets: [...four] })
    expect(requested).toBe('a b c d')
    expect(result.error).toBeUndefined()
    expect((await call(all('provider_unreachable', 2), { targets: [a, b] })).requested).toBe('a b a')
  })

  test('a target that has failed is asked again although the next one refused the request', async () => {
    expect((await call(['provider_failed', 'invalid_request'], { targets: [a, b] })).requested).toBe('a b a')
  })

  test('an attempt that was billed is not made again at the same target, and moves on to the next once', async () => {
    const billed: End = ['provider_cut', { billed: { output: 40 } }]
    expect((await call(Array(6).fill(billed), { targets: [a] })).requested).toBe('a')
    const { requested, moved, result } = await call(Array(6).fill(billed))
    expect(requested).toBe('a b')
    // Each has a row of its own, so that the row of the call has nothing left to charge.
    expect([moved, result.error?.billed]).toEqual([['a provider_cut', 'b provider_cut'], undefined])
    expect((await call(['provider_failed', billed, billed])).requested).toBe('a b c')
  })

  test('what a provider may have done for the caller is asked again only where it cannot have begun', async () => {
    expect((await call(all('provider_failed'), { acts: true })).requested).toBe('a')
    expect((await call(all('provider_timeout'), { acts: true })).requested).toBe('a')
    expect((await call([['provider_unreachable', { sent: false }], undefined], { acts: true })).requested).toBe('a b')
    expect((await call(['rate_limited', undefined], { acts: true })).requested).toBe('a b')
    const inside: End = ['rate_limited', { providerStatus: undefined }]
    expect((await call([inside, undefined], { acts: true })).requested).toBe('a')
  })
})

describe('what is told', () => {
  test('is the failure of the first target, with all attempts; a refusal by a fallback does not hide it', async () => {
    const { result, moved } = await call(['provider_failed', 'invalid_request', 'provider_failed'], { targets: [a, b] })
    expect(result).toMatchObject({ target: a, attempts: 3, dropped: ["a's"], error: { code: 'provider_failed' } })
    expect(result.error?.attempts).toEqual([
      { model: 'a/m', status: 502, code: 'provider_failed', message: 'a failed.' },
      { model: 'b/m', status: 400, code: 'invalid_request', message: 'b failed.' },
      { model: 'a/m', status: 502, code: 'provider_failed', message: 'a failed.' },
    ])
    expect(moved).toEqual(['a provider_failed', 'b invalid_request'])
  })

  test('is the busy target that is free soonest', async () => {
    const busy = (ms: number): End => ['rate_limited', { retryAfterMs: ms }]
    const { result } = await call(['provider_timeout', busy(30_000), busy(9_000)])
    expect(result.error).toMatchObject({ code: 'rate_limited', message: 'c failed.', retryAfterMs: 9_000 })
  })

  test('a recovery that does not fit the budget is not told', async () => {
    const own = new RouterError('budget_exhausted', 'Too much.')
    const state = fresh()
    let asked = 0
    const result = await tryTargets<{ dropped: string[]; error?: RouterError }>(
      {
        targets: [a, b],
        rules: { ...defaultRouting, retries: 0 },
        signal: new AbortController().signal,
        caller: { organization: 'o', key: 'k', isLow: false },
        attempt: async () => ({
          dropped: [],
          error: asked++ === 0 ? new RouterError('provider_failed', 'It failed.', { provider: 'a' }) : own,
        }),
        onFailed() {},
      },
      state,
    )
    expect(result.error?.code).toBe('provider_failed')
  })

  test('is of the target that it names, with what that one used if nobody has heard of it yet', async () => {
    const billed = { input: 3 }
    const last = await call(['provider_timeout', ['provider_timeout', { billed }]], { targets: [a, b] })
    expect(last.result).toMatchObject({ target: a, hasRows: true, error: { message: 'a failed.', billed: undefined } })
    expect(last.moved).toEqual(['a provider_timeout', 'b provider_timeout'])
    const busy: End = ['rate_limited', { retryAfterMs: 9_000, billed }]
    const told = await call(['provider_timeout', busy], { targets: [a, b] })
    expect(told.result).toMatchObject({ target: b, hasRows: false, error: { message: 'b failed.', billed } })
    expect(told.moved).toEqual(['a provider_timeout'])
  })

  test('each attempt is heard of once, also where the next target takes no calls meanwhile', async () => {
    const state = fresh()
    for (let failures = 0; failures < 5; failures++) await call(['provider_failed'], failing(b), state)
    state.at += 6_000
    while (state.health.enterAsLastResort(b, 'o'));
    const { requested, moved, result } = await call(['provider_failed'], failing(a, b), state)
    expect({ requested, moved }).toEqual({ requested: 'a', moved: ['a provider_failed'] })
    expect(result).toMatchObject({ target: b, attempts: 1, hasRows: true, error: { code: 'unavailable' } })
    expect(result.times).toBeUndefined()
  })

  test('tells when the attempt began and ended', async () => {
    const state = fresh()
    state.at = 70
    const { result } = await call(['provider_timeout'], { targets: [a] }, state)
    expect(result).toMatchObject({ hasRows: false, times: { began: 70, ended: 70 } })
  })
})

describe('whether the client may try again', () => {
  const told = async (ends: readonly End[], options: Options) => (await call(ends, options)).result.error
  const all = (end: End): End[] => Array(6).fill(end)

  test('it may after every failure that may pass, also where the failure of another target lasts', async () => {
    for (const code of ['provider_failed', 'provider_timeout', 'provider_cut', 'provider_unreachable'] as const)
      expect((await told(all(code), { targets: [a] }))?.mayBeRetried).toBe(true)
    const billed = await told([['provider_unreadable', { billed: { input: 9 } }]], { targets: [a] })
    expect(billed?.mayBeRetried).toBe(true)
    const ends: End[] = ['provider_refused', 'provider_failed', 'provider_failed']
    expect(await told(ends, { targets: [a, b] })).toMatchObject({ code: 'provider_failed', mayBeRetried: true })
    const long: End = ['rate_limited', { retryAfterMs: 61_000 }]
    expect(await told([long, 'provider_timeout'], { targets: [a, b] })).toMatchObject({ code: 'provider_timeout' })
    expect((await told([long, 'provider_refused'], { targets: [a, b] }))?.mayBeRetried).toBe(false)
  })

  test('it may not once a provider may have begun to act for it, whichever failure is reported', async () => {
    for (const code of ['provider_failed', 'provider_timeout', 'provider_unreachable', 'provider_cut'] as const) {
      expect((await told([code], { targets: [a], acts: true }))?.mayBeRetried).toBe(false)
      expect((await told(all([code, { sent: false }]), { targets: [a], acts: true }))?.mayBeRetried).toBe(true)
    }
    const busy: End = ['rate_limited', { retryAfterMs: 9_000 }]
    expect(await told([busy, 'provider_failed'], { targets: [a, b], acts: true })).toMatchObject({
      code: 'rate_limited',
      mayBeRetried: false,
    })
    expect((await told([busy], { targets: [a], acts: true }))?.mayBeRetried).toBe(true)
  })
})

describe('time', () => {
  /** Calls whose targets never answer, with so much time; the state has what they have found out. */
  async function silent(
    rules: Partial<RoutingRules>,
    { streams = false, calls = 1, targets = [a, b] }: { streams?: boolean; calls?: number; targets?: Targets } = {},
  ) {
    const state = fresh()
    const waited: number[] = []
    for (let at = 0; at < calls; at++) {
      const name = streams ? 'firstEventMs' : 'wholeMs'
      await tryTargets<{ dropped: string[]; error: RouterError }>(
        {
          targets,
          rules: { ...defaultRouting, ...rules },
          signal: new AbortController().signal,
          caller: { organization: 'o', key: 'k', isLow: false },
          kind: callClass('chat', streams, 10),
          onFailed() {},
          async attempt({ provider }, limits) {
            const ms = Math.min(provider.timeouts[name], limits[name] ?? Infinity, limits.totalMs ?? Infinity)
            waited.push(ms)
            state.at += ms
            const error = new RouterError('provider_timeout', 'It is silent.', { provider: provider.slug })
            return { dropped: [], error, sent: true }
          },
        },
        state,
      )
    }
    return { waited, state }
  }

  test('a silent target leaves the next one a minute, or an equal share of what there is', async () => {
    expect((await silent({})).waited).toEqual([540_000, 600_000])
    expect((await silent({ totalMs: 300_000 })).waited).toEqual([240_000, 60_000])
    expect((await silent({ totalMs: 2_000 })).waited).toEqual([1_000, 1_000])
    expect((await silent({ totalMs: 300_000 }, { targets: [a, b, c] })).waited).toEqual([180_000, 60_000, 60_000])
  })

  test('the first content of a stream is waited for no longer than its rule says, and no longer than its share', async () => {
    expect((await silent({}, { streams: true })).waited).toEqual([10_000, 600_000])
    expect((await silent({ totalMs: 4_000 }, { streams: true })).waited).toEqual([2_000, 2_000])
  })

  test('silence counts against a target, unless the caller has left it too little time', async () => {
    const { state } = await silent({ totalMs: 300_000 }, { calls: 5 })
    expect(state.health.isOpen(a, false)).toBe(false)
    for (const streams of [false, true]) {
      const hurried = await silent({ totalMs: 4_000, isTotalOfCaller: true }, { calls: 20, streams })
      expect(hurried.waited).toHaveLength(40)
      expect(hurried.state.health.degraded()).toEqual([])
    }
  })

  test('the first content is waited for only while another target is left', async () => {
    const { limits } = await call(['provider_timeout', 'provider_timeout', undefined])
    expect(limits).toEqual([{ firstEventMs: 10_000, wholeMs: 480_000 }, { firstEventMs: 10_000, wholeMs: 540_000 }, {}])
    const closed = fresh()
    for (const _ of Array(5)) closed.health.enter(b)?.failed(new RouterError('provider_failed', 'x', { provider: 'b' }))
    expect((await call([undefined], { targets: [a, b] }, closed)).limits).toEqual([{}])
  })

  test('the last attempt that a call may make takes all the time, although another target is left', async () => {
    const targets = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map(named) as [Target, ...Target[]]
    const { requested, limits } = await call(Array(7).fill('provider_timeout'), { targets })
    expect(requested).toBe('a b c d e f')
    expect(limits.map(({ firstEventMs }) => firstEventMs)).toEqual([...Array(5).fill(10_000), undefined])
    expect(limits.map(({ wholeMs }) => wholeMs)).toEqual([300_000, 360_000, 420_000, 480_000, 540_000, undefined])
  })

  test('attempts get what is left of the time of the call, and none is begun without', async () => {
    const state = fresh()
    const trial = {
      targets: [a, b, c] as const,
      rules: { ...defaultRouting, totalMs: 1_000 },
      signal: new AbortController().signal,
      caller: { organization: 'o', key: 'k', isLow: false },
      onFailed() {},
    }
    const limits: AttemptLimits[] = []
    const result = await tryTargets<{ dropped: string[]; error: RouterError }>(
      {
        ...trial,
        async attempt(_, limit) {
          limits.push(limit)
          state.at += 600
          return { dropped: [], error: new RouterError('provider_timeout', 'It failed.', { provider: 'a' }) }
        },
      },
      state,
    )
    expect(limits).toEqual([
      { firstEventMs: 334, wholeMs: 334, totalMs: 1_000 },
      { firstEventMs: 200, wholeMs: 200, totalMs: 400 },
    ])
    expect(result).toMatchObject({ attempts: 2, error: { code: 'provider_timeout' } })
  })
})

test('a call whose own time is up says nothing of its target', async () => {
  const state = fresh()
  for (let at = 0; at < 20; at++) {
    const result = await tryTargets<{ dropped: string[]; error: RouterError }>(
      {
        targets: [a, b],
        rules: { ...defaultRouting, totalMs: 1 },
        signal: new AbortController().signal,
        caller: { organization: 'o', key: 'k', isLow: false },
        onFailed() {},
        async attempt() {
          state.at += 1
          return { dropped: [], error: new RouterError('provider_timeout', 'It failed.', { provider: 'a' }) }
        },
      },
      state,
    )
    expect(result.attempts).toBe(1)
  }
  expect(state.health.degraded()).toEqual([])
})

describe('health', () => {
  test('a target that failed five times in a row is passed over, and tried again after its time', async () => {
    const state = fresh()
    const rules = { retries: 0 }
    for (const _ of Array(5)) await call(['provider_failed'], { rules, targets: [a, b] }, state)
    expect((await call([], { targets: [a, b] }, state)).requested).toBe('b')
    state.at += 5_001
    expect((await call([], { targets: [a, b] }, state)).requested).toBe('a')
    expect((await call([], { targets: [a, b] }, state)).requested).toBe('a')
  })

  describe('an attempt whose client has left, and whose answer is read on', () => {
    const limited: Target = { ...a, provider: { ...a.provider, limits: { concurrent: 1, queue: 0 } } }
    /** One call that has been left, and the end of its reading. */
    async function left(state: RoutingState) {
      const rest = Promise.withResolvers<UnseenUsage>()
      const { error } = await tryTargets(
        {
          targets: [limited],
          rules: defaultRouting,
          signal: new AbortController().signal,
          caller: { organization: 'o', key: 'k', isLow: false },
          attempt: async () => ({
            ...{ dropped: [], sent: true, rest: rest.promise },
            error: new RouterError('client_gone', 'The client disconnected.'),
          }),
          onFailed() {},
        },
        state,
      )
      expect(error?.code).toBe('client_gone')
      return () => rest.resolve({ billed: undefined, served: undefined })
    }

    test('keeps its place at the target until it has been read', async () => {
      const state = fresh()
      const end = await left(state)
      expect(state.limiters.of(limited)?.running).toBe(1)
      expect((await call([], failing(limited, b), state)).requested).toBe('b')
      end()
      await vi.waitFor(() => expect(state.limiters.of(limited)?.running).toBe(0))
      expect((await call([], failing(limited, b), state)).requested).toBe('a')
    })

    test('is no trial any more after an outage: the next call may try the target', async () => {
      const state = fresh()
      for (const _ of Array(5)) await call(['provider_failed'], failing(a, b), state)
      state.at += 5_001
      await left(state)
      expect(state.health.degraded()).toMatchObject([{ state: 'half_open' }])
      expect((await call([], failing(a, b), state)).requested).toBe('a')
    })
  })

  test('a trial after an outage that takes long lets the others pass, and as a success brings the target back', async () => {
    const state = fresh()
    for (const _ of Array(5)) await call(['provider_failed'], failing(a, b), state)
    state.at += 5_001
    const trial = state.health.enter(a, 'o')
    expect((await call([], failing(a, b), state)).requested).toBe('b')
    trial?.succeeded()
    expect((await call([], failing(a, b), state)).requested).toBe('a')
    expect(state.health.degraded()).toMatchObject([{ state: 'recovering' }])
    trial?.ended()
    expect(state.health.degraded()).toMatchObject([{ state: 'recovering' }])
  })

  test('a target that another call was faster to try is asked after the others, when nothing else is left', async () => {
    const state = fresh()
    const enter = state.health.enter.bind(state.health)
    let races = 0
    state.health.enter = (target, caller) => (target === a && races++ === 0 ? undefined : enter(target, caller))
    expect((await call(['provider_failed'], failing(a, b), state)).requested).toBe('b a')
    expect(races).toBe(2)
    // Nor is it asked without end where others are always faster.
    state.health.enter = (target, caller) => (target === a ? undefined : enter(target, caller))
    expect((await call(['provider_failed', 'provider_failed'], failing(a, b), state)).requested).toBe('b a')
  })

  test('a target that is down and the only one takes a few calls at once, then some in each second; others are told when', async () => {
    const state = fresh()
    const asked = async () =>
      (await call(['provider_failed'], { rules: { retries: 0 }, targets: [a] }, state)).requested
    for (let at = 0; at < 5; at++) expect(await asked()).toBe('a')
    for (let at = 0; at < 5; at++) expect(await asked()).toBe('a')
    const other = await call([], { targets: [a] }, state)
    expect(other).toMatchObject({ requested: '', result: { attempts: 0, error: { status: 503, retryAfterMs: 1_000 } } })
    for (let second = 0; second < 10; second++) {
      state.at += 1_000
      const found = [await asked(), await asked(), await asked(), await asked()]
      // Two and a half.
      expect(found.filter((one) => one === 'a')).toHaveLength(second % 2 === 0 ? 2 : 3)
    }
  })

  test('a call that has no other target is asked again as often as the rules say, unless the target is down', async () => {
    const state = fresh()
    const rules = { retries: 1 }
    // It fails more often than not, so that its circuit opens, but not always.
    for (let at = 0; at < 3; at++) await call(['provider_failed', 'provider_failed'], { rules, targets: [a] }, state)
    await call([undefined], { rules, targets: [a] }, state)
    await call(['provider_failed'], { rules: { retries: 0 }, targets: [a] }, state)
    state.at += 10_000
    expect(state.health.isOpen(a, false)).toBe(false)
    expect((await call(['provider_failed'], { rules, targets: [a] }, state)).requested).toBe('a a')
    for (let at = 0; at < 5; at++) await call(['provider_failed'], { rules: { retries: 0 }, targets: [a] }, state)
    expect((await call(['provider_failed'], { rules, targets: [a] }, state)).requested).toBe('a')
  })

  test('a busy target that is busy again when a call has waited is waited for once more, within the time for that', async () => {
    const state = fresh()
    state.pause = async (ms) => {
      state.at += ms
      if (state.at < 4_000) state.health.exhausted(a, 1_000)
    }
    await call([['rate_limited', { retryAfterMs: 1_000 }]], { rules: { retries: 0 }, targets: [a] }, state)
    for (let at = 0; at < 5; at++) state.health.enterAsLastResort(a, 'o')
    const { requested } = await call([undefined], { targets: [a] }, state)
    expect([requested, state.at]).toEqual(['a', 4_000])
  })

  const scopes: [code: ErrorCode, details: ErrorDetails, times: number, open: string[]][] = [
    ['provider_unreachable', {}, 5, ['elsewhere']],
    ['provider_failed', {}, 5, ['another key', 'another model', 'elsewhere']],
    ['provider_timeout', {}, 5, ['another key', 'another model', 'elsewhere']],
    ['rate_limited', { retryAfterMs: 1_000 }, 1, ['another key', 'another model', 'elsewhere']],
    ['provider_refused', {}, 1, ['another key', 'elsewhere']],
    ['quota_exhausted', {}, 1, ['another key', 'elsewhere']],
    ['provider_refused', { concernsModel: true }, 1, ['another key', 'another model', 'elsewhere']],
    ['model_not_found', {}, 1, ['another key', 'another model', 'elsewhere']],
    ['invalid_request', {}, 9, ['it', 'another key', 'another model', 'elsewhere']],
    ['context_length', {}, 9, ['it', 'another key', 'another model', 'elsewhere']],
    ['content_blocked', {}, 9, ['it', 'another key', 'another model', 'elsewhere']],
    ['budget_exhausted', {}, 9, ['it', 'another key', 'another model', 'elsewhere']],
    ['client_gone', {}, 9, ['it', 'another key', 'another model', 'elsewhere']],
  ]
  test.each(scopes)('%s %o, %i times, leaves open what it does not concern', async (code, details, times, open) => {
    const state = fresh()
    const targets = {
      it: a,
      'another key': { ...a, provider: { ...a.provider, slug: 'a2' } },
      'another model': { ...a, model: 'm2' },
      elsewhere: b,
    }
    const rules = { retries: 0 }
    for (let time = 0; time < times; time++) await call([[code, details]], { targets: [a], rules }, state)
    const found = Object.entries(targets).filter(([, target]) => state.health.isOpen(target, true))
    expect(found.map(([name]) => name)).toEqual(open)
  })

  test('retries of one target are bounded for all calls together, and earned by first attempts', async () => {
    const state = fresh()
    state.health = new Health({ settings: () => ({ ...defaultHealth, inARow: 1_000, of: 1_000 }) })
    const once = async (organization = 'o') =>
      (await call(['provider_failed', 'provider_failed'], { targets: [a], organization }, state)).requested
    const asked = []
    for (let at = 0; at < 29; at++) asked.push(await once())
    // Ten are saved, and each call earns a fifth of one.
    expect(asked.filter((one) => one === 'a a')).toHaveLength(15)
    // Nobody uses up those of another organization.
    expect(await once()).toBe('a')
    expect(await once('other')).toBe('a a')
  })
})
