import { expect } from 'vitest'
import { pause, within } from '../helpers/provider.ts'
import { limit } from '../helpers/time.ts'
import { eventsFor } from './answers.ts'
import { held } from './money-steps.ts'
import { asked } from './routing-steps.ts'
import { counting, type Scenario, type Step, without } from './table.ts'
import {
  type Act,
  answering,
  callWorld,
  failing,
  idOf,
  type Keyed,
  ownPolicy,
  plainWorld,
  policyOf,
  read,
  type World,
} from './world.ts'

// Rows, metrics and streams.

const noRow = counting('it costs nothing, so that the ledger has no row of it', async (route, world) => {
  const key = await world.key()
  expect((await world.ask(route, { secret: key.secret })).status).toBe(200)
  expect(await world.rows(key)).toEqual([])
})

/** The count of calls that metrics have of a model. */
async function countedCalls(world: World, model: string): Promise<number> {
  const text = await (await world.router.call('/metrics')).text()
  const lines = text.split('\n').filter((line) => line.startsWith('inference_router_calls_total{'))
  return lines.reduce((sum, line) => sum + (line.includes(`model="${model}"`) ? Number(line.split(' ').at(-1)) : 0), 0)
}

/** Counts the running calls of the organization of a key. */
async function underWay(world: World, { organization }: Keyed): Promise<number> {
  const { secret } = await world.key({ organization, permissions: { manage: 'read' } })
  const url = `${world.router.url}/v1/manage/live?events=1`
  const text = await (await fetch(url, { headers: { authorization: `Bearer ${secret}` } })).text()
  return JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? '{}').under_way
}

const rows: readonly Step[] = [
  {
    fact: 'a call has one row with its caller, its target, its tags and its cost',
    async check(route, world) {
      const { id: group } = await world.store.groups.create({
        organization: (await world.key()).organization,
        name: `group of ${route.path}`,
      })
      const key = await world.key({ groupId: group })
      const body = { requesty: { tags: ['a', 'b'], user_id: 'ada', trace_id: 't1', extra: { task: 'greeting' } } }
      const trace = '0af7651916cd43dd8448eb211c80319c'
      const headers = {
        traceparent: `00-${trace}-b7ad6b7169203331-01`,
        'x-request-id': 'mine-2',
        'x-router-tags': 'team=web',
        'x-title': 'Own',
        'x-requesty-color': 'red',
      }
      expect((await world.ask(route, { secret: key.secret, body, headers })).status).toBe(200)
      const metadata = { tags: 'a,b', trace_id: 't1', task: 'greeting', team: 'web', origin_title: 'Own', color: 'red' }
      expect(await world.rows(key)).toMatchObject([
        {
          ...{ requestId: 'mine-2', organization: key.organization, key: key.id, group, requested: idOf(route) },
          ...{ provider: `one-${route.format}`, model: route.models, stream: false, outcome: 'complete', status: 200 },
          ...{ user: 'ada', metadata, dropped: [], attempts: 1, reservedNano: expect.any(Number) },
        },
      ])
      const [row] = await world.rows(key)
      expect(row?.cost.nanoUsd).toBeGreaterThan(0)
      const listed = await world.router.call(`/v1/manage/calls/${row?.id}`)
      expect(await listed.json()).toMatchObject({ id: row?.id, trace_id: trace })
    },
    except: [noRow],
  },
  {
    fact: 'the row is on disk before the last byte of the answer',
    async check(route, world) {
      const key = await world.key()
      const response = await world.fetch(route, { secret: key.secret })
      // A whole answer is sent at once.
      if (!route.isBytes) expect(await world.rows(key)).toHaveLength(1)
      await response.text()
      expect(await world.rows(key)).toHaveLength(1)
    },
    except: [noRow],
  },
  {
    fact: 'the row of a call whose provider counts nothing is marked as estimated',
    async check(route, world) {
      const key = await world.key()
      world.acts.one.push(answering({ uncounted: true }))
      expect((await world.ask(route, { secret: key.secret })).status).toBe(200)
      const [row] = await world.rows(key)
      expect([row?.cost.estimated, (row?.cost.nanoUsd ?? 0) > 0]).toEqual([true, true])
    },
    except: [
      noRow,
      { at: ({ models }) => models === 'image', because: 'images are counted by the router, which is no estimate' },
    ],
  },
  {
    fact: 'the row of a failed call has the error',
    async check(route, world) {
      const key = await world.key()
      world.acts.one.push(failing(400, {}, { message: 'no', code: 'odd' }))
      expect((await world.ask(route, { secret: key.secret })).status).toBe(400)
      expect(await world.rows(key)).toMatchObject([
        { outcome: 'failed', status: 400, error: 'invalid_request', providerCode: 'odd', failure: 'refused' },
      ])
    },
    except: [counting('it has no row')],
  },
  {
    fact: 'metrics count the call',
    async check(route, world) {
      const key = await world.key()
      const before = await countedCalls(world, route.models)
      await world.ask(route, { secret: key.secret })
      world.acts.one.push(failing(400))
      await world.ask(route, { secret: key.secret })
      expect((await countedCalls(world, route.models)) - before).toBe(2)
    },
    except: [counting('metrics count rows, and it has none')],
  },
  {
    fact: 'live figures have a call while it runs',
    async check(route, world) {
      const key = await world.keyOfOwn()
      const { act, begun, go } = held()
      world.acts.one.push(act)
      const call = world.ask(route, { secret: key.secret })
      await within(10_000, 'the call', begun)
      expect(await underWay(world, key)).toBe(1)
      go()
      expect((await call).status).toBe(200)
      expect(await underWay(world, key)).toBe(0)
    },
    except: [counting('live figures are those of calls that have a row')],
  },
  {
    fact: 'usage counts the call',
    async check(route, world) {
      const key = await world.keyOfOwn()
      await world.ask(route, { secret: key.secret })
      const { secret } = await world.key({ organization: key.organization, permissions: { manage: 'read' } })
      const url = `${world.router.url}/v1/manage/org/usage?resolution=day&group_by=key`
      const response = await fetch(url, { headers: { authorization: `Bearer ${secret}` } })
      const { usage } = (await response.json()) as { usage: Record<string, { total_requests: number; spend: number }> }
      const spend = ((await world.rows(key))[0]?.cost.nanoUsd ?? 0) / 1e9
      expect(Object.values(usage)).toMatchObject([{ total_requests: 1, spend }])
    },
    except: [counting('usage is that of rows, and it has none')],
  },
]

export const rowsAndMetrics: Scenario = { name: 'rows and metrics', start: plainWorld, steps: rows }

/** Begins a stream with so many events, then does something else. */
const begins =
  (count: number, then: (response: Parameters<Act>[0]) => void): Act =>
  (response, request) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(eventsFor(request).slice(0, count).join(''), () => then(response))
  }

const noStream = without('stream', 'its API has no streams')
/** The ends of streams that came whole. */
const terminators =
  /\[DONE\]|message_stop|response\.completed|image_(generation|edit)\.completed|transcript\.text\.done|speech\.audio\.done/
/** The events of streams that fail. */
const isError = /"error": ?\{|event: error|response\.failed/

const streamed: readonly Step[] = [
  {
    fact: 'a stream has one row, which is on disk before its last byte',
    async check(route, world) {
      const key = await world.key()
      const { status, text } = await world.ask(route, { secret: key.secret, stream: true })
      expect([status, terminators.test(text)]).toEqual([200, true])
      expect(await world.rows(key)).toMatchObject([
        { stream: true, outcome: 'complete', firstEventMs: expect.any(Number) },
      ])
    },
    except: [noStream],
  },
  {
    fact: 'a stream has the headers of an answer',
    async check(route, world) {
      const { secret } = await world.key({
        limits: { requestsPerMinute: 9, tokensPerMinute: null, concurrentCalls: null },
      })
      const { headers } = await world.ask(route, { secret, stream: true, headers: { 'x-request-id': 'mine-3' } })
      const names = ['x-request-id', 'x-router-model', 'x-router-attempts', 'x-ratelimit-remaining-requests']
      expect(names.map((name) => headers.get(name))).toEqual(['mine-3', idOf(route), '1', '8'])
    },
    except: [noStream],
  },
  {
    fact: 'a stream that breaks off is charged for what came and never ends like a whole one',
    async check(route, world) {
      const key = await world.key()
      world.acts.one.push(begins(1, (response) => response.destroy()))
      const { status, text } = await world.ask(route, { secret: key.secret, stream: true })
      expect([status, terminators.test(text), isError.test(text)]).toEqual([200, false, true])
      expect(await world.rows(key)).toMatchObject([{ outcome: 'partial', status: 502, error: 'provider_cut' }])
      const [row] = await world.rows(key)
      expect([row?.cost.estimated, (row?.cost.nanoUsd ?? 0) > 0]).toEqual([true, true])
    },
    except: [noStream],
  },
  {
    fact: 'a stream whose client leaves is charged for what came',
    async check(route, world) {
      const key = await world.key()
      const left = Promise.withResolvers<void>()
      world.acts.one.push((response, request) => {
        void request.left.then(left.resolve)
        return begins(1, () => {})(response, request)
      })
      const client = new AbortController()
      const response = await world.fetch(route, { secret: key.secret, stream: true, signal: client.signal })
      await response.body?.getReader().read()
      client.abort()
      await within(10_000, 'to leave the provider', left.promise)
      await expect.poll(() => world.rows(key)).toMatchObject([{ outcome: 'partial', error: 'client_gone' }])
      expect((await world.rows(key))[0]?.cost.nanoUsd).toBeGreaterThan(0)
    },
    except: [noStream],
  },
  {
    fact: 'a stream that breaks off before content is the turn of the second target',
    async check(route, world) {
      const { secret } = await world.key()
      world.acts.one.push(begins(0, (response) => response.destroy()))
      const { status, text } = await world.ask(route, { secret, stream: true, model: policyOf(route, 'both') })
      expect([status, asked(world), terminators.test(text)]).toEqual([200, ['one', 'two'], true])
    },
    except: [noStream],
  },
  {
    fact: 'a stream without content in time is the turn of the second target',
    async check(route, world) {
      const { secret } = await world.key()
      world.acts.one.push(begins(0, (response) => response.flushHeaders()))
      const { status, text } = await world.ask(route, { secret, stream: true, model: policyOf(route, 'both') })
      expect([status, asked(world), terminators.test(text)]).toEqual([200, ['one', 'two'], true])
    },
    except: [noStream],
  },
  {
    fact: 'a stream that waits until it is whole is the turn of the second target when it breaks off',
    async check(route, world) {
      const { secret } = await world.key()
      world.acts.one.push(begins(1, (response) => response.destroy()))
      const { text } = await world.ask(route, { secret, stream: true, model: policyOf(route, 'whole') })
      expect([asked(world), terminators.test(text), isError.test(text)]).toEqual([['one', 'two'], true, false])
    },
    except: [noStream],
  },
  {
    fact: 'a stream of a model that costs more and has served is charged for it',
    async check(route, world) {
      const key = await world.key()
      const served = `${route.models}-costly`
      world.acts.one.push(answering({ model: served }))
      await world.ask(route, { secret: key.secret, stream: true })
      expect(await world.rows(key)).toMatchObject([{ served, cost: { nanoUsd: 15 * 100_000 } }])
    },
    except: [
      noStream,
      { at: ({ path }) => /images|audio/.test(path), because: 'the events of its providers name no model' },
    ],
  },
  {
    fact: 'a target whose stream has x-ratelimit-remaining-requests: 0 is passed over',
    async check(route, world) {
      const headers = { 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '60s' }
      const { secret } = await world.key()
      const asking = { secret, model: ownPolicy(route), stream: true }
      world.acts.one.push(answering({}, headers))
      for (let times = 0; times < 2; times++) expect((await world.ask(route, asking)).status).toBe(200)
      expect(asked(world)).toEqual(['one', 'two'])
    },
    except: [noStream],
  },
  {
    fact: 'the last event of a stream reports which targets were asked, where x-router-explain is true',
    async check(route, world) {
      const { secret } = await world.key()
      const { text } = await world.ask(route, { secret, stream: true, headers: { 'x-router-explain': 'true' } })
      const last = text.split('\n').filter((line) => line.startsWith('data: {'))
      const events = last.map((line) => JSON.parse(line.slice(6)))
      expect(events.filter(({ router, response }) => (router ?? response?.router)?.explain)).toHaveLength(1)
    },
    except: [noStream],
  },
  {
    fact: 'a stream that is silent is kept alive by comments or pings',
    async check(route, world) {
      const { secret } = await world.key()
      const go = Promise.withResolvers<void>()
      world.acts.one.push(async (response, request) => {
        const events = eventsFor(request)
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(events[0])
        await go.promise
        response.end(events.slice(1).join(''))
      })
      const response = await world.fetch(route, { secret, stream: true })
      const text = await readUntil(response, /: keep-alive|event: ping/, go.resolve)
      expect(text).toMatch(/: keep-alive|event: ping/)
    },
    except: [noStream],
  },
]

/** Reads a stream up to something, lets it go on, and reads the rest. */
async function readUntil(response: Response, sign: RegExp, go: () => void): Promise<string> {
  let text = ''
  const timer = setTimeout(go, 5_000)
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    if (sign.test(text)) go()
  }
  clearTimeout(timer)
  return text
}

export const streams: Scenario = {
  name: 'streams',
  start: () => callWorld({ settings: { routing: { retries: 0, first_event: '300ms' } }, keepAliveMs: 100 }),
  steps: streamed,
}

const early: readonly Step[] = [
  {
    fact: 'a stream begins with comments before there is content, and fails with an event',
    async check(route, world) {
      const { secret } = await world.key()
      const end = Promise.withResolvers<void>()
      world.acts.one.push(async (response, request) => {
        await end.promise
        await failing(500)(response, request)
      })
      const fetched = world.fetch(route, { secret, stream: true })
      const begun = await Promise.race([fetched, pause(limit(2_000))])
      end.resolve()
      expect(begun && [begun.status, begun.headers.get('content-type')]).toEqual([
        200,
        expect.stringMatching(/text\/event-stream/),
      ])
      const { text } = await read(await fetched)
      expect([/^: /.test(text), isError.test(text), terminators.test(text)]).toEqual([true, true, false])
    },
    except: [noStream],
  },
]

export const earlyStreams: Scenario = {
  name: 'streams with early keep-alive',
  start() {
    const server = { host: '127.0.0.1', port: 0, threads: 1, keep_alive: 'early' }
    return callWorld({ settings: { server }, keepAliveMs: 100 })
  },
  steps: early,
}
