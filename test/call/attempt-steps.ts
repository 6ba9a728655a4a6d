import { expect } from 'vitest'
import { within } from '../helpers/provider.ts'
import { limit } from '../helpers/time.ts'
import type { Route } from './examples.ts'
import { asked } from './routing-steps.ts'
import { counting, type Scenario, type Step } from './table.ts'
import {
  type Act,
  type Asking,
  answering,
  callWorld,
  failing,
  idOf,
  ownPolicy,
  plainWorld,
  policyOf,
  type World,
} from './world.ts'

// Attempts, failover and the reply.

/** An answer that is of no use to any API. */
export const garbage: Act = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"nothing": "of use"}')
}

/** Calls with a key of an organization of its own, which has all its retries, by a policy over both targets, of which the first one does this. */
export async function callBoth(route: Route, world: World, first: readonly Act[], asking: Asking = {}) {
  const key = await world.keyOfOwn()
  world.acts.one.push(...first)
  const answer = await world.ask(route, { secret: key.secret, model: policyOf(route, 'both'), ...asking })
  return { ...answer, key }
}

const noRow = counting('it has no row')

const retried: readonly Step[] = [
  {
    fact: 'a target that fails is asked again, and all attempts have the same idempotency key',
    async check(route, world) {
      const { status, headers } = await callBoth(route, world, [failing(500)], { model: idOf(route) })
      expect([status, headers.get('x-router-attempts'), asked(world)]).toEqual([200, '2', ['one', 'one']])
      const keys = world.received.map((request) => request.headers['idempotency-key'])
      expect(keys).toEqual([expect.stringMatching(/./), keys[0]])
    },
  },
  {
    fact: 'each attempt sends its own span in the trace',
    async check(route, world) {
      const trace = '0af7651916cd43dd8448eb211c80319c'
      const headers = { traceparent: `00-${trace}-b7ad6b7169203331-01` }
      const { status } = await callBoth(route, world, [failing(500)], { model: idOf(route), headers })
      expect(status).toBe(200)
      const parents = world.received.map((request) => String(request.headers.traceparent))
      expect(parents.map((parent) => parent.split('-')[1])).toEqual([trace, trace])
      expect(parents[0]).not.toBe(parents[1])
    },
  },
]

const failures: readonly Step[] = [
  {
    fact: 'every call has an idempotency key of its own',
    async check(route, world) {
      const { secret } = await world.keyOfOwn()
      await world.ask(route, { secret })
      await world.ask(route, { secret })
      const keys = world.received.map((request) => request.headers['idempotency-key'])
      expect(keys).toEqual([expect.stringMatching(/./), expect.stringMatching(/./)])
      expect(keys[0]).not.toBe(keys[1])
    },
  },
  {
    fact: 'the second target serves when the first one fails',
    async check(route, world) {
      const { status, headers } = await callBoth(route, world, [failing(500)])
      expect([status, asked(world)]).toEqual([200, ['one', 'two']])
      expect(headers.get('x-router-attempts')).toBe('2')
      expect(headers.get('x-router-model')).toBe(idOf(route, 'two'))
    },
  },
  {
    fact: 'the second target serves at once when the first one is busy',
    async check(route, world) {
      const key = await world.keyOfOwn()
      world.acts.one.push(failing(429, { 'retry-after': '60' }))
      const { status } = await world.ask(route, { secret: key.secret, model: ownPolicy(route) })
      expect([status, asked(world)]).toEqual([200, ['one', 'two']])
    },
  },
  {
    fact: 'a target that has named a time to wait is passed over until then',
    async check(route, world) {
      // The step before has made it busy, if this one is checked after it.
      const key = await world.keyOfOwn()
      const asking = { secret: key.secret, model: ownPolicy(route) }
      world.acts.one.push(failing(429, { 'retry-after': '60' }))
      await world.ask(route, asking)
      world.clear()
      expect((await world.ask(route, asking)).status).toBe(200)
      expect(asked(world)).toEqual(['two'])
    },
  },
  {
    fact: 'the second target serves when the answer of the first one cannot be read',
    async check(route, world) {
      const { status } = await callBoth(route, world, [garbage])
      expect([status, asked(world)]).toEqual([200, ['one', 'two']])
    },
    except: [{ at: ({ isBytes }) => isBytes === true, because: 'bytes of any kind are an answer' }],
  },
  {
    fact: 'when all targets fail the call fails as the first one did, and names every attempt',
    async check(route, world) {
      world.acts.two.push(failing(500))
      const { status, headers, json, key } = await callBoth(route, world, [failing(500)])
      expect([status, headers.get('x-router-attempts'), json?.error?.origin]).toEqual([502, '2', 'provider'])
      expect(headers.get('x-router-model')).toBe(idOf(route, 'one'))
      expect(json.error.attempts).toHaveLength(2)
      if (route.isFree) return
      const rows = await world.rows(key)
      expect(rows.filter(({ attemptOf }) => attemptOf === undefined)).toMatchObject([
        { outcome: 'failed', status: 502, error: 'provider_failed', attempts: 2, cost: { nanoUsd: 0 } },
      ])
      expect(rows).toHaveLength(3)
    },
  },
  {
    fact: 'a request that a target has refused goes to no other one',
    async check(route, world) {
      const { status } = await callBoth(route, world, [failing(400, {}, { message: 'no' })])
      expect([status, asked(world)]).toEqual([400, ['one']])
    },
  },
  {
    fact: 'the error of a provider has the form of the client API, and no secret of the provider',
    async check(route, world) {
      const error = { message: 'not with secret-of-one', code: 'odd' }
      const { status, json, text } = await callBoth(route, world, [failing(400, {}, error)], { model: idOf(route) })
      expect(status).toBe(400)
      expect(text).not.toContain('secret-of-one')
      expect(json.error).toMatchObject({ origin: 'provider', provider: `one-${route.format}`, code: 'odd' })
      if (route.path.startsWith('/v1/messages')) expect(json.type).toBe('error')
      else expect(json.type).toBeUndefined()
    },
  },
  {
    fact: 'a call has failed with a 502 when its provider is silent for longer than x-router-timeout',
    async check(route, world) {
      const silent: Act = () => {}
      const headers = { 'x-router-timeout': `${limit(200)}ms` }
      const { status, json, key } = await callBoth(route, world, [silent], { model: idOf(route), headers })
      expect([status, json?.error?.code]).toEqual([502, 'provider_timeout'])
      if (!route.isFree) expect(await world.rows(key)).toMatchObject([{ outcome: 'failed', error: 'provider_timeout' }])
    },
  },
]

const answers: readonly Step[] = [
  {
    fact: 'an answer has the id of the request, the model that served and how many attempts there were',
    async check(route, world) {
      const headers = { 'x-request-id': 'mine-1' }
      const { headers: replied, status } = await callBoth(route, world, [], { model: idOf(route), headers })
      const names = ['x-request-id', 'x-router-model', 'x-router-attempts']
      expect([status, ...names.map((name) => replied.get(name))]).toEqual([200, 'mine-1', idOf(route), '1'])
    },
  },
  {
    fact: 'an error of a provider has the same headers as an answer',
    async check(route, world) {
      const headers = { 'x-request-id': 'mine-1' }
      const error = failing(400, {}, { message: 'no' })
      const { headers: replied, status } = await callBoth(route, world, [error], { model: idOf(route), headers })
      const names = ['x-request-id', 'x-router-model', 'x-router-attempts']
      expect([status, ...names.map((name) => replied.get(name))]).toEqual([400, 'mine-1', idOf(route), '1'])
    },
  },
  {
    fact: 'x-router-explain: true reports which targets were asked and why',
    async check(route, world) {
      const headers = { 'x-router-explain': 'true' }
      const { json, key } = await callBoth(route, world, [failing(500)], { headers })
      const targets = [{ model: idOf(route, 'one') }, { model: idOf(route, 'two') }]
      if (!route.isBytes) expect(json).toMatchObject({ router: { attempts: 2, explain: { targets } } })
      // The answer in bytes has no place for it.
      if (!route.isFree) {
        const [row] = (await world.rows(key)).filter(({ attemptOf }) => attemptOf === undefined)
        expect(row).toMatchObject({ explanation: { targets } })
      }
    },
  },
  {
    fact: 'x-router-explain: true reports why a call was refused',
    async check(route, world) {
      const headers = { 'x-router-explain': 'true' }
      const body = { provider: { only: ['nobody'] } }
      const { status, json } = await callBoth(route, world, [], { headers, body })
      const skipped = [{ model: idOf(route, 'one'), step: 'wished' }, { step: 'wished' }]
      expect([status, json?.error?.router]).toMatchObject([404, { attempts: 0, explain: { skipped } }])
    },
  },
  {
    fact: 'x-router-explain: true reports why a provider failed',
    async check(route, world) {
      const headers = { 'x-router-explain': 'true' }
      const error = failing(400, {}, { message: 'no' })
      const { status, json } = await callBoth(route, world, [error], { headers })
      const attempts = [{ model: idOf(route, 'one'), status: 400 }]
      expect([status, json?.error?.router]).toMatchObject([400, { attempts: 1, explain: { attempts } }])
    },
  },
  {
    fact: 'a model that costs more and has served is charged, and named',
    async check(route, world) {
      const served = `${route.models}-costly`
      const { headers, key } = await callBoth(route, world, [answering({ model: served })], { model: idOf(route) })
      expect(headers.get('x-router-model')).toBe(`one-${route.format}/${served}`)
      const usual = await callBoth(route, world, [], { model: idOf(route) })
      const [cost = 0, usually = 0] = await Promise.all(
        [key, usual.key].map(async (one) => (await world.rows(one))[0]?.cost.nanoUsd),
      )
      expect(usually).toBeGreaterThan(0)
      expect(cost).toBe(usually * 50)
      expect(await world.rows(key)).toMatchObject([{ served }])
    },
    except: [noRow, { at: ({ isBytes }) => isBytes === true, because: 'an answer in bytes names no model' }],
  },
]

/** A client that disconnects before its call is answered. */
const leaving: Step = {
  fact: 'a client that leaves before the answer has a row, pays the prompt, and ends the request to the provider',
  async check(route, world) {
    const key = await world.keyOfOwn()
    const begun = Promise.withResolvers<void>()
    const left = Promise.withResolvers<void>()
    world.acts.one.push((_, request) => {
      begun.resolve()
      void request.left.then(left.resolve)
    })
    const client = new AbortController()
    const call = world.fetch(route, { secret: key.secret, signal: client.signal })
    await within(10_000, 'the request', begun.promise)
    client.abort()
    await expect(call).rejects.toThrow()
    await within(10_000, 'to leave the provider', left.promise)
    if (route.isFree) return
    await expect.poll(() => world.rows(key)).toMatchObject([{ outcome: 'failed', status: 499, error: 'client_gone' }])
    const [row] = await world.rows(key)
    expect([row?.cost.estimated, (row?.cost.nanoUsd ?? 0) > 0]).toEqual([true, true])
  },
}

export const attempts: Scenario = {
  name: 'attempts and replies',
  start: plainWorld,
  steps: [...failures, ...answers, leaving],
}

export const retries: Scenario = {
  name: 'retries',
  start: () => callWorld({ settings: { routing: { retries: 1 } } }),
  steps: retried,
}
