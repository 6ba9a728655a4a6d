import { expect } from 'vitest'
import { within } from '../helpers/provider.ts'
import { limit } from '../helpers/time.ts'
import { revoke } from './access-steps.ts'
import { answers } from './answers.ts'
import type { Route } from './examples.ts'
import { asked, refusalsOf } from './routing-steps.ts'
import { counting, type Exception, type Scenario, type Step, without } from './table.ts'
import { type Answer, type Asking, callWorld, failing, idOf, type Keyed, policyOf, type World } from './world.ts'

// Plugins see every kind of call. The plugin of these tests acts as a header of the call asks.

/** State that the plugin shares with these tests: the hooks that were called, and the gate that it waits for. */
type Shared = {
  notes: (readonly [hook: string, ...facts: unknown[]])[]
  gate: Promise<void>
  asked(): void
  replyTo(path: unknown): unknown
}

export const shared: Shared = {
  notes: [],
  gate: Promise.resolve(),
  asked() {},
  replyTo: (path) => answers[String(path)]?.({} as never, { model: 'own', uncounted: true }),
}
const name = 'what steps share with their plugin'
;(globalThis as { [name: string]: unknown })[name] = shared

const source = `
import { definePlugin, Refusal } from 'inference-router/plugin'
const shared = (globalThis as any)[${JSON.stringify(name)}]
const chat = (text: string) => ({ id: '', created: 0, parts: [{ type: 'text', text }], finish: 'stop', usage: {} })
export default definePlugin<any>({ setup: () => ({
  request(request: any, call: any) {
    shared.notes.push(['request', call.operation])
    const act = call.headers['x-act']
    const model = call.headers['x-model']
    if (act === 'refuse') throw new Refusal(403, 'Not here.')
    if (act === 'wait') return shared.asked(), shared.gate
    if (act === 'announce') return { headers: { 'x-announced': 'yes' } }
    if (act === 'model') return { request: request.chat ? { ...request, chat: { ...request.chat, model } } : { ...request, model } }
    if (act !== 'answer') return undefined
    const { operation } = request
    return { reply: request.chat ? { operation, chat: chat('own') } : { operation, json: shared.replyTo(call.headers['x-path']) } }
  },
  targets(targets: any, call: any) {
    shared.notes.push(['targets', call.operation])
    if (call.headers['x-act'] === 'break') throw new Error('broken')
    return call.headers['x-act'] === 'turn' ? [...targets].reverse() : undefined
  },
  send: ({ id }: any, call: any) => {
    if (call.headers['x-act'] === 'spoil') throw new Error('spoilt')
    return { 'x-target': id }
  },
  event(event: any, call: any) { shared.notes.push(['event', call.operation, event.done === true]) },
  reply(_: any, call: any) { shared.notes.push(['reply', call.operation]) },
  record({ operation, outcome, status }: any, call: any) { shared.notes.push(['record', call.id, operation, outcome, status]) },
}) as any })
`

/** A world with the plugin; what goes wrong in it refuses the call. */
export const acting = {
  files: { 'plugins/acts.ts': source },
  settings: { plugins: [{ name: 'acts', on_error: 'closed', timeout: '60s' }] },
}

/** Calls with a key of its own; `act` is what the plugin is to do. */
async function act(route: Route, world: World, what: string, { key: known, ...asking }: Asking & { key?: Keyed } = {}) {
  const key = known ?? (await world.keyOfOwn())
  shared.notes.length = 0
  const headers = { 'x-act': what, 'x-path': lastPath(route), ...asking.headers }
  return { ...(await world.ask(route, { secret: key.secret, ...asking, headers })), key }
}

/** The end of the path that a provider is asked at, as `answers` has it. */
export function lastPath({ path }: Route): string {
  return path.replace('/v1', '')
}

function notes(hook: string): unknown[] {
  return shared.notes.filter(([name]) => name === hook)
}

/** Returns true for the route that compacts conversations: an answer of a plugin is not used there. */
export const isCompact: Exception['at'] = ({ path }) => path.endsWith('/compact')

/** Expects that the plugin has been shown how the call ended, once. */
async function expectRecord(outcome: string, status: number): Promise<void> {
  await expect
    .poll(() => notes('record'), { timeout: limit(3_000) })
    .toEqual([['record', expect.anything(), expect.anything(), outcome, status]])
}

const hooks: readonly Step[] = [
  {
    fact: 'a plugin sees the request once',
    async check(route, world) {
      expect((await act(route, world, '')).status).toBe(200)
      expect(notes('request')).toHaveLength(1)
    },
  },
  {
    fact: 'a plugin chooses another model',
    async check(route, world) {
      const headers = { 'x-model': idOf(route, 'two') }
      const { status } = await act(route, world, 'model', { headers })
      expect([status, asked(world)]).toEqual([200, ['two']])
    },
  },
  {
    fact: 'a plugin chooses among what the caller may use',
    async check(route, world) {
      const key = await world.key({ accessList: [idOf(route, 'one')] })
      const headers = { 'x-model': idOf(route, 'two') }
      const { status } = await act(route, world, 'model', { key, headers })
      expect([status, asked(world)]).toEqual([403, []])
    },
  },
  {
    fact: 'a plugin refuses a call, which is among the refusals, and gets its record',
    async check(route, world) {
      const { status, json, key } = await act(route, world, 'refuse')
      expect([status, json?.error?.message, asked(world)]).toEqual([403, 'Not here.', []])
      expect(await refusalsOf(world, key)).toMatchObject([{ status: 403 }])
      // A count has no row, and no record either.
      if (!route.isFree) await expectRecord('failed', 403)
    },
  },
  {
    fact: 'a plugin answers a call itself',
    async check(route, world) {
      const { status, headers, key } = await act(route, world, 'answer')
      expect([status, headers.get('x-router-model'), asked(world)]).toEqual([200, 'plugin/acts', []])
      expect(await world.rows(key)).toMatchObject([
        { provider: 'plugin', model: 'acts', outcome: 'complete', attempts: 0 },
      ])
      await expectRecord('complete', 200)
    },
    except: [
      {
        at: (route) => route.isFree === true || isCompact(route),
        because: 'what a plugin answers to it is not used',
        async instead(route, world) {
          const { status } = await act(route, world, 'answer')
          expect([status, asked(world)]).toEqual([200, ['one']])
        },
      },
    ],
  },
  {
    fact: 'an answer of a plugin counts against the limits of its key',
    async check(route, world) {
      const limits = { requestsPerMinute: 1, tokensPerMinute: null, concurrentCalls: null }
      const key = await world.key({ limits })
      const [first, second] = [await act(route, world, 'answer', { key }), await act(route, world, 'answer', { key })]
      expect([first.status, second.status, first.headers.get('x-ratelimit-remaining-requests')]).toEqual([
        200,
        429,
        '0',
      ])
    },
  },
  {
    fact: 'an answer of a plugin is refused to a key that may not call the model',
    async check(route, world) {
      const key = await world.key({ accessList: [idOf(route, 'two')] })
      expect((await act(route, world, 'answer', { key })).status).toBe(403)
    },
  },
  {
    fact: 'a plugin puts the targets in another order',
    async check(route, world) {
      const { status } = await act(route, world, 'turn', { model: policyOf(route, 'both') })
      expect([status, asked(world)]).toEqual([200, ['two']])
    },
  },
  {
    fact: 'a plugin adds headers for the provider to each attempt',
    async check(route, world) {
      world.acts.one.push(failing(500))
      const { status } = await act(route, world, '', { model: policyOf(route, 'both') })
      expect(status).toBe(200)
      const headers = world.received.map((request) => request.headers['x-target'])
      expect(headers).toEqual([idOf(route, 'one'), idOf(route, 'two')])
    },
  },
  {
    fact: 'a plugin sees the whole answer',
    async check(route, world) {
      expect((await act(route, world, '')).status).toBe(200)
      expect(notes('reply')).toHaveLength(1)
    },
    except: [
      counting('of a count plugins see the request alone'),
      { at: isCompact, because: 'of a compacted conversation plugins see the request alone' },
      { at: ({ isBytes }) => isBytes === true, because: 'plugins do not see bytes' },
    ],
  },
  {
    fact: 'a plugin sees the events of a stream, and its end',
    async check(route, world) {
      const { status, text } = await act(route, world, '', { stream: true })
      expect([status, text.length > 0]).toEqual([200, true])
      const events = notes('event')
      expect(events.length).toBeGreaterThan(1)
      expect(events.at(-1)).toEqual(['event', expect.anything(), true])
    },
    except: [without('stream', 'its API has no streams')],
  },
  {
    fact: 'a plugin gets the record of a call that was answered',
    async check(route, world) {
      expect((await act(route, world, '')).status).toBe(200)
      await expectRecord('complete', 200)
    },
    except: [counting('it has no record')],
  },
  {
    fact: 'a plugin gets the record of a call that failed',
    async check(route, world) {
      world.acts.one.push(failing(400))
      expect((await act(route, world, '')).status).toBe(400)
      await expectRecord('failed', 400)
    },
    except: [counting('it has no record')],
  },
  {
    fact: 'a plugin gets the record of a call that the router refused',
    async check(route, world) {
      expect((await act(route, world, '', { model: `one-${route.format}/nobody` })).status).toBe(404)
      await expectRecord('failed', 404)
    },
    except: [
      counting('it has no record'),
      {
        at: ({ file }) => file !== undefined,
        because: 'its model is refused while the form is read, before there is a request',
      },
    ],
  },
  {
    fact: 'headers that a plugin adds are on answers, on errors of providers and on refusals',
    async check(route, world) {
      const answered = await act(route, world, 'announce')
      world.acts.one.push(failing(400))
      const failed = await act(route, world, 'announce')
      const only = { provider: { only: ['nobody'] } }
      const refused = await act(route, world, 'announce', { body: only })
      const announced = [answered, failed, refused].map(({ status, headers }) => [status, headers.get('x-announced')])
      expect(announced).toEqual([
        [200, 'yes'],
        [400, 'yes'],
        [404, 'yes'],
      ])
    },
  },
]

/** A call that waits in the plugin while something else happens. */
async function meanwhile(route: Route, world: World, key: Keyed, happens: () => Promise<void>): Promise<Answer> {
  const gate = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  Object.assign(shared, { gate: gate.promise, asked: begun.resolve })
  const call = act(route, world, 'wait', { key })
  await within(10_000, 'the plugin', begun.promise)
  await happens()
  gate.resolve()
  return await call
}

const failed: readonly Step[] = [
  {
    fact: 'a key that is revoked while a plugin waits is refused with 403',
    async check(route, world) {
      const key = await world.key()
      const { status } = await meanwhile(route, world, key, () => revoke(world, key.id))
      expect([status, asked(world)]).toEqual([403, []])
    },
  },
  {
    fact: 'a call whose plugin fails to choose targets is a 500 that has its row and gives back its place',
    async check(route, world) {
      const limits = { requestsPerMinute: null, tokensPerMinute: null, concurrentCalls: 1 }
      const key = await world.key({ limits })
      const { status, json } = await act(route, world, 'break', { key, model: policyOf(route, 'both') })
      expect([status, json?.error?.code, asked(world)]).toEqual([500, 'plugin_failed', []])
      if (!route.isFree) expect(await world.rows(key)).toMatchObject([{ outcome: 'failed', error: 'plugin_failed' }])
      expect((await act(route, world, '', { key })).status).toBe(200)
    },
  },
  {
    fact: 'a call whose plugin fails to add headers is a 500 that has its row and gives back its place',
    async check(route, world) {
      const limits = { requestsPerMinute: null, tokensPerMinute: null, concurrentCalls: 1 }
      const key = await world.key({ limits })
      const { status, json } = await act(route, world, 'spoil', { key })
      expect([status, json?.error?.code, asked(world)]).toEqual([500, 'plugin_failed', []])
      if (!route.isFree) expect(await world.rows(key)).toMatchObject([{ outcome: 'failed', error: 'plugin_failed' }])
      expect((await act(route, world, '', { key })).status).toBe(200)
    },
  },
]

export const pluginHooks: Scenario = {
  name: 'plugins',
  start: () => callWorld(acting),
  steps: [...hooks, ...failed],
}
