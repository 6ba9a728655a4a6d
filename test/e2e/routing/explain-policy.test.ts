import { slow, testInRuns } from '../../helpers/slow.ts'
import '../../helpers/fixed-seed.ts'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { newSecret, storedSecret } from '../../../src/access/secrets.ts'
import { sorts } from '../../../src/core/routing/rules.ts'
import { testRouter } from '../../helpers/router.ts'
import { newKey } from '../money/budget-world.ts'
import { type Explained, fails, type World, worldWith } from './explain-world.ts'

// Where a call by the name of a policy would go, beside calls that do go there.

let world: World
let all: string[]

beforeAll(async () => {
  const both = ['one/m1', 'two/m1']
  world = await worldWith(
    {
      managed: { targets: [...both, 'away/m1'] },
      'near@eu': { targets: ['one/m1', 'two/european'] },
      kept: { targets: both, sort: 'price', sticky: 'session' },
      quick: { targets: both, sort: 'latency' },
      seeing: { targets: ['one/blind', 'two/m1'] },
      blind: { targets: ['one/blind', 'two/blind'] },
      vectors: { targets: ['one/vectors'] },
    },
    { routing: { retries: 0 }, health: { consecutive_failures: 1_000, min_calls: 1_000 } },
  )
  all = ['one', 'two'].flatMap((slug) => ['m1', 'blind', 'small', 'european'].map((model) => `${slug}/${model}`))
})

afterAll(async () => {
  await world?.end()
})

beforeEach(() => {
  world.steps.one.length = 0
  world.steps.two.length = 0
  world.providers.one.received.length = 0
  world.providers.two.received.length = 0
})

type Body = { [name: string]: unknown }
type Planned = Explained & { policy: string }

const hello = { messages: [{ role: 'user', content: 'Hello there' }], max_tokens: 10 }
const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }
const seen = { messages: [{ role: 'user', content: [image] }] }

async function explain(id: string, body: Body = hello, headers: Record<string, string> = {}) {
  const response = await world.router.call(`/v1/manage/policy/${id}/explain`, body, headers)
  const answer = (await response.json()) as Planned & {
    error: { code: string; param: string; router?: { explain: Explained } }
  }
  return { status: response.status, answer }
}

async function callOf(model: string, body: Body = hello, headers: Record<string, string> = {}) {
  const sent = { 'x-router-explain': 'true', ...headers }
  const response = await world.router.call('/v1/chat/completions', { ...body, model }, sent)
  const { router, error } = (await response.json()) as {
    router?: { explain: Explained }
    error?: { router?: { explain: Explained } }
  }
  return { status: response.status, explain: (router ?? error?.router)?.explain as Explained }
}

/** The plan without costs, which only an explanation without a call has for every target. */
const plan = ({ sort, sticky, targets, skipped }: Explained) => ({
  sort,
  sticky,
  // Absent where no target is left.
  targets: targets?.map((target) => {
    const { prompt_cost_usd: _, max_cost_usd: most, ...others } = target
    return { ...others, ...(target.by === 'price' && { max_cost_usd: most }) }
  }),
  skipped,
})
const skippedIn = ({ skipped }: Explained) => skipped.map(({ model, step }) => [model, step])
const asked = () => world.providers.one.received.length + world.providers.two.received.length

describe('beside a call', () => {
  let id = 0
  const bodies: Body[] = [
    hello,
    { ...hello, ...seen },
    { ...hello, messages: [{ role: 'user', content: 'long '.repeat(60) }] },
    { ...hello, provider: { only: ['two'] } },
    { ...hello, provider: { order: ['two', 'one'] } },
    { ...hello, provider: { sort: 'price' } },
    { ...hello, provider: { allow_fallbacks: false } },
    { ...hello, models: ['two/m1', 'one/european'] },
    { ...hello, service_tier: 'priority' },
    { messages: hello.messages },
  ]

  testInRuns('any policy is explained as the call is', { fast: 15, slow: 40 }, async (numRuns) => {
    const policies = fc.record({
      targets: fc.shuffledSubarray(all, { minLength: 1 }),
      sort: fc.constantFrom(...sorts.filter((sort) => sort === 'order' || sort === 'price')),
      body: fc.constantFrom(...bodies),
      limited: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(policies, async ({ targets, sort, body, limited }) => {
        const policy = `p${id++}`
        expect((await world.router.call('/v1/manage/policy', { id: policy, targets, sort })).status).toBe(201)
        const permissions = { manage: 'read', completions: 'write' } as const
        const limit = limited ? { monthlyLimitNano: 1_000_000_000n } : {}
        const { secret } = await newKey(world.store, { permissions, ...limit })
        const headers = { authorization: `Bearer ${secret}` }
        const before = asked()
        const { status, answer } = await explain(policy, body, headers)
        expect(asked()).toBe(before)
        const call = await callOf(policy, body, headers)
        expect(status).toBe(call.status)
        const explained = status === 200 ? answer : answer.error.router?.explain
        expect(plan(explained as Explained)).toEqual(plan(call.explain))
      }),
      { numRuns },
    )
  })

  test('of weights both have the same shares, in an order of their own', async () => {
    const targets = [{ target: 'one/m1', weight: 3 }, 'two/m1']
    await world.router.call('/v1/manage/policy', { id: 'drawn', targets, sort: 'weighted' })
    const { answer } = await explain('drawn')
    const { explain: call } = await callOf('drawn')
    const byName = ({ targets }: Explained) => targets.toSorted((one, other) => (one.model < other.model ? -1 : 1))
    expect(byName(plan(answer) as Explained)).toEqual(byName(call))
    expect(byName(answer)).toMatchObject([{ model: 'one/m1', by: 'weighted', weight: 3 }, { weight: 1 }])
  })

  test('each target has its dollars: of the prompt, and the most; one without a price has none', async () => {
    const targets = ['one/m1', 'two/m1', 'one/unpriced']
    await world.router.call('/v1/manage/policy', { id: 'costs', targets })
    const { answer } = await explain('costs')
    expect(answer.prompt_tokens).toBeGreaterThan(0)
    const [first, second, third] = answer.targets
    const tokens = answer.prompt_tokens ?? 0
    expect(first?.prompt_cost_usd).toBeCloseTo(tokens * 0.000_002, 9)
    expect(second?.prompt_cost_usd).toBeCloseTo(tokens * 0.000_001, 9)
    // Ten tokens of an answer, and a prompt of at most as many tokens as bytes.
    expect(second?.max_cost_usd).toBeGreaterThan(tokens * 0.000_001)
    expect(Object.keys(third ?? {})).toEqual(['model', 'by', 'reason'])
    const { explain: call } = await callOf('costs')
    expect(Object.keys(call.targets[0] ?? {})).toEqual(['model', 'by', 'reason'])
  })

  test('every API, by any name of the policy', async () => {
    const requests: [api: string | undefined, body: Body][] = [
      [undefined, hello],
      ['chat', { ...hello, model: 'policy/seeing' }],
      ['messages', { ...hello, model: 'something/else', stream: true }],
      ['responses', { input: 'Hello', model: 'seeing' }],
    ]
    for (const [api, body] of requests) {
      const { status, answer } = await explain('seeing', { ...body, ...(api !== undefined && { api }) })
      expect([status, answer.policy]).toEqual([200, 'seeing'])
      expect(answer.targets.map(({ model }) => model)).toEqual(['one/blind', 'two/m1'])
      expect(Object.keys(answer)).toEqual(['policy', 'sort', 'sticky', 'targets', 'skipped', 'prompt_tokens'])
    }
    const { answer } = await explain('near%40eu')
    expect(answer).toMatchObject({
      policy: 'near@eu',
      targets: [{ model: 'two/european', by: 'only' }],
      not_allowed: 1,
    })
  })

  test('a target that takes no calls is named, also to who has not called it', async () => {
    world.steps.one.push(fails(429, { 'retry-after': '60' }))
    await callOf('one/blind')
    const { answer } = await explain('seeing')
    expect(answer.skipped).toMatchObject([{ model: 'one/blind', step: 'health' }])
    expect(answer.skipped[0]?.reason).toMatch(/^takes no calls for \d+ s, because it reported that it is busy$/)
    expect(answer.targets[0]?.model).toBe('one/blind')
    expect((await explain('seeing', seen)).answer.skipped).toMatchObject([{ model: 'one/blind', step: 'able' }])
  })
})

describe('nothing is', () => {
  test('sent, stored or counted', async () => {
    const rows = (await world.rows).length
    const { secret } = await newKey(world.store, {
      permissions: { manage: 'read', completions: 'write' },
      limits: { requestsPerMinute: 1, tokensPerMinute: null, concurrentCalls: null },
      monthlyLimitNano: 1_000_000_000n,
    })
    const headers = { authorization: `Bearer ${secret}` }
    for (const _ of Array(3)) expect((await explain('managed', hello, headers)).status).toBe(200)
    expect([asked(), (await world.rows).length]).toEqual([0, rows])
    expect((await callOf('managed', hello, headers)).status).toBe(200)
    expect((await callOf('managed', hello, headers)).status).toBe(429)
  })

  test('remembered: a session is kept where its calls went', async () => {
    const session = { 'x-session-id': 's1' }
    expect((await explain('kept', hello, session)).answer.targets[0]).toMatchObject({ model: 'two/m1', by: 'price' })
    expect((await callOf('kept', hello, session)).explain.targets[0]).toMatchObject({ model: 'two/m1', by: 'price' })
    expect((await explain('kept', hello, session)).answer.targets[0]).toMatchObject({ model: 'two/m1', by: 'sticky' })
    expect((await explain('kept')).answer.targets[0]).toMatchObject({ by: 'price' })
  })
})

describe('refused is', () => {
  test('what a call would be, with the reasons', async () => {
    const { status, answer } = await explain('blind', { ...hello, ...seen })
    expect([status, answer.error.code]).toEqual([400, 'invalid_request'])
    const wished = await explain('seeing', { ...hello, provider: { only: ['none'] } })
    expect([wished.status, wished.answer.error.param]).toEqual([404, 'provider.only'])
    expect(skippedIn(wished.answer.error.router?.explain as Explained)).toEqual([
      ['one/blind', 'wished'],
      ['two/m1', 'wished'],
    ])
    expect((await explain('vectors')).status).toBe(400)
    expect(asked()).toBe(0)
  })

  test('a body or a header that says nothing', async () => {
    const refused: [body: Body, headers: Record<string, string>, param: string][] = [
      [{ ...hello, api: 'completions' }, {}, 'api'],
      [{ api: 'chat' }, {}, 'messages'],
      [{ ...hello, provider: { sort: 'best' } }, {}, 'provider.sort'],
      [hello, { 'x-router-strict': 'maybe' }, 'x-router-strict'],
      [hello, { 'x-router-timeout': 'soon' }, 'x-router-timeout'],
    ]
    for (const [body, headers, param] of refused) {
      const { status, answer } = await explain('seeing', body, headers)
      expect([status, answer.error.param]).toEqual([400, param])
    }
    expect((await world.router.call('/v1/manage/policy/seeing/explain', '[]')).status).toBe(400)
  })
})

describe('who may know what', () => {
  test('who manages the organization sees the targets of its own policies, but of others only how many there are', async () => {
    const targets = ['away/m1', 'one/m1', 'two/european']
    await world.router.call('/v1/manage/policy', { id: 'own', targets })
    const { answer } = await explain('own')
    expect(skippedIn(answer)).toEqual([['away/m1', 'allowed']])
    expect(answer).not.toHaveProperty('not_allowed')
    const managed = await explain('managed')
    expect(managed.answer).toMatchObject({ skipped: [], not_allowed: 1 })
    expect(JSON.stringify(managed)).not.toContain('away')
    // No policy of its own lets it see through others.
    const joined = await explain('own', { ...hello, models: ['managed', 'near@eu'] })
    expect(joined.answer.not_allowed).toBe(2)
    expect(skippedIn(joined.answer)).toEqual([['away/m1', 'allowed']])
  })

  test('no organization sees those of another one, nor what it may not use itself', async () => {
    await world.router.call('/v1/manage/policy', { id: 'secret', targets: ['one/m1', 'two/m1'] })
    const { id } = await world.store.organizations.create('other')
    const secret = newSecret()
    await world.store.organizations.approveModels(id, ['two/m1'])
    await world.store.keys.create({
      ...storedSecret(secret),
      organization: id,
      name: 'manager',
      permissions: { manage: 'read', completions: 'none' },
      createdBy: { id: 'test', email: '' },
    })
    const headers = { authorization: `Bearer ${secret}` }
    const { status, answer } = await explain('secret', hello, headers)
    expect([status, answer.error.code]).toEqual([404, 'not_found'])
    const managed = await explain('managed', hello, headers)
    expect(managed.answer).toMatchObject({ targets: [{ model: 'two/m1', by: 'only' }], skipped: [], not_allowed: 2 })
    expect(JSON.stringify(managed)).not.toContain('one/')
  })

  test('who may not manage is told nothing', async () => {
    const { secret } = await newKey(world.store)
    expect((await explain('managed', hello, { authorization: `Bearer ${secret}` })).status).toBe(403)
    expect((await explain('managed', hello, { authorization: '' })).status).toBe(401)
    expect((await explain('nothing')).status).toBe(404)
  })
})

test.each([
  ['at the address of the calls', null],
  ['at an address of its own', 0],
])('several threads answer %s', slow, async (_, port) => {
  const policies = { quick: { targets: ['demo/echo', 'demo/thinker'], sort: 'price' } }
  const router = await testRouter({ threads: 2, settings: { policies, manage: { port } } })
  try {
    const headers = { authorization: 'Bearer ir-test-key-on-loopback', 'content-type': 'application/json' }
    const asked = { method: 'POST', headers, body: JSON.stringify(hello) }
    const response = await fetch(`${router.manageUrl}/v1/manage/policy/quick/explain`, asked)
    expect([response.status, await response.json()]).toMatchObject([
      200,
      { policy: 'quick', targets: [{}, {}], skipped: [] },
    ])
  } finally {
    await router.end()
  }
})
