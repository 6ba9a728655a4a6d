import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { completionTokens, promptTokens } from '../../src/core/usage.ts'
import { counted, fieldOf } from './answers.ts'
import { routeAt, routes } from './examples.ts'
import { answering, callWorld, failing, idOf, ownPolicy, policyOf, type World } from './world.ts'

// Steps that one route had and others lacked: each of these was observed before there was one path for all calls.

const compact = routeAt('/v1/responses/compact')
const inputTokens = routeAt('/v1/responses/input_tokens')
const embeddings = routeAt('/v1/embeddings')

let world: World
beforeAll(async () => {
  const server = { host: '127.0.0.1', port: 0, threads: 1, max_values: 1_000 }
  world = await callWorld({ settings: { server, routing: { retries: 1 } } })
})
beforeEach(() => world.clear())
afterAll(async () => await world?.end())

test('the cheapest model compacts for a policy that is sorted by price', async () => {
  const { secret } = await world.key()
  const { status, headers } = await world.ask(compact, { secret, model: policyOf(compact, 'price') })
  expect([status, headers.get('x-router-model')]).toEqual([200, idOf(compact, 'two')])
})

test.each([compact, inputTokens])('a call of an unknown model at $path is among the refusals', async (route) => {
  const { id, secret } = await world.key()
  const model = 'one-responses/nobody'
  expect((await world.ask(route, { secret, model })).status).toBe(404)
  const listed = await world.router.call(`/v1/manage/refusals?key=${id}`)
  expect(await listed.json()).toMatchObject({ refusals: [{ asked: model, code: 'model_not_found', status: 404 }] })
})

test.each([compact, inputTokens])(
  'tool arguments with more than max_values values are refused at $path',
  async (route) => {
    const { secret } = await world.key()
    const texts = JSON.stringify({ list: Array.from({ length: 3_000 }, () => 0) })
    const input = [...(route.body.input as []), { type: 'function_call', call_id: 'c1', name: 'f', arguments: texts }]
    const { status, json } = await world.ask(route, { secret, body: { input } })
    expect([status, json.error?.param]).toEqual([400, 'input'])
    expect(json.error.message).toMatch(/1000 values.*max_values/)
    expect(world.received).toEqual([])
  },
)

test('a preference that is ignored when a conversation is compacted is named in x-router-dropped', async () => {
  const { secret } = await world.key()
  const body = { provider: { preferred_min_throughput: 50 } }
  const { status, headers } = await world.ask(compact, { secret, body })
  expect([status, headers.get('x-router-dropped')]).toEqual([200, 'provider.preferred_min_throughput'])
})

/** Streams of these name no model, nor does sound. */
const anonymous = ['/v1/images/generations', '/v1/images/edits', '/v1/audio/transcriptions']
const naming = routes
  .filter(({ isFree, isBytes }) => !isFree && !isBytes)
  .flatMap(({ path, stream }) => [
    { path, form: 'whole', stream: false },
    ...(stream && !anonymous.includes(path) ? [{ path, form: 'streamed', stream: true }] : []),
  ])

test.each(naming)(
  'a call of $path that a more expensive model has served, $form, costs what that one costs',
  async ({ path, stream }) => {
    const route = routeAt(path)
    const key = await world.key()
    const served = `${route.models}-costly`
    world.acts.one.push(answering({ model: served }))
    expect((await world.ask(route, { secret: key.secret, stream })).status).toBe(200)
    await expect.poll(() => world.rows(key)).toHaveLength(1)
    const [row] = await world.rows(key)
    const { usage = {}, cost } = row ?? {}
    const tokens = promptTokens(usage) + completionTokens(usage)
    expect(tokens).toBeGreaterThanOrEqual(counted.input)
    expect([row?.served, cost?.nanoUsd]).toEqual([served, tokens * 100_000])
  },
)

test.each(['/v1/chat/completions', '/v1/embeddings'])(
  'a call of %s that a cheaper model has served costs what the model costs that was asked for',
  async (path) => {
    const route = routeAt(path)
    const key = await world.key()
    world.acts.one.push(answering({ model: route.models }))
    const model = idOf(route, 'one', '-costly')
    expect((await world.ask(route, { secret: key.secret, model })).status).toBe(200)
    const [{ usage, cost } = {} as never] = await world.rows(key)
    expect(cost.nanoUsd).toBe((promptTokens(usage) + completionTokens(usage)) * 100_000)
  },
)

test.each(['/v1/embeddings', '/v1/images/generations', '/v1/responses/compact'])(
  'all attempts of a call of %s have the same idempotency key',
  async (path) => {
    const route = routeAt(path)
    const { secret } = await world.key()
    world.acts.one.push(failing(503))
    expect((await world.ask(route, { secret })).status).toBe(200)
    const [first, second] = world.received.map(({ headers }) => headers['idempotency-key'])
    expect(first).toMatch(/./)
    expect(second).toBe(first)
  },
)

test('a target of embeddings with x-ratelimit-remaining-requests: 0 is passed over', async () => {
  const { secret } = await world.key()
  const asking = { secret, model: ownPolicy(embeddings) }
  const headers = { 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '60s' }
  world.acts.one.push(answering({}, headers))
  const servers = [await world.ask(embeddings, asking), await world.ask(embeddings, asking)]
  expect(servers.map((one) => one.headers.get('x-router-model')?.split('/')[0])).toEqual(['one-chat', 'two-chat'])
})

test('embeddings of one session stay at the target that has served the first of them', async () => {
  const { secret } = await world.key()
  const asking = { secret, model: policyOf(embeddings, 'session'), headers: { 'x-session-id': 'mine' } }
  world.acts.one.push(failing(503), failing(503))
  await world.ask(embeddings, asking)
  expect(world.providers.two.received.map((request) => fieldOf(request, 'input'))).toEqual(['Hello'])
  const { headers } = await world.ask(embeddings, asking)
  expect(headers.get('x-router-model')).toBe(idOf(embeddings, 'two'))
})
