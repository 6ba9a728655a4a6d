import { describe, expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import { chatKind } from '../../src/call/kinds/chat.ts'
import type { ReadConversation } from '../../src/call/kinds/conversation.ts'
import { type AffineCall, affinityKey } from '../../src/call/targets/affinity-key.ts'
import { type OrderedCall, orderTargets } from '../../src/call/targets/order-targets.ts'
import type { Turn } from '../../src/call/types.ts'
import type { Json } from '../../src/core/json.ts'
import type { NeutralRequest } from '../../src/core/request.ts'
import { defaultHealth, defaultRouting, type RoutingRules } from '../../src/core/routing/rules.ts'
import type { Provider, Trait } from '../../src/manifest/provider.ts'
import type { Target } from '../../src/manifest/target.ts'
import { Affinity } from '../../src/routing/affinity.ts'
import { ConcurrencyLimiters } from '../../src/routing/health/concurrency-limiter.ts'
import { Health } from '../../src/routing/health/health.ts'
import { RetryBudget } from '../../src/routing/health/retries.ts'
import { Measurements } from '../../src/routing/measurements.ts'

const named = (slug: string, maker = slug, traits: Trait[] = []): Target => ({
  provider: {
    slug,
    signer: maker,
    baseUrl: `https://${slug}.example`,
    auth: { scheme: 'none' },
    traits,
  } as unknown as Provider,
  model: 'm',
})
const [a, b, c] = [named('a'), named('b'), named('c', 'b')]
/** That keeps prompts for so long. */
const keeping = (prompt_cache: Json) => named('b', 'b', [{ match: /^/, facts: { prompt_cache } }])
const plain: NeutralRequest = {
  model: 'name',
  messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }],
  origin: { api: 'chat', body: {} },
}

function world() {
  const clock = { at: 0 }
  const now = () => clock.at
  return {
    clock,
    health: new Health({ settings: () => defaultHealth, now }),
    retries: new RetryBudget(),
    measurements: new Measurements({ now }),
    limiters: new ConcurrencyLimiters(),
    affinity: new Affinity({ now }),
  }
}

type Options = Partial<Pick<OrderedCall, 'targets' | 'admission'>> &
  Partial<Pick<ReadConversation, 'request'>> & { turn?: Pick<Turn, 'madeBy'>; rules?: Partial<RoutingRules> }

function order(state: ReturnType<typeof world>, { rules, request = plain, turn = {}, ...call }: Options = {}) {
  return orderTargets(
    {
      targets: [a, b, c],
      route: { rules: { ...defaultRouting, ...rules } },
      call: {},
      key: { id: 'k', organization: 'o' },
      read: { stream: false, request, turn } as ReadConversation,
      explanation: undefined,
      admission: { costAt: () => undefined, caches: undefined, promptTokens: 10 },
      ...call,
    },
    chatKind(chat),
    state,
  )
}
const slugs = (...given: Parameters<typeof order>) =>
  order(...given)
    .targets.map(({ provider }) => provider.slug)
    .join(' ')

describe('what only its maker can read', () => {
  const sealed = (by: string) => ({ type: 'reasoning' as const, text: 'Hm.', signature: 's', by })
  const said = { type: 'text' as const, text: 'Hi' }
  const answeredWith = (...parts: NeutralRequest['messages'][number]['parts']): NeutralRequest => ({
    ...plain,
    messages: [
      ...plain.messages,
      { role: 'assistant', parts: [sealed('a'), said] },
      ...plain.messages,
      { role: 'assistant', parts },
      ...plain.messages,
    ],
  })

  test('goes to the targets of that maker first; the last one decides', () => {
    expect(order(world(), { request: answeredWith(sealed('b'), said) })).toMatchObject({
      targets: [b, c, a],
      by: 'maker',
    })
    expect(slugs(world(), { request: answeredWith({ type: 'opaque', by: 'b', body: {} }) })).toBe('b c a')
    expect(slugs(world(), { request: answeredWith({ type: 'tool_call', id: '1', name: 'f', arguments: '{}' }) })).toBe(
      'a b c',
    )
    expect(slugs(world(), { request: answeredWith({ type: 'reasoning', text: 'Open.', by: 'b' }) })).toBe('a b c')
    expect(slugs(world(), { request: answeredWith(sealed('elsewhere')) })).toBe('a b c')
  })

  test('as a stored response, goes to its model, else to its provider', () => {
    const madeBy = (model: string, provider: string) => ({ turn: { madeBy: { model, provider } } })
    expect(slugs(world(), madeBy('c/m', 'c'))).toBe('c a b')
    expect(slugs(world(), madeBy('b/other', 'b'))).toBe('b a c')
    expect(slugs(world(), madeBy('gone/m', 'gone'))).toBe('a b c')
  })
})

describe('how long a conversation is kept', () => {
  const minute = 60_000
  const short = keeping({ lifetime: '10m' })
  const long = keeping({ lifetime: '10m', extended: '24h' })
  const cases: [sticky: RoutingRules['sticky'], caches: '5m' | '1h' | undefined, ms: number, target?: Target][] = [
    ['cache', undefined, 5 * minute],
    ['cache', '5m', 5 * minute],
    ['cache', '1h', 5 * minute],
    ['cache', undefined, 10 * minute, short],
    ['cache', '1h', 10 * minute, short],
    ['cache', '5m', 10 * minute, long],
    ['cache', '1h', 24 * 60 * minute, long],
    ['session', undefined, 60 * minute, short],
    ['user', undefined, 60 * minute],
  ]
  test.each(cases)('sticky: %s with a cache for %s: %i ms', (sticky, caches, ms, target = b) => {
    const state = world()
    const request = { ...plain, user: 'anna', origin: { api: 'chat' as const, body: { session_id: '1' } } }
    const admission = { costAt: () => undefined, caches, promptTokens: 10 }
    const call = { request, admission, rules: { sticky }, targets: [a, target, c] as const }
    const { served } = order(state, call)
    served(target)
    state.clock.at = ms - 1
    expect(slugs(state, call)).toBe('b a c')
    state.clock.at = ms
    expect(slugs(state, call)).toBe('a b c')
  })
})

describe('calls that belong together', () => {
  const call = (request: Partial<NeutralRequest>, more: Partial<AffineCall> = {}): AffineCall => ({
    organization: 'o',
    key: 'k',
    request: { ...plain, ...request },
    ...more,
  })
  const told = { session: 's', user: 'anna', body: { session_id: 's' } }

  test.each(['session', 'user', 'hash', 'cache'] as const)(
    '%s: never those of two organizations or names',
    (sticky) => {
      const request = { user: told.user, origin: { api: 'chat' as const, body: told.body } }
      const key = affinityKey(sticky, call(request))
      expect(key).toBeDefined()
      expect(affinityKey(sticky, call(request))).toBe(key)
      expect(affinityKey(sticky, call(request, { organization: 'other' }))).not.toBe(key)
      expect(affinityKey(sticky, call({ ...request, model: 'other' }))).not.toBe(key)
    },
  )

  test('what tells nothing has no key, and what is long has a short one', () => {
    for (const sticky of ['none', 'session', 'user'] as const) expect(affinityKey(sticky, call({}))).toBeUndefined()
    expect(affinityKey('user', call({ user: 'x'.repeat(10_000) }))?.length).toBeLessThan(100)
  })

  test('the beginning of a prompt is its system text, its tools and its first message', () => {
    const key = affinityKey('cache', call({}))
    const parts = [{ type: 'text' as const, text: 'Hi' }]
    const longer = [...plain.messages, { role: 'assistant' as const, parts }, { role: 'user' as const, parts }]
    expect(affinityKey('cache', call({ messages: longer }))).toBe(key)
    const others: Partial<NeutralRequest>[] = [
      { system: [{ type: 'text', text: 'Be brief.' }] },
      { tools: [{ kind: 'function', name: 'look' }] },
      { messages: [{ role: 'user', parts: [{ type: 'text', text: 'Ho' }] }] },
      { messages: [{ role: 'user', parts: [{ type: 'image', data: 'aaaa', media_type: 'image/png' }] }] },
      { cache: { key: 'key' } },
    ]
    const keys = others.map((other) => affinityKey('cache', call(other)))
    expect(new Set([key, ...keys]).size).toBe(others.length + 1)
  })

  test('of a file its length and its first 4,096 characters count', () => {
    const keyOf = (data: string) => {
      const parts = [{ type: 'image' as const, data, media_type: 'image/png' }]
      return affinityKey('cache', call({ messages: [{ role: 'user', parts }] }))
    }
    const [first, rest] = ['a'.repeat(4_096), 'b'.repeat(4_096)]
    expect(keyOf(first + rest)).toBe(keyOf(first + 'c'.repeat(4_096)))
    expect(keyOf(first + rest)).not.toBe(keyOf(`${first.slice(1)}c${rest}`))
    expect(keyOf(first + rest)).not.toBe(keyOf(`${first + rest}b`))
  })

  test('Claude Code tells its session in its user, in either form', () => {
    const one = affinityKey('session', call({ user: 'user_1_account_2_session_3-4' }))
    const other = affinityKey('session', call({ user: '{"device_id":"1","session_id":"3-4"}' }))
    expect(one).toBe(other)
    expect(one).toBe(affinityKey('session', call({}, { session: '3-4' })))
  })
})
