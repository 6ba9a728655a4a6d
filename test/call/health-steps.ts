import { expect } from 'vitest'
import { within } from '../helpers/provider.ts'
import { callBoth, garbage } from './attempt-steps.ts'
import { held } from './money-steps.ts'
import { asked } from './routing-steps.ts'
import type { Scenario, Step } from './table.ts'
import { type Act, answering, callWorld, failing, idOf, ownPolicy, ownVariant, policyOf } from './world.ts'

// Health and concurrency of targets, and the bounds of their answers.

const more: readonly Step[] = [
  {
    fact: 'a call by a policy fails with a 502 when the total time of the policy is over',
    async check(route, world) {
      const asking = { model: policyOf(route, 'brief') }
      world.acts.two.push(() => {})
      const ended = callBoth(route, world, [() => {}], asking)
      const { status, json } = await within(3_000, 'the time of the policy', ended)
      expect([status, json?.error?.code]).toEqual([502, 'provider_timeout'])
    },
  },
  {
    fact: 'a silent target leaves the next one time to serve within the total time of the policy',
    async check(route, world) {
      const { status } = await callBoth(route, world, [() => {}], { model: policyOf(route, 'brief') })
      expect([status, asked(world)]).toEqual([200, ['one', 'two']])
    },
  },
  {
    fact: 'a provider that refuses the credential of the router is a 502 without details for the client',
    async check(route, world) {
      const { status, json } = await callBoth(route, world, [failing(401)], { model: idOf(route, 'one', '-larger') })
      expect([status, json?.error?.code]).toEqual([502, 'provider_refused'])
    },
  },
  {
    fact: 'the key of a caller is not repeated where it stands in place of a model',
    async check(route, world) {
      const { text, status, key } = await callBoth(route, world, [], { model: 'one-chat/nobody' })
      expect(status).toBe(404)
      const repeated = await callBoth(route, world, [], { model: key.secret, secret: key.secret })
      expect([repeated.status, repeated.text.includes(key.secret), text.includes('nobody')]).toEqual([404, false, true])
    },
  },
  {
    fact: 'an answer that is too large is a 502',
    async check(route, world) {
      const large: Act = (response) => {
        response.writeHead(200, { 'content-type': 'application/json' }).end(`{"text": "${'x'.repeat(200_000)}"}`)
      }
      const { status, json } = await callBoth(route, world, [large], { model: idOf(route) })
      expect([status, json?.error?.code]).toEqual([502, 'provider_unreadable'])
    },
    except: [
      { at: ({ isBytes }) => isBytes === true, because: 'bytes are sent as they come: what is too large breaks off' },
    ],
  },
  {
    fact: 'an answer with too many values is a 502',
    async check(route, world) {
      const large: Act = (response) => {
        response.writeHead(200, { 'content-type': 'application/json' }).end(`{"list": [${'0,'.repeat(5_000)}0]}`)
      }
      const { status, json } = await callBoth(route, world, [large], { model: idOf(route) })
      expect([status, json?.error?.code]).toEqual([502, 'provider_unreadable'])
    },
    except: [
      {
        at: ({ isBytes, models }) => isBytes === true || models === 'embedding',
        because: 'it is bytes, or as many numbers as vectors have',
      },
    ],
  },
  {
    fact: 'an error of a provider has the rate-limit headers',
    async check(route, world) {
      const limits = { requestsPerMinute: 9, tokensPerMinute: null, concurrentCalls: null }
      const { secret } = await world.key({ limits })
      const { status, headers } = await callBoth(route, world, [failing(400)], { secret, model: idOf(route) })
      expect([status, headers.get('x-ratelimit-remaining-requests')]).toEqual([400, '8'])
    },
  },
]

export const answerBounds: Scenario = {
  name: 'bounds of answers',
  start: () => callWorld({ settings: { answers: { body_limit: '10kb', max_values: 1_000 } } }),
  steps: more,
}

/** Health of targets. Each route has targets of its own here. */
const health: readonly Step[] = [
  {
    fact: 'a target with x-ratelimit-remaining-requests: 0 is passed over',
    async check(route, world) {
      const headers = { 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '60s' }
      const { secret } = await world.keyOfOwn()
      const asking = { secret, model: ownPolicy(route) }
      world.acts.one.push(answering({}, headers))
      expect((await world.ask(route, asking)).status).toBe(200)
      expect((await world.ask(route, asking)).status).toBe(200)
      expect(asked(world)).toEqual(['one', 'two'])
    },
  },
  {
    fact: 'a target that has failed often is passed over',
    async check(route, world) {
      const { secret } = await world.keyOfOwn()
      // The second one, since the step before is about the first.
      const body = { models: [idOf(route, 'one', '-larger')] }
      const asking = { secret, model: idOf(route, 'two', ownVariant(route)), body }
      world.acts.two.push(failing(500), failing(500))
      for (let times = 0; times < 3; times++) expect((await world.ask(route, asking)).status).toBe(200)
      expect(asked(world)).toEqual(['one', 'one', 'one', 'two', 'two'])
    },
  },
  {
    fact: 'a target whose answers could often not be read is passed over',
    async check(route, world) {
      const { secret } = await world.key()
      const variant = `${ownVariant(route)}.again`
      const asking = { secret, model: idOf(route, 'one', variant), body: { models: [idOf(route, 'two')] } }
      world.acts.one.push(garbage, garbage)
      for (let times = 0; times < 3; times++) await world.ask(route, asking)
      expect(world.providers.one.received).toHaveLength(2)
    },
    except: [{ at: ({ isBytes }) => isBytes === true, because: 'bytes of any kind are an answer' }],
  },
]

export const targetHealth: Scenario = {
  name: 'health of targets',
  start: () => callWorld({ settings: { health: { in_a_row: 2, open: '10m', open_most: '10m' } } }),
  steps: health,
}

const busy: readonly Step[] = [
  {
    fact: 'a target that has as many calls as it takes is passed over',
    async check(route, world) {
      const { secret } = await world.keyOfOwn()
      const { act, begun, go } = held()
      world.acts.one.push(act)
      const asking = { secret, model: policyOf(route, 'both') }
      const first = world.ask(route, asking)
      await within(10_000, 'the first call', begun)
      expect((await world.ask(route, asking)).status).toBe(200)
      expect(asked(world)).toEqual(['one', 'two'])
      go()
      expect((await first).status).toBe(200)
      world.clear()
      expect((await world.ask(route, asking)).status).toBe(200)
      expect(asked(world)).toEqual(['one'])
    },
  },
]

export const targetConcurrency: Scenario = {
  name: 'concurrency of a target',
  start() {
    const limited = { limits: { concurrent: 1, queue: 10 } }
    const providers = Object.fromEntries(['chat', 'responses', 'messages'].map((format) => [`one-${format}`, limited]))
    return callWorld({ settings: { providers } })
  },
  steps: busy,
}

const crowded: readonly Step[] = [
  {
    fact: 'a call beyond the calls that the router serves at once is a 429, until the first has ended',
    async check(route, world) {
      const { secret } = await world.key()
      const { act, begun, go } = held()
      world.acts.one.push(act)
      const first = world.ask(route, { secret })
      await within(10_000, 'the first call', begun)
      const { status, headers } = await world.ask(route, { secret })
      expect([status, Number(headers.get('retry-after')) > 0, asked(world)]).toEqual([429, true, ['one']])
      go()
      expect((await first).status).toBe(200)
      world.acts.one.push(failing(400))
      expect((await world.ask(route, { secret })).status).toBe(400)
      expect((await world.ask(route, { secret })).status).toBe(200)
    },
  },
  {
    fact: 'a client that leaves makes room for another call',
    async check(route, world) {
      const { secret } = await world.key()
      const { act, begun, go } = held()
      world.acts.one.push(act)
      const client = new AbortController()
      const first = world.fetch(route, { secret, signal: client.signal })
      await within(10_000, 'the first call', begun)
      client.abort()
      await expect(first).rejects.toThrow()
      await expect.poll(async () => (await world.ask(route, { secret })).status).toBe(200)
      go()
    },
  },
]

/** The router serves one call at a time, and lets none wait. */
export const routerConcurrency: Scenario = {
  name: 'concurrency of the router',
  start() {
    const server = { host: '127.0.0.1', port: 0, threads: 1, limits: { concurrent: 1, queue: 0 } }
    return callWorld({ settings: { server } })
  },
  steps: crowded,
}
