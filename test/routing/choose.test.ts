import { describe, expect, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import { defaultHealth, type RoutingRules } from '../../src/core/routing/rules.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { type Target, targetId } from '../../src/manifest/target.ts'
import { Affinity } from '../../src/routing/affinity.ts'
import { type Choosing, chooseTargets } from '../../src/routing/choose.ts'
import type { Explanation } from '../../src/routing/explanation.ts'
import { Health } from '../../src/routing/health/health.ts'
import { callClass, Measurements } from '../../src/routing/measurements.ts'
import type { Targets } from '../../src/routing/names/resolve.ts'

const named = (slug: string): Target => ({
  provider: { slug, baseUrl: `https://${slug}.example`, auth: { scheme: 'none' } } as Provider,
  model: 'm',
})
const [a, b, c] = [named('a'), named('b'), named('c')]
const chat = callClass('chat', true, 100)

/** Numbers that look random and are the same in every run. */
function seeded(seed = 1): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

function world(seed?: number) {
  const clock = { at: 0 }
  const now = () => clock.at
  return {
    clock,
    random: seeded(seed),
    health: new Health({ settings: () => defaultHealth, now, random: () => 0.5 }),
    measurements: new Measurements({ now }),
    affinity: new Affinity({ now }),
  }
}
type World = ReturnType<typeof world>

type Options = Omit<Partial<Choosing>, 'rules'> & { targets?: Targets } & Partial<RoutingRules>

function chosen(state: World, { targets = [a, b], sort = 'order', sticky = 'none', ...choosing }: Options) {
  return chooseTargets(targets, { rules: { sort, sticky }, kind: chat, costAt: () => undefined, ...choosing }, state)
}

const order = (state: World, options: Options) =>
  chosen(state, options)
    .targets.map(({ provider }) => provider.slug)
    .join(' ')

/** Begins a call where it is sent; the result ends it after so long, with so many tokens or a failure. */
function begin(state: World, target: Target, kind = chat) {
  const entered = state.health.enter(target)
  if (!entered) throw new Error('no passage')
  return state.measurements.begin(target, { kind, limitMs: 10_000 }, entered)
}

/** One call after the other: each goes where it is sent, and takes as long as that one does. */
function calls(state: World, count: number, { pauseMs = 0, ...options }: Options & { pauseMs?: number }, took: Took) {
  const served: string[] = []
  for (let call = 0; call < count; call++) {
    const [target] = chosen(state, options).targets
    const { slug } = target.provider
    served.push(slug)
    const passage = begin(state, target)
    const { ms, fails, tokens = 0, forMs = 0 } = took(slug)
    state.clock.at += ms
    if (fails) passage.failed(new RouterError('provider_failed', 'It failed.', { provider: slug }))
    else passage.succeeded()
    state.clock.at += forMs
    if (!fails) passage.produced?.(tokens)
    passage.ended()
    state.clock.at += pauseMs
  }
  return served
}

type Took = (slug: string) => { ms: number; fails?: boolean; tokens?: number; forMs?: number }

const share = (served: readonly string[], slug: string) => served.filter((one) => one === slug).length / served.length

describe('retired targets', () => {
  const retired = (slug: string): Target => ({ ...named(slug), entry: { api: 'chat', shutdown: '2026-10-16' } })
  const later = { api: 'chat', shutdown: '2999-01-01' }

  test.each(['order', 'price', 'weighted', 'latency'] as const)('come last, sorted among themselves, by %s', (sort) => {
    const targets: Targets = [retired('x'), a, retired('y'), { ...b, entry: later }]
    const costs: { [slug: string]: bigint } = { x: 1n, y: 2n, a: 3n, b: 4n }
    const costAt = ({ provider }: Target) => costs[provider.slug]
    const found = order(world(), { targets, sort, costAt }).split(' ')
    expect(found.slice(0, 2).sort()).toEqual(['a', 'b'])
    expect(found.slice(2).sort()).toEqual(['x', 'y'])
    if (sort === 'order' || sort === 'price') expect(found).toEqual(['a', 'b', 'x', 'y'])
  })

  test('alone keep their order', () => {
    expect(order(world(), { targets: [retired('x'), retired('y')] })).toBe('x y')
  })
})

describe('latency', () => {
  test.each([0, 50, 2_000, 60_000])('traffic follows targets whose speeds swap (a call every %i ms)', (pauseMs) => {
    const state = world()
    const rules = { sort: 'latency', pauseMs } as const
    const before = calls(state, 200, rules, (slug) => ({ ms: slug === 'a' ? 100 : 500 }))
    expect(share(before.slice(-100), 'a')).toBeGreaterThanOrEqual(0.9)
    const after = calls(state, 30, rules, (slug) => ({ ms: slug === 'a' ? 500 : 100 }))
    expect(share(after, 'b')).toBeGreaterThanOrEqual(0.8)
  })

  test('a target that fails at once gets no extra share', () => {
    const state = world()
    const served = calls(state, 300, { sort: 'latency' }, (slug) =>
      slug === 'a' ? { ms: 5, fails: true } : { ms: 800 },
    )
    expect(share(served, 'a')).toBeLessThan(0.1)
  })

  test('with fewer than five measurements the turn of a target comes at random, but not while they are on their way', () => {
    const state = world()
    const served = calls(state, 40, { sort: 'latency' }, (slug) => ({ ms: slug === 'a' ? 100 : 500 }))
    for (const slug of ['a', 'b']) expect(served.filter((one) => one === slug).length).toBeGreaterThanOrEqual(5)
    // Another size of input is measured by itself.
    const large = callClass('chat', true, 50_000)
    const begun = Array.from({ length: 5 }, () => begin(state, b, large))
    for (let call = 0; call < 5; call++) begin(state, a, large).succeeded()
    const next = Array.from({ length: 20 }, () => order(state, { sort: 'latency', kind: large }))
    expect(new Set(next)).toEqual(new Set(['a b']))
    for (const passage of begun) passage.ended()
    expect(state.measurements.of(b).underWay).toBe(0)
  })

  test('calls under way count, until they end', () => {
    const state = world()
    calls(state, 40, { sort: 'latency' }, (slug) => ({ ms: slug === 'a' ? 100 : 250 }))
    const open = [begin(state, a), begin(state, a)]
    expect(order(state, { sort: 'latency' })).toBe('b a')
    for (const passage of open) {
      passage.failed(new RouterError('client_gone', 'The client disconnected.'))
      passage.ended()
      passage.ended()
    }
    expect(order(state, { sort: 'latency' })).toBe('a b')
  })

  test('a client that left has waited at least so long', () => {
    const state = world()
    calls(state, 40, { sort: 'latency' }, (slug) => ({ ms: slug === 'a' ? 100 : 250 }))
    const hanging = begin(state, a)
    state.clock.at += 5_000
    hanging.failed(new RouterError('client_gone', 'The client disconnected.'))
    hanging.ended()
    expect(order(state, { sort: 'latency' })).toBe('b a')
  })

  test('of many, the better one of two is first and the others follow by their score', () => {
    const state = world()
    const took: Took = (slug) => ({ ms: { a: 100, b: 300, c: 900 }[slug] as number })
    const targets: Targets = [a, b, c]
    const served = calls(state, 300, { sort: 'latency', targets }, took)
    expect(share(served, 'a')).toBeGreaterThan(0.55)
    expect(share(served, 'c')).toBeLessThan(0.1)
    const orders = new Set(Array.from({ length: 50 }, () => order(state, { sort: 'latency', targets })))
    expect(orders).toEqual(new Set(['a b c', 'b a c']))
  })

  test('targets that nothing is known of follow in their order', () => {
    const state = world()
    const targets: Targets = [a, b, c, named('d')]
    const rests = Array.from({ length: 30 }, () => order(state, { sort: 'latency', targets }).slice(2))
    expect(new Set(rests)).toEqual(new Set(['b c d', 'a c d', 'a b d', 'a b c']))
  })

  test('a slow target is expected to be quicker the more often another one is preferred', () => {
    const state = world()
    calls(state, 40, { sort: 'latency' }, (slug) => ({ ms: slug === 'a' ? 100 : 250 }))
    for (const [target, ms] of [
      [a, 100],
      [b, 250],
    ] as const) {
      const call = begin(state, target)
      state.clock.at += ms
      call.succeeded()
      call.ended()
    }
    state.clock.at += 60_000
    const estimates = () => [a, b].map((one) => state.measurements.of(one).toContent(chat).estimate(state.clock.at))
    expect(estimates()).toEqual([100, 250])
    for (let call = 0; call < 10; call++) expect(order(state, { sort: 'latency' })).toBe('a b')
    expect(estimates()).toEqual([100, 125])
    for (let call = 0; call < 4; call++) order(state, { sort: 'latency' })
    expect(order(state, { sort: 'latency' })).toBe('b a')
  })
})

test('throughput is tokens per second of the answer', () => {
  const state = world()
  const took: Took = (slug) =>
    slug === 'a' ? { ms: 20, tokens: 50, forMs: 1_000 } : { ms: 400, tokens: 200, forMs: 1_000 }
  const served = calls(state, 100, { sort: 'throughput' }, took)
  expect(share(served.slice(-50), 'b')).toBeGreaterThanOrEqual(0.9)
  const failing = calls(state, 100, { sort: 'throughput' }, (slug) =>
    slug === 'b' ? { ms: 5, fails: true } : took(slug),
  )
  expect(share(failing, 'a')).toBeGreaterThanOrEqual(0.9)
})

describe('weights', () => {
  const weights = new Map([
    [a, 1],
    [b, 2],
    [c, 0],
  ])
  const targets: Targets = [a, b, c]
  test('shares are as the weights say; what weighs nothing is only for when others fail', () => {
    const state = world(7)
    const orders = Array.from({ length: 30_000 }, () => order(state, { sort: 'weighted', weights, targets }))
    expect(share(orders, 'b a c')).toBeCloseTo(2 / 3, 2)
    expect(share(orders, 'a b c')).toBeCloseTo(1 / 3, 2)
  })

  test('a key is hashed to the same target everywhere, in shares as the weights say', () => {
    const keys = Array.from({ length: 6_000 }, (_, index) => ({ key: `org key ${index}`, idleMs: () => 1_000 }))
    const [here, there] = [world(1), world(2)]
    const orders = keys.map((kept) => order(here, { sticky: 'hash', kept, targets, weights }))
    expect(keys.map((kept) => order(there, { sticky: 'hash', kept, targets, weights }))).toEqual(orders)
    expect(share(orders, 'b a c')).toBeCloseTo(2 / 3, 1)
    // A key that is new to a thread.
    const another = world(3)
    const elsewhere = keys.map((kept) =>
      order(another, { sort: 'weighted', sticky: 'session', kept, targets, weights }),
    )
    expect(elsewhere).toEqual(orders)
  })
})

describe('price', () => {
  const costAt = ({ provider }: Target, isCached: boolean) =>
    ({ a: isCached ? 20n : 100n, b: 50n, c: undefined })[provider.slug as 'a']
  test('the cheapest for this request is first, those without a price are last', () => {
    expect(order(world(), { sort: 'price', targets: [c, a, b], costAt })).toBe('b a c')
  })

  test('a warm cache counts at the price of what is cached', () => {
    const state = world()
    const kept = { key: 'k', idleMs: () => 300_000 }
    const options = { sort: 'price', sticky: 'cache', kept, costAt } as const
    expect(order(state, options)).toBe('b a')
    state.affinity.keep('k', targetId(a), 300_000)
    expect(chosen(state, options).targets[0]).toBe(a)
    state.clock.at += 300_001
    expect(order(state, options)).toBe('b a')
  })

  test('an explanation has the price of what is cached only where calls are kept because of the cache', () => {
    const state = world()
    state.affinity.keep('k', targetId(a), 300_000)
    const explained = (sticky: RoutingRules['sticky']) => {
      const costs: (bigint | undefined)[] = []
      const ordered: Explanation['ordered'] = (targets, { costOf }) => void costs.push(...targets.map(costOf))
      const kept = { key: 'k', idleMs: () => 300_000 }
      chosen(state, { sort: 'order', sticky, kept, costAt, explanation: { ordered } as Explanation, looksOnly: true })
      return costs
    }
    expect([explained('cache'), explained('session')]).toEqual([
      [20n, 50n],
      [100n, 50n],
    ])
  })

  test('what is cached is cheaper only where calls are kept because of the cache', () => {
    const state = world()
    state.affinity.keep('k', targetId(a), 300_000)
    const passage = state.health.enter(a)
    passage?.failed(new RouterError('rate_limited', 'busy', { provider: 'a', retryAfterMs: 5_000 }))
    passage?.ended()
    const cached = (sticky: RoutingRules['sticky']) => {
      const isCached: Record<string, boolean> = {}
      const costOf = (target: Target, warm: boolean) => {
        isCached[target.provider.slug] = warm
        return costAt(target, warm)
      }
      const kept = { key: 'k', idleMs: () => 300_000 }
      return [order(state, { sort: 'price', sticky, kept, costAt: costOf, looksOnly: true }), isCached]
    }
    expect(cached('cache')).toEqual(['a b', { a: true, b: false }])
    expect(cached('session')).toEqual(['b a', { a: false, b: false }])
  })
})

describe('affinity', () => {
  const kept = { key: 'org name session', idleMs: () => 300_000 }
  const stays = { sticky: 'session', kept } as const
  test('a conversation that had to move stays where it is until it has been idle for long', () => {
    const state = world()
    expect(chosen(state, stays)).toMatchObject({ targets: [a, b], by: 'order' })
    state.affinity.keep(kept.key, targetId(b), kept.idleMs())
    state.clock.at += 299_000
    expect(chosen(state, stays)).toMatchObject({ targets: [b, a], by: 'sticky' })
    expect(order(state, { ...stays, kept: { ...kept, key: 'other' } })).toBe('a b')
    state.affinity.keep(kept.key, targetId(b), kept.idleMs())
    state.clock.at += 299_000
    expect(order(state, stays)).toBe('b a')
    state.clock.at += 2_000
    expect(order(state, stays)).toBe('a b')
  })

  test('calls that come at once are kept together', () => {
    const state = world()
    const targets: Targets = [a, b, c]
    const options = { ...stays, sort: 'weighted', targets } as const
    expect(new Set([1, 2, 3, 4].map(() => order(state, options).slice(0, 1))).size).toBe(1)
  })

  test('a target that takes no calls, or is gone, keeps nothing', () => {
    const state = world()
    state.affinity.keep(kept.key, targetId(b), kept.idleMs())
    const passage = state.health.enter(b)
    passage?.failed(new RouterError('rate_limited', 'busy', { provider: 'b', retryAfterMs: 5_000 }))
    passage?.ended()
    expect(order(state, stays)).toBe('a b')
    state.affinity.keep(kept.key, targetId(c), kept.idleMs())
    expect(order(state, stays)).toBe('a b')
  })

  test('of a cache it is given up at 1.25 times the fair share of the calls under way', () => {
    const state = world()
    const weights = new Map([[b, 3]])
    state.affinity.keep(kept.key, targetId(b), kept.idleMs())
    const keptCalls = (options: Options) => {
      const begun = []
      while (order(state, { kept, sticky: 'cache', ...options }).startsWith('b') && begun.length < 200)
        begun.push(begin(state, b))
      for (const passage of begun) passage.ended()
      state.affinity.keep(kept.key, targetId(b), kept.idleMs())
      return begun.length
    }
    for (let call = 0; call < 10; call++) begin(state, a)
    // With 19 there and the next one, 30 calls are under way: ⌈1.25 × 30 / 2⌉ = 19.
    expect(keptCalls({})).toBe(19)
    // The fair share of three in four calls has no end.
    expect(keptCalls({ weights })).toBeGreaterThan(100)
    expect(keptCalls({ sticky: 'session' })).toBeGreaterThan(100)
  })

  test('what only its maker can read goes to the maker first', () => {
    const state = world()
    state.affinity.keep(kept.key, targetId(b), kept.idleMs())
    const targets: Targets = [a, b, c]
    const continues = (target: Target) => target === c
    expect(chosen(state, { ...stays, targets, continues })).toMatchObject({ targets: [c, b, a], by: 'maker' })
    expect(chosen(state, { targets, continues: () => false })).toMatchObject({ targets: [a, b, c], by: 'order' })
  })
})

test('targets of a later rank come after those of an earlier one, each rank sorted by itself', () => {
  const price = new Map([
    [a, 3n],
    [b, 2n],
    [c, 1n],
  ])
  const rank = new Map([
    [a, 0],
    [b, 0],
    [c, 1],
  ])
  const options = { targets: [a, b, c], sort: 'price', costAt: (target: Target) => price.get(target) } as const
  expect(order(world(), options)).toBe('c b a')
  expect(order(world(), { ...options, rank })).toBe('b a c')
})
