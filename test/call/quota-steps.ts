import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { pause, within } from '../helpers/provider.ts'
import { testKey } from '../helpers/router.ts'
import { eventually, limit } from '../helpers/time.ts'
import { answers } from './answers.ts'
import { type Route, routes } from './examples.ts'
import { isCompact, lastPath } from './plugin-steps.ts'
import { callOver, connected, requestOver, type Status, takeLedgerAway } from './state-steps.ts'
import { counting, type Scenario, type Step } from './table.ts'
import { callWorld, type Keyed, type World } from './world.ts'

// Calls that wait for quota which another thread holds. Two threads serve: while a plugin keeps one of them busy, calls of the other one
// wait for the quota that the first one still holds.

const folder = mkdtempSync(join(tmpdir(), 'quota-'))
const flag = join(folder, 'busy')
/** A file that exists while a thread is busy. */
const sign = join(folder, 'is-busy')

/** Answers of the plugin, by path. */
const replies = Object.fromEntries(
  Object.entries(answers).map(([path, make]) => [path, make({} as never, { model: 'own', uncounted: true })]),
)

/** A plugin that keeps its thread busy as long as a file is there, and one that answers calls. */
const plugins = {
  'plugins/busy.ts': `
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { definePlugin } from 'inference-router/plugin'
const sleeper = new Int32Array(new SharedArrayBuffer(4))
export default definePlugin<any>({ setup: () => ({
  request() {
    writeFileSync(${JSON.stringify(sign)}, '')
    while (existsSync(${JSON.stringify(flag)})) Atomics.wait(sleeper, 0, 0, 5)
    rmSync(${JSON.stringify(sign)})
  },
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
async function keepBusy(agent: Agent, world: World): Promise<{ letGo(): Promise<void> }> {
  writeFileSync(flag, '')
  const { secret } = await world.key({ plugins: { busy: true } })
  const [route] = routes
  const call = callOver(agent, world, route as Route, secret)
  await eventually(() => expect(existsSync(sign)).toBe(true))
  return {
    async letGo() {
      rmSync(flag)
      await within(20_000, 'the busy thread', call)
    },
  }
}

/** Returns true when the thread at a connection answers, false while it is busy. */
async function isAnswered(agent: Agent, world: World): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>()
  request(`${world.router.url}/health`, { agent }, (response) => response.on('end', () => resolve(true)).resume())
    .on('error', reject)
    .end()
  return await Promise.race([promise, pause(limit(300)).then(() => false)])
}

/** Connections to both threads: the system gives each of them about half. */
async function connections(world: World): Promise<Threads> {
  const agents = await Promise.all(Array.from({ length: 8 * routes.length }, () => connected(world)))
  const [first, ...others] = agents as [Agent, ...Agent[]]
  const { letGo } = await keepBusy(first, world)
  const open = await Promise.all(others.map((agent) => isAnswered(agent, world)))
  await letGo()
  const busy = [first, ...others.filter((_, index) => !open[index])]
  const other = others.filter((_, index) => open[index])
  expect(Math.min(busy.length, other.length)).toBeGreaterThan(2 * routes.length)
  return { busy, other }
}

/** Results of the waiting calls by path: those that a provider would answer, and those that a plugin answers. */
type Round = { asked: Map<string, Status>; answered: Map<string, Status> }
type Waiting = { route: Route; key: Keyed; isAnswered: boolean }

/** Calls all routes with keys that may make one call at a time, which the busy thread holds, and does something while they wait. */
async function round(
  world: World,
  { busy, other }: Threads,
  meanwhile: (keys: readonly Keyed[]) => Promise<void> = async () => {},
): Promise<Round> {
  const limits = { requestsPerMinute: null, tokensPerMinute: null, concurrentCalls: 1 }
  const waiting: Waiting[] = []
  for (const isAnswered of [false, true])
    for (const route of routes)
      waiting.push({ route, isAnswered, key: await world.key({ limits, plugins: { answers: isAnswered } }) })
  const [blocker, ...callers] = busy as [Agent, ...Agent[]]
  const callAll = (agents: readonly Agent[]) =>
    Promise.all(
      waiting.map(({ route, key }, index) =>
        callOver(agents[index] as Agent, world, route, key.secret, { 'x-path': lastPath(route) }),
      ),
    )
  // Both threads know the key and have quota of its money; the one that is kept busy then holds the only concurrent call as well.
  await callAll(other)
  await callAll(callers)
  const { letGo } = await keepBusy(blocker, world)
  world.clear()
  const calls = callAll(other)
  await pause(limit(200))
  await meanwhile(waiting.map(({ key }) => key))
  await letGo()
  const ended = await within(20_000, 'the calls that waited', calls)
  const all = waiting.map(({ route, isAnswered }, index) => ({ isAnswered, of: [route.path, ended[index]] as const }))
  const endedOf = (which: boolean) =>
    new Map(all.flatMap(({ isAnswered, of: [path, end] }) => (isAnswered === which && end ? [[path, end]] : [])))
  return { asked: endedOf(false), answered: endedOf(true) }
}

const seen: { [name in 'served' | 'revoked' | 'unrecorded']: Round } = {} as never

async function waitForQuota(): Promise<World> {
  const settings = {
    plugins: ['busy', 'answers'].map((name) => ({ name, enabled: false, timeout: '60s' })),
  }
  const world = await callWorld({ files: plugins, settings, threads: 2 })
  const threads = await connections(world)
  // No call that waits has it.
  const free = threads.other.at(-1) as Agent
  seen.served = await round(world, threads)
  seen.revoked = await round(world, threads, async (keys) => {
    const headers = { authorization: `Bearer ${testKey}` }
    for (const { id } of keys) {
      const url = `${world.router.url}/v1/manage/apikey/${id}`
      expect(await requestOver(free, url, { method: 'DELETE', headers })).toMatchObject({ status: 204 })
    }
  })
  let giveBack = async () => {}
  seen.unrecorded = await round(world, threads, async () => {
    giveBack = await takeLedgerAway(world, () => callOver(free, world, routes[0] as Route, testKey))
  })
  await giveBack()
  for (const agent of [...threads.busy, ...threads.other]) agent.destroy()
  rmSync(folder, { recursive: true, force: true })
  return world
}

const unanswered = { at: isCompact, because: 'what a plugin answers to it is not used' }
const unrecorded = (round: () => Map<string, Status>) =>
  counting('it has no row that would have to be written', async ({ path }) => {
    expect(round().get(path)).toMatchObject({ status: 200 })
  })

const steps: readonly Step[] = [
  {
    fact: 'a call that has waited for quota is served',
    check: async ({ path }) => expect(seen.served.asked.get(path)).toMatchObject({ status: 200 }),
  },
  {
    fact: 'a key that is revoked while its call waits for quota is refused with 403',
    check: async ({ path }) => expect(seen.revoked.asked.get(path)).toMatchObject({ status: 403 }),
  },
  {
    fact: 'a key that is revoked while a call that a plugin answers waits for quota is refused with 403',
    check: async ({ path }) => expect(seen.revoked.answered.get(path)).toMatchObject({ status: 403 }),
    except: [unanswered, counting('what a plugin answers to it is not used')],
  },
  {
    fact: 'a call that has waited for quota is refused with 503 when its row could not be written any more',
    check: async ({ path }) => expect(seen.unrecorded.asked.get(path)).toMatchObject({ status: 503 }),
    except: [unrecorded(() => seen.unrecorded.asked)],
  },
  {
    fact: 'a call that a plugin answers and that has waited is refused with 503 when its row could not be written any more',
    check: async ({ path }) => expect(seen.unrecorded.answered.get(path)).toMatchObject({ status: 503 }),
    except: [unanswered, unrecorded(() => seen.unrecorded.answered)],
  },
]

export const quotaWaits: Scenario = { name: 'waits for quota', start: waitForQuota, steps }
