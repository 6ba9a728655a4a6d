import { afterAll, expect, test } from 'vitest'
import { describeEach } from '../../helpers/slow.ts'
import { eventually } from '../../helpers/time.ts'
import { type PluginWorld, pluginWorld } from './plugin-world.ts'

const open: PluginWorld[] = []
afterAll(async () => {
  for (const world of open) await world.end()
})

/** What a hook does that it should not, and what is counted of it. */
const misdeeds = {
  throws: { does: `throw new Error('my secret place')`, fault: 'threw' },
  rejects: { does: `return Promise.reject(new Error('my secret place'))`, fault: 'threw' },
  'never resolves': { does: 'return new Promise(() => {})', fault: 'took_too_long' },
  'blocks the event loop': { does: 'const end = Date.now() + 200; while (Date.now() < end);', fault: 'took_too_long' },
  'returns something else': { does: 'return 7', fault: 'wrong_result' },
  'changes what it gets': {
    does: 'if (Array.isArray(given)) given.length = 0; else given.operation = given.text = given.id = "other"',
    fault: 'threw',
  },
} as const

type Misdeed = keyof typeof misdeeds

const cases = [
  { hook: 'request', stream: false },
  { hook: 'targets', stream: false },
  { hook: 'send', stream: false },
  { hook: 'reply', stream: false },
  { hook: 'event', stream: true },
] as const

/** A plugin that does it in the hook that the client names. */
function plugin(misdeed: Misdeed): string {
  const names = [...cases.map(({ hook }) => hook), 'record']
  const hook = (name: string) =>
    `${name}(given, { headers }) { if (headers['x-hook'] === '${name}') { ${misdeeds[misdeed].does} } }`
  return `return { ${names.map(hook).join(', ')} }`
}

async function hostile(misdeed: Misdeed, on_error: 'open' | 'closed'): Promise<PluginWorld> {
  // On a busy machine a hook that does nothing may take a tenth of a second: only those that take too long have so little.
  const timeout = misdeeds[misdeed].fault === 'took_too_long' ? '100ms' : '5s'
  const world = await pluginWorld({ bad: plugin(misdeed) }, { said: { bad: { on_error, timeout } } })
  open.push(world)
  return world
}

/** An `event` hook has no time to wait. */
function faultOf(hook: string, misdeed: Misdeed): string {
  const waits = misdeed === 'rejects' || misdeed === 'never resolves'
  return hook === 'event' && waits ? 'wrong_result' : misdeeds[misdeed].fault
}

const fast = new Set<Misdeed>(['throws', 'blocks the event loop', 'never resolves'])

describeEach(Object.keys(misdeeds) as Misdeed[], { slowIf: (misdeed) => !fast.has(misdeed) })(
  'a plugin that %s',
  (misdeed) => {
    test('is gone on without where `on_error` is open', async () => {
      const world = await hostile(misdeed, 'open')
      for (const { hook, stream } of cases) {
        const bad = world.ask({ stream }, { 'x-hook': hook })
        const others = [world.ask({ stream }), world.ask()]
        const contents = (await Promise.all([bad, ...others])).map(({ content }) => content)
        expect([hook, ...contents]).toEqual([hook, 'Hi you.', 'Hi you.', 'Hi you.'])
      }
      const faults = cases.map(({ hook }) => ({ plugin: 'bad', hook, fault: faultOf(hook, misdeed), count: 1 }))
      expect(await world.faults()).toEqual(faults)
      expect((await world.rows()).every(({ outcome }) => outcome === 'complete')).toBe(true)
    })

    test('ends the call where `on_error` is closed, and no other', async () => {
      const world = await hostile(misdeed, 'closed')
      for (const { hook, stream } of cases) {
        const [bad, other] = await Promise.all([world.ask({ stream }, { 'x-hook': hook }), world.ask({ stream })])
        expect([hook, other?.content]).toEqual([hook, 'Hi you.'])
        expectEnded(bad as Awaited<typeof bad>, stream)
      }
      const ended = (await world.rows()).filter(({ outcome }) => outcome !== 'complete')
      expect(ended.map(({ outcome, error, cost }) => ({ outcome, error, paid: cost.nanoUsd > 0 }))).toEqual([
        ...['targets', 'send'].map(() => ({ outcome: 'failed', error: 'plugin_failed', paid: false })),
        ...['reply', 'event'].map(() => ({ outcome: 'partial', error: 'plugin_failed', paid: true })),
      ])
      expect((await world.ask({}, { 'x-hook': 'record' })).content).toBe('Hi you.')
      const hooks = [...cases.map(({ hook }) => hook), ...(misdeed === 'returns something else' ? [] : ['record'])]
      const faults = hooks.map((hook) => ({ plugin: 'bad', hook, fault: faultOf(hook, misdeed), count: 1 }))
      await eventually(async () => expect(await world.faults()).toEqual(faults))
    })
  },
)

test('a failure before the stream of a plugin’s own answer begins is a refusal, as of a whole answer', async () => {
  const chat = `{ id: 'r', created: 1, parts: [{ type: 'text', text: 'Mine.' }], finish: 'stop', usage: {} }`
  const answers = `return { request: () => ({ reply: { operation: 'chat', chat: ${chat} } }) }`
  const world = await pluginWorld({ bad: plugin('throws'), answers }, { said: { bad: { on_error: 'closed' } } })
  open.push(world)
  expect((await world.ask({ stream: true })).content).toBe('Mine.')
  expectEnded(await world.ask({ stream: true }, { 'x-hook': 'event' }), true)
  const refusals = async () => await (await world.router.call('/v1/manage/refusals')).json()
  const expected = { refusals: [{ code: 'plugin_failed', streamed: true }] }
  await eventually(async () => expect(await refusals()).toMatchObject(expected))
  expect((await world.rows()).map(({ outcome, status, error }) => [outcome, status, error])).toEqual([
    ['complete', 200, undefined],
  ])
})

/** With one error of the router, which says nothing of the inside. */
function expectEnded({ status, text, headers }: Awaited<ReturnType<PluginWorld['ask']>>, stream: boolean): void {
  const error = { origin: 'router', code: 'plugin_failed' }
  expect(text).not.toContain('secret place')
  expect(text).toContain("The plugin 'bad' failed")
  if (!stream) {
    expect([status, headers.get('x-should-retry')]).toEqual([500, null])
    expect(JSON.parse(text).error).toMatchObject(error)
    return
  }
  const events = text.split('\n\n').filter(Boolean)
  expect(JSON.parse((events.at(-1) ?? '').replace('data: ', '')).error).toMatchObject(error)
  expect(text).not.toMatch(/\[DONE\]|Hi /)
}

test('a hook that fails after the answer lets the client try again, unless the provider may have acted for it', async () => {
  const world = await hostile('throws', 'closed')
  const shouldRetry = async (tools: object[]) => {
    const body = { model: 'one/m1', input: 'Hi', tools, max_output_tokens: 20 }
    const { status, headers } = await world.router.call('/v1/responses', body, { 'x-hook': 'reply' })
    return [status, headers.get('x-should-retry')]
  }
  expect(await shouldRetry([])).toEqual([500, null])
  expect(await shouldRetry([{ type: 'code_interpreter', container: { type: 'auto' } }])).toEqual([500, 'false'])
})

test('what a hook may not return is a failure: targets that it was not given, headers that are not its own', async () => {
  const returns = (hook: string) =>
    `${hook}: (_, { body }) => body.metadata && JSON.parse(body.metadata.${hook} ?? 'null') ||  undefined`
  const hooks = ['request', 'targets', 'send', 'reply'].map(returns).join(', ')
  const world = await pluginWorld({ bad: `return { ${hooks} }` }, { said: { bad: { on_error: 'closed' } } })
  open.push(world)
  const chat = { model: 'one/m1', messages: [] }
  const reply = { id: '', created: 1, parts: [], finish: 'stop', usage: {} }
  const wrong = [
    { request: { request: { operation: 'embed', model: 'one/m1', fields: {} } } },
    { request: { request: { operation: 'chat', chat: { ...chat, message: [] } } } },
    { request: { request: { operation: 'chat', chat: { ...chat, messages: [{ role: 'user', parts: 'Hi' }] } } } },
    {
      request: {
        request: { operation: 'chat', chat: { ...chat, messages: [{ role: 'user', parts: [{ type: 'texts' }] }] } },
      },
    },
    { request: { request: { operation: 'chat', chat: { ...chat, messages: [{ role: 'tool', parts: [] }] } } } },
    { request: { request: { operation: 'chat', chat: { ...chat, tools: [{ kind: 'function' }] } } } },
    { request: { requests: {} } },
    { request: { headers: { 'set-cookie': 'a' } } },
    { request: { headers: { 'x-request-id': 'a' } } },
    { request: { headers: { 'x-own': 'a\r\nb' } } },
    { request: { reply: { operation: 'chat', chat: { ...reply, finish: 'error' } } } },
    { request: { reply: { operation: 'chat', chat: { ...reply, parts: [{ type: 'text' }] } } } },
    { targets: [{ id: 'three/m1' }] },
    { targets: [{ id: 'one/m1' }, { id: 'one/m1' }] },
    { targets: {} },
    ...['authorization', 'Cookie', 'host', 'content-length', 'transfer-encoding', 'x-api-key', 'api-key', 'a b'].map(
      (name) => ({
        send: { [name]: 'a' },
      }),
    ),
    { send: { 'x-own': 'a\nb' } },
    { send: { 'x-own': 1 } },
    { send: ['x-own'] },
    { reply: { operation: 'chat', json: {} } },
    { reply: { operation: 'chat', chat: { ...reply, parts: [{ type: 'text', text: 1 }] } } },
  ]
  for (const result of wrong) {
    const [[hook = '', value] = []] = Object.entries(result)
    const { status, text } = await world.ask({ metadata: { [hook]: JSON.stringify(value) } })
    expect([result, status, text]).toEqual([result, 500, expect.stringContaining('plugin_failed')])
  }
  const faults = await world.faults()
  expect(faults.map(({ fault }) => fault)).toEqual(faults.map(() => 'wrong_result'))
  expect(faults.reduce((sum, { count }) => sum + count, 0)).toBe(wrong.length)
})

test('whatever a hook gets is frozen, down to its leaves, and what it keeps of a call is its own', async () => {
  const looks = `
    const open = (value, path) => {
      if (typeof value !== 'object' || value === null) return []
      const own = Object.isFrozen(value) ? [] : [path]
      return [...own, ...Object.keys(value).flatMap((name) => open(value[name], path + '.' + name))]
    }
    const sees = (hook) => (given, call) => note([hook, ...open(given, 'given'), ...open({ ...call, state: 0, body: call.body, headers: call.headers }, 'call')])
    const hooks = ['request', 'chat', 'embed', 'targets', 'send', 'event', 'reply', 'check', 'record']
    return Object.fromEntries(hooks.map((hook) => [hook, (given, call) => void sees(hook)(given, call)]))`
  const world = await pluginWorld({ looks })
  open.push(world)
  const asked = { metadata: { run: '1' }, user: 'anna', tools: [{ type: 'function', function: { name: 'look' } }] }
  await world.ask(asked, { 'x-own': '1' })
  await world.ask({ ...asked, stream: true })
  await world.router.call('/v1/embeddings', { model: 'one/vectors', input: ['Hello'] })
  await eventually(() => expect(world.notes.filter((note) => (note as string[])[0] === 'record')).toHaveLength(3))
  // The first is the object that the test makes around the call.
  expect(world.notes).toEqual(world.notes.map((note) => [(note as string[])[0], 'call']))
  expect(new Set(world.notes.map((note) => (note as string[])[0])).size).toBe(9)
})
