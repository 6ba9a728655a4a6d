import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { pause, within } from '../helpers/provider.ts'
import { testKey } from '../helpers/router.ts'
import { limit } from '../helpers/time.ts'
import { answers } from './answers.ts'
import { type Route, routes } from './examples.ts'
import { isCompact, lastPath } from './plugin-steps.ts'
import { callOver, connected, requestOver, type Status, takeLedgerAway } from './state-steps.ts'
import { counting, type Scenario, type Step } from './table.ts'
import { callWorld, type Keyed, type World } from './world.ts'

// What becomes of calls that wait for quota which another thread has. Two threads serve: while one of them is busy with a plugin, calls
// of the other one wait for what the first one still has.

const folder = mkdtempSync(join(tmpdir(), 'quota-'))
const flag = join(folder, 'busy')

/** What the plugin answers, by path. */
const replies = Object.fromEntries(
  Object.entries(answers).map(([path, make]) => [path, make({} as never, { model: 'own', uncounted: true })]),
)

/** A plugin that keeps its thread busy as long as a file is there, and one that answers calls. */
export const plugins = {
  'plugins/busy.ts': `
import { existsSync } from 'node:fs'
import { definePlugin } from 'inference-router/plugin'
const sleeper = new Int32Array(new SharedArrayBuffer(4))
export default definePlugin<any>({ setup: () => ({
  request() { while (existsSync(${JSON.stringify(flag)})) Atomics.wait(sleeper, 0, 0, 5) },
}) as any })
`,
  'plugins/answers.ts': `
import { definePlugin } from 'inference-router/plugin'
const replies: any = ${JSON.stringify(replies)}
const chat = { id: '', created: 0, parts: [{ type: 'text', text: 'own' }], finish: 'stop', usage: {} }
export default definePlugin<any>({ setup: () => ({
  request({ operation, ...request }: any, { headers }: any) {
    return { reply: request.chat ? { operation, chat } : { operation, json: replies[headers['x-path']] } }
  },
}) as any })
`,
}

/** The connections to each of the two threads, by which calls reach them. */
type Threads = { busy: Agent[]; other: Agent[] }

/** Keeps a thread busy until it is let go. */
export async function keepBusy(agent: Agent, world: World): Promise<{ letGo(): Promise<void> }> {
  writeFileSync(flag, '')
  const { secret } = world.key({ plugins: { busy: true } })
  const [route] = routes
  const call = callOver(agent, world, route as Route, secret)
  return {
    async letGo() {
      rmSync(flag)
      await within(20_000, 'the busy thread', call)
    },
  }
}

/** Whether a thread answers at a connection, or is busy. */
async function isAnswered(agent: Agent, world: World): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>()
  request(`${world.router.url}/health`, { agent }, (response) => response.on('end', () => resolve(true)).resume())
    .on('error', reject)
    .end()
  return await Promise.race([promise, pause(limit(300)).then(() => false)])
}

/** Connections to both threads, as many as there are routes to the one that is not kept busy. */
export async function connections(world: World): Promise<Threads> {
  const agents = await Promise.all(Array.from({ length: 4 * routes.length }, () => connected(world)))
  const [first, ...others] = agents as [Agent, ...Agent[]]
  const { letGo } = await keepBusy(first, world)
  await pause(limit(100))
  const open = await Promise.all(others.map((agent) => isAnswered(agent, world)))
  await letGo()
  const busy = [first, ...others.filter((_, index) => !open[index])]
  const other = others.filter((_, index) => open[index])
  expect(other.length).toBeGreaterThan(routes.length)
  expect(busy.length).toBeGreaterThan(1)
  return { busy, other }
}

type Round = { keys: Map<string, Keyed>; ended: Map<string, Status> }

/** Calls all routes with keys that may make one call at a time, which the busy thread has, and does something while they wait. */
async function round(
  world: World,
  { busy, other }: Threads,
  {
    plugins = {},
    meanwhile,
  }: { plugins?: Record<string, boolean>; meanwhile(keys: Map<string, Keyed>): Promise<void> },
): Promise<Round> {
  const limits = { requestsPerMinute: null, tokensPerMinute: null, concurrentCalls: 1 }
  const keys = new Map(routes.map(({ path }) => [path, world.key({ limits, plugins })] as const))
  const secretOf = ({ path }: Route) => keys.get(path)?.secret ?? ''
  const [blocker, caller] = busy as [Agent, Agent]
  const call = (agent: Agent, route: Route) =>
    callOver(agent, world, route, secretOf(route), { 'x-path': lastPath(route) })
  // Both threads know the key and have quota of its money; the one that is kept busy then has the only place as well.
  for (const route of routes) {
    await call(other[0] as Agent, route)
    await call(caller, route)
  }
  const { letGo } = await keepBusy(blocker, world)
  await pause(limit(100))
  world.clear()
  const calls = routes.map(async (route, index) => {
    return [route.path, await call(other[index] as Agent, route)] as const
  })
  await pause(limit(200))
  await meanwhile(keys)
  await letGo()
  return { keys, ended: new Map(await within(20_000, 'the calls that waited', Promise.all(calls))) }
}

export const seen: { [name in 'served' | 'revoked' | 'answeredRevoked' | 'unrecorded' | 'answeredUnrecorded']: Round } =
  {} as never

async function waitForQuota(): Promise<World> {
  const settings = {
    plugins: Object.keys(plugins).map((path) => ({ name: nameOf(path), enabled: false, timeout: '60s' })),
  }
  const world = await callWorld({ files: plugins, settings, threads: 2 })
  const threads = await connections(world)
  const answering = { answers: true }
  // The last one has no call that waits.
  const free = threads.other.at(-1) as Agent
  const revokeAll = async (keys: Map<string, Keyed>) => {
    const headers = { authorization: `Bearer ${testKey}` }
    for (const { id } of keys.values()) {
      const url = `${world.router.url}/v1/manage/apikey/${id}`
      expect(await requestOver(free, url, { method: 'DELETE', headers })).toMatchObject({ status: 204 })
    }
  }
  let giveBack = async () => {}
  const takeAway = async () => {
    giveBack = await takeLedgerAway(world, () => callOver(free, world, routes[0] as Route, testKey))
  }
  seen.served = await round(world, threads, { meanwhile: async () => {} })
  seen.revoked = await round(world, threads, { meanwhile: revokeAll })
  seen.answeredRevoked = await round(world, threads, { plugins: answering, meanwhile: revokeAll })
  seen.unrecorded = await round(world, threads, { meanwhile: takeAway })
  await giveBack()
  seen.answeredUnrecorded = await round(world, threads, { plugins: answering, meanwhile: takeAway })
  await giveBack()
  for (const agent of [...threads.busy, ...threads.other]) agent.destroy()
  rmSync(folder, { recursive: true, force: true })
  return world
}

export function nameOf(path: string): string {
  return path.slice('plugins/'.length, -'.ts'.length)
}

const unanswered = { at: isCompact, because: 'what a plugin answers to it is not used' }
const unrecorded = (round: () => Round) =>
  counting('it has no row that would have to be written', async ({ path }) => {
    expect(round().ended.get(path)).toMatchObject({ status: 200 })
  })

const steps: readonly Step[] = [
  {
    holds: 'a call that has waited for quota is served',
    check: async ({ path }) => expect(seen.served.ended.get(path)).toMatchObject({ status: 200 }),
  },
  {
    holds: 'a key that is revoked while its call waits for quota is refused with 403',
    check: async ({ path }) => expect(seen.revoked.ended.get(path)).toMatchObject({ status: 403 }),
  },
  {
    holds: 'a key that is revoked while a call that a plugin answers waits for quota is refused with 403',
    check: async ({ path }) => expect(seen.answeredRevoked.ended.get(path)).toMatchObject({ status: 403 }),
    except: [unanswered, counting('what a plugin answers to it is not used')],
  },
  {
    holds: 'a call that has waited for quota is refused with 503 when its row could not be written any more',
    check: async ({ path }) => expect(seen.unrecorded.ended.get(path)).toMatchObject({ status: 503 }),
    except: [unrecorded(() => seen.unrecorded)],
  },
  {
    holds:
      'a call that a plugin answers and that has waited is refused with 503 when its row could not be written any more',
    check: async ({ path }) => expect(seen.answeredUnrecorded.ended.get(path)).toMatchObject({ status: 503 }),
    except: [unanswered, unrecorded(() => seen.answeredUnrecorded)],
  },
]

export const whileItWaits: Scenario = { name: 'while a call waits for quota', start: waitForQuota, steps }
