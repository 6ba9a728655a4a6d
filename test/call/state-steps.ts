import { renameSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { expect } from 'vitest'
import { within } from '../helpers/provider.ts'
import { testKey } from '../helpers/router.ts'
import { eventually } from '../helpers/time.ts'
import { fieldOf } from './answers.ts'
import { type Route, routes } from './examples.ts'
import { acting, shared } from './plugin-steps.ts'
import { counting, type Scenario, type Step } from './table.ts'
import { type Answer, type Asking, bytesOf, callWorld, idOf, type Keyed, ownVariant, type World } from './world.ts'

// Calls while the ledger cannot be written, and during a shutdown. All routes are called at once, before the cells are checked.

/** The answers of one occasion, by path. */
type Answers = Map<string, Answer>
export type Status = Pick<Answer, 'status' | 'json'>

async function atAll<Result>(ask: (route: Route) => Promise<Result>): Promise<Map<string, Result>> {
  const all = await Promise.all(routes.map(async (route) => [route.path, await ask(route)] as const))
  return new Map(all)
}

/** Takes the database away, so that rows cannot be written, until it is given back. `call` makes a call, whose row fails first. */
export async function takeLedgerAway({ router }: World, call: () => Promise<unknown>): Promise<() => Promise<void>> {
  const path = join(router.folder, 'data/router.sqlite')
  renameSync(path, `${path}-away`)
  await call()
  return async () => {
    renameSync(`${path}-away`, path)
    await eventually(async () => expect((await router.call('/ready')).status).toBe(200))
  }
}

const occasions: { plain: Answers; waited: Answers; after: Answers } = {
  plain: new Map(),
  waited: new Map(),
  after: new Map(),
}
/** The models that providers were asked for meanwhile: each route has its own. */
let modelsMeanwhile: unknown[] = []

/** Calls all routes while rows cannot be written: as usual, and such as have waited for a plugin when that began. */
async function callWithoutLedger(): Promise<World> {
  const world = await callWorld(acting)
  const ask = async (route: Route, asking: Asking = {}) => {
    const model = idOf(route, 'one', ownVariant(route))
    return world.ask(route, { secret: (await world.key()).secret, model, ...asking })
  }
  const gate = Promise.withResolvers<void>()
  shared.gate = gate.promise
  shared.notes.length = 0
  const waiting = atAll((route) => ask(route, { headers: { 'x-act': 'wait' } }))
  await eventually(() => expect(shared.notes.filter(([hook]) => hook === 'request')).toHaveLength(routes.length))
  const giveBack = await takeLedgerAway(world, () => world.ask(routes[0] as Route, { secret: testKey }))
  expect((await world.router.call('/ready')).status).toBe(503)
  world.clear()
  gate.resolve()
  occasions.waited = await within(20_000, 'the calls that waited', waiting)
  occasions.plain = await atAll((route) => ask(route))
  modelsMeanwhile = world.received.map((received) => fieldOf(received, 'model'))
  await giveBack()
  occasions.after = await atAll((route) => ask(route))
  return world
}

function expectUnavailable({ status, json }: Status): void {
  expect([status, json?.error?.code]).toEqual([503, 'unavailable'])
}

const unrecorded = (answers: () => Answers) =>
  counting('it has no row that would have to be written', async ({ path }) => {
    expect(answers().get(path)?.status).toBe(200)
  })

const ledgerSteps: readonly Step[] = [
  {
    fact: 'a call is refused with 503 while its row could not be written',
    check: async ({ path }) => expectUnavailable(occasions.plain.get(path) as Answer),
    except: [unrecorded(() => occasions.plain)],
  },
  {
    fact: 'a call that has waited for a plugin is refused with 503 when its row could not be written any more',
    check: async ({ path }) => expectUnavailable(occasions.waited.get(path) as Answer),
    except: [unrecorded(() => occasions.waited)],
  },
  {
    fact: 'a provider is not asked while the row of the call could not be written',
    check: async (route) => expect(modelsMeanwhile).not.toContain(`${route.models}${ownVariant(route)}`),
    except: [counting('it has no row that would have to be written')],
  },
  {
    fact: 'a call is served when rows can be written again',
    check: async ({ path }) => expect(occasions.after.get(path)?.status).toBe(200),
  },
]

export const ledgerFailure: Scenario = {
  name: 'while the ledger cannot be written',
  start: callWithoutLedger,
  steps: ledgerSteps,
}

/** Makes a request over a connection that is open already. */
export async function requestOver(
  agent: Agent,
  url: string,
  { body, ...options }: { method: string; headers: Record<string, string | number>; body?: Buffer },
): Promise<Status> {
  const { promise, resolve, reject } = Promise.withResolvers<Status>()
  const call = request(url, { ...options, agent }, async (response) => {
    try {
      const text = Buffer.concat(await response.toArray()).toString('utf8')
      const isJson = /json/.test(response.headers['content-type'] ?? '')
      resolve({ status: response.statusCode ?? 0, json: isJson ? JSON.parse(text) : undefined })
    } catch (thrown) {
      reject(thrown)
    }
  })
  call.on('error', reject).end(body)
  return await promise
}

/** Calls a route over a connection that is open already. */
export async function callOver(
  agent: Agent,
  world: World,
  route: Route,
  secret: string,
  more: Record<string, string> = {},
): Promise<Status> {
  const { bytes, type } = await bytesOf(route)
  const headers = { ...more, authorization: `Bearer ${secret}`, 'content-type': type, 'content-length': bytes.length }
  return await requestOver(agent, world.router.url + route.path, { method: 'POST', headers, body: bytes })
}

/** Opens a connection, and keeps it: the agent has one. */
export async function connected(world: World): Promise<Agent> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const asked = request(`${world.router.url}/health`, { agent }, (response) => response.on('end', resolve).resume())
  asked.on('error', reject).end()
  await promise
  return agent
}

const stopped: { late: Map<string, Status>; running: Map<string, Status>; keys: Map<string, Keyed> } = {
  late: new Map(),
  running: new Map(),
  keys: new Map(),
}

/** Stops a router while a call of each route runs, and calls each route once more. */
async function callWhileStopping(): Promise<World> {
  const world = await callWorld()
  const agents = await atAll(() => connected(world))
  stopped.keys = await atAll(async () => await world.key())
  const keyOf = ({ path }: Route) => stopped.keys.get(path) as Keyed
  const begun = Promise.withResolvers<void>()
  let waiting = routes.length
  // They are never answered.
  world.acts.one.push(...routes.map(() => () => void (--waiting === 0 && begun.resolve())))
  const running = atAll((route) => world.ask(route, { secret: keyOf(route).secret }))
  await within(20_000, 'all calls', begun.promise)
  const stopping = world.router.stop(1_500)
  stopped.late = await atAll((route) => callOver(agents.get(route.path) as Agent, world, route, keyOf(route).secret))
  stopped.running = await within(20_000, 'the running calls', running)
  await stopping
  for (const agent of agents.values()) agent.destroy()
  return world
}

const stoppingSteps: readonly Step[] = [
  {
    fact: 'a call that comes while the router stops is refused with 503',
    async check({ path }) {
      const { status, json } = stopped.late.get(path) as Status
      expect([status, json?.error?.code]).toEqual([503, 'stopping'])
    },
  },
  {
    fact: 'a call that runs when the time to stop is up fails with 503, and has its row',
    async check({ path, isFree }, world) {
      const { status, json } = stopped.running.get(path) as Status
      expect([status, json?.error?.code]).toEqual([503, 'stopping'])
      if (isFree) return
      const rows = await world.rows(stopped.keys.get(path) as Keyed)
      expect(rows).toMatchObject([{ outcome: 'failed', status: 503, error: 'stopping' }])
    },
  },
]

export const shutdown: Scenario = { name: 'shutdown', start: callWhileStopping, steps: stoppingSteps }
