import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import { type Route, routeAt } from './examples.ts'
import { type Asking, callWorld, failing, idOf, type Keyed, policyOf, type World } from './world.ts'

// An explanation of a call must match the call itself: the same targets in the same order, and the same refusals.

const apis = { chat: '/v1/chat/completions', messages: '/v1/messages', responses: '/v1/responses' }
const mostUnknown = 10

let world: World
beforeAll(async () => {
  const server = { host: '127.0.0.1', port: 0, threads: 1, max_values: 1_000, max_unknown_fields: mostUnknown }
  world = await callWorld({ settings: { server } })
})
beforeEach(() => world.clear())
afterAll(async () => await world?.end())

type Occasion = { policy?: string; body?: JsonObject; headers?: Record<string, string>; key?: Partial<Key> }
type Key = Parameters<World['key']>[0] & object

const values = (count: number) => Array.from({ length: count }, () => 0)
const preferring = (provider: (route: Route) => JsonObject) => (route: Route) => ({
  body: { provider: provider(route) },
})

const occasions: { readonly [name: string]: (route: Route) => Occasion } = {
  'targets in their order': () => ({}),
  'a sort by price': () => ({ policy: 'price' }),
  'a target without weight': () => ({ policy: 'weighted' }),
  'a name that promises the EU': () => ({ policy: 'region' }),
  'a target with too small a context window': () => ({ policy: 'larger' }),
  'a target without a price for a key with a limit': () => ({
    policy: 'priced',
    key: { monthlyLimitNano: 10n ** 12n },
  }),
  'an access list': (route) => ({ key: { accessList: [idOf(route, 'two')] } }),
  'an access list without any of the targets': () => ({ key: { accessList: ['demo/echo'] } }),
  'an order of providers': preferring(() => ({ order: ['two-chat'] })),
  'a single provider': preferring(() => ({ only: ['two-chat'] })),
  'an ignored provider': preferring(() => ({ ignore: ['one-chat'] })),
  'an unknown provider': preferring(() => ({ only: ['nobody'] })),
  'a sort of the request': preferring(() => ({ sort: 'price' })),
  'a maximum price': preferring(() => ({ max_price: { prompt: 1.5, completion: 1.5 } })),
  'an unsupported preference': preferring(() => ({ quantizations: ['int4'] })),
  'no fallbacks': preferring(() => ({ allow_fallbacks: false })),
  'required parameters': ({ lost = {} }) => ({ body: { ...lost, provider: { require_parameters: true } } }),
  'a strict call': ({ lost = {} }) => ({ body: lost, headers: { 'x-router-strict': 'true' } }),
  'a restricted field': () => ({ body: { fallbacks: ['other'] } }),
  'a tier of unknown price': () => ({ body: { service_tier: 'priority' } }),
  'further models': (route) => ({ body: { models: [idOf(route, 'two', '-larger')] } }),
  'too many unknown fields': () => ({
    body: Object.fromEntries(values(mostUnknown + 1).map((_, index) => [`unknown_${index}`, 'x'])),
  }),
  'too many values': () => ({ body: { x: values(3_000) } }),
  'an invalid timeout': () => ({ headers: { 'x-router-timeout': 'soon' } }),
  'a key that cannot pay': () => ({ key: { monthlyLimitNano: 1n } }),
}

/** The routing of a call: the models of its targets, those that were skipped, and how the call was refused. */
type Routing = { status: number; code: unknown; targets: unknown; skipped: unknown }

// biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
function routingIn(status: number, json: any): Routing {
  const explain = json.explain ?? json.router?.explain ?? json.error?.router?.explain ?? json
  const models = (list: { model: string }[] | undefined) => list?.map(({ model }) => model)
  return {
    status,
    code: json.error?.code,
    targets: models(explain.targets) ?? [],
    skipped: models(explain.skipped) ?? [],
  }
}

async function explained(
  route: Route,
  api: string,
  key: Keyed,
  { headers = {}, body, model }: Asking,
): Promise<Routing> {
  const response = await fetch(`${world.router.url}/v1/manage/policy/${model}/explain`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key.secret}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ api, ...route.body, ...body }),
  })
  return routingIn(response.status, await response.json())
}

const permissions = { manage: 'read', completions: 'write' } as const

describe.each(Object.entries(apis))('the explanation of a call of %s', (api, path) => {
  const route = routeAt(path)

  test.each(Object.entries(occasions))('matches the call: %s', async (_, occasionOf) => {
    const { policy = 'both', key: changes = {}, ...asking } = occasionOf(route)
    const key = await world.key({ permissions, ...changes })
    const name = `${policyOf(route, policy)}${policy === 'region' ? '@eu' : ''}`
    const foreseen = await explained(route, api, key, { ...asking, model: name })
    expect(world.received).toEqual([])
    const headers = { 'x-router-explain': 'true', ...asking.headers }
    const { json, ...answer } = await world.ask(route, { ...asking, headers, secret: key.secret, model: name })
    // The result of an attempt cannot be foreseen.
    const isAttempted = Number(answer.headers.get('x-router-attempts')) > 0
    const happened = routingIn(answer.status, json)
    expect(foreseen).toEqual(isAttempted ? { ...happened, status: 200, code: undefined } : happened)
  })

  test('matches the next call of a session', async () => {
    const key = await world.key({ permissions })
    const asking = { model: policyOf(route, 'session'), headers: { 'x-session-id': 'mine' } }
    world.acts.one.push(failing(500))
    await world.ask(route, { ...asking, secret: key.secret })
    expect(await explained(route, api, key, asking)).toMatchObject({
      targets: [idOf(route, 'two'), idOf(route, 'one')],
    })
  })

  test('matches the request that the provider gets', async () => {
    const { secret } = await world.key({ permissions: { ...permissions, operate: 'write' } })
    const body = { ...route.lost, metadata: { team: 'web' }, requesty: { tags: ['a'] }, provider: { sort: 'price' } }
    const { headers } = await world.ask(route, { secret, body })
    const [sent] = world.received
    const tried = await fetch(`${world.router.url}/v1/manage/providers/one-chat/try`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ api, model: 'chat', request: { ...route.body, ...body } }),
    })
    const json = (await tried.json()) as { body: JsonObject; dropped: string[]; url: string }
    expect(json.body).toEqual(sent?.body)
    // The address itself is masked.
    expect(json.url.endsWith(String(sent?.path))).toBe(true)
    expect(json.dropped.join(',')).toBe(headers.get('x-router-dropped'))
  })

  test.each([
    ['a restricted field', { fallbacks: ['other'] }],
    ['too many values', { x: values(3_000) }],
    ['an unsupported preference', { provider: { quantizations: ['int4'] } }],
  ])('of the request to a provider is refused as the call is: %s', async (_, body: JsonObject) => {
    const { secret } = await world.key({ permissions: { ...permissions, operate: 'write' } })
    const { status, json } = await world.ask(route, { secret, body })
    const tried = await fetch(`${world.router.url}/v1/manage/providers/one-chat/try`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ api, model: 'chat', request: { ...route.body, ...body } }),
    })
    const { error } = (await tried.json()) as { error?: JsonObject }
    expect([tried.status, error?.code]).toEqual([status, json?.error?.code])
  })
})
