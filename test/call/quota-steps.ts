import type { Agent } from 'node:http'
import { expect } from 'vitest'
import { within } from '../helpers/provider.ts'
import { testKey } from '../helpers/router.ts'
import { eventually } from '../helpers/time.ts'
import { answers } from './answers.ts'
import { type Route, routes } from './examples.ts'
import { isCompact, lastPath } from './plugin-steps.ts'
import { callOver, connected, requestOver, type Status, takeLedgerAway } from './state-steps.ts'
import { counting, type Scenario, type Step } from './table.ts'
import { callWorld, type Keyed, type World } from './world.ts'

// Calls that wait for quota which another instance of the router has been granted.

/** Makes calls wait for their quota while it is closed. `waiting` counts those that do. */
export type QuotaGate = { close(): void; open(): void; waiting(): number }

/** Answers of the plugin, by path. */
const replies = Object.fromEntries(
  Object.entries(answers).map(([path, make]) => [path, make({} as never, { model: 'own', uncounted: true })]),
)

/** A plugin that answers calls. */
const plugins = {
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

/** Results of the waiting calls by path: those that a provider would answer, and those that a plugin answers. */
type Round = { asked: Map<string, Status>; answered: Map<string, Status> }
type Waiting = { route: Route; key: Keyed; isAnswered: boolean }

/** Calls all routes while their quota is not there, and does something before it comes. */
async function round(
  world: World,
  gate: QuotaGate,
  meanwhile: (keys: readonly Keyed[]) => Promise<void> = async () => {},
): Promise<Round> {
  const limits = { requestsPerMinute: null, tokensPerMinute: null, concurrentCalls: 1 }
  const waiting: Waiting[] = []
  for (const isAnswered of [false, true])
    for (const route of routes)
      waiting.push({ route, isAnswered, key: await world.key({ limits, plugins: { answers: isAnswered } }) })
  const agents = await Promise.all(waiting.map(() => connected(world)))
  world.clear()
  gate.close()
  const calls = Promise.all(
    waiting.map(async ({ route, key }, index) => {
      const agent = agents[index] as Agent
      return await callOver(agent, world, route, key.secret, { 'x-path': lastPath(route) }).finally(() =>
        agent.destroy(),
      )
    }),
  )
  await eventually(() => expect(gate.waiting()).toBe(waiting.length))
  await meanwhile(waiting.map(({ key }) => key))
  gate.open()
  const ended = await within(20_000, 'the calls that waited', calls)
  const all = waiting.map(({ route, isAnswered }, index) => ({ isAnswered, of: [route.path, ended[index]] as const }))
  const endedOf = (which: boolean) =>
    new Map(all.flatMap(({ isAnswered, of: [path, end] }) => (isAnswered === which && end ? [[path, end]] : [])))
  return { asked: endedOf(false), answered: endedOf(true) }
}

const seen: { [name in 'served' | 'revoked' | 'unrecorded']: Round } = {} as never

async function waitForQuota(gate: QuotaGate): Promise<World> {
  const world = await callWorld({ files: plugins, settings: { plugins: [{ name: 'answers', enabled: false }] } })
  const free = await connected(world)
  seen.served = await round(world, gate)
  seen.revoked = await round(world, gate, async (keys) => {
    const headers = { authorization: `Bearer ${testKey}` }
    for (const { id } of keys) {
      const url = `${world.router.url}/v1/manage/apikey/${id}`
      expect(await requestOver(free, url, { method: 'DELETE', headers })).toMatchObject({ status: 204 })
    }
  })
  let giveBack = async () => {}
  seen.unrecorded = await round(world, gate, async () => {
    giveBack = await takeLedgerAway(world, () => callOver(free, world, routes[0] as Route, testKey))
  })
  await giveBack()
  free.destroy()
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

/** Calls that wait at this gate. */
export function quotaWaits(gate: QuotaGate): Scenario {
  return { name: 'waits for quota', start: () => waitForQuota(gate), steps }
}
