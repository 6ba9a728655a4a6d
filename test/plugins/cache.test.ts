import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { PluginCall, PluginReply, PluginRequest } from 'inference-router/plugin'
import { openPlugin, type TestCall, type TestedPlugin } from 'inference-router/plugin/test'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import cache from '../../plugins/cache/index.ts'
import { chunk, type PluginWorld, pluginWorld, says } from '../e2e/plugins/plugin-world.ts'
import { beginStream } from '../helpers/provider.ts'
import { testKey } from '../helpers/router.ts'
import { describeEach, testEach } from '../helpers/slow.ts'
import { limit } from '../helpers/time.ts'
import { folderOf } from '../manifest/files.ts'

const state = ({ headers }: { headers: Readonly<Record<string, string>> }) => headers['x-router-cache']
const chat = (changes: object = {}): PluginRequest => ({
  operation: 'chat',
  chat: { model: 'acme/model', messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hello' }] }], ...changes },
})

describe('the cache', () => {
  let tested: TestedPlugin
  beforeEach(async () => {
    tested = await openPlugin(cache)
  })
  const call = async (given: TestCall = {}) => await tested.call({ request: chat(), answer: 'First.', ...given })

  test('answers an equal request with the reply that was given, whole or streamed', async () => {
    expect(state(await call())).toBe('MISS')
    const hit = await call({ answer: 'Second.' })
    expect([state(hit), hit.text, hit.forwarded]).toEqual(['HIT', 'First.', undefined])
    expect((await call({ answer: 'Second.', stream: true })).text).toBe('First.')
    expect((await call({ text: 'Other', request: chat({ seed: 1 }), answer: 'Streamed.', stream: [2] })).text).toBe(
      'Streamed.',
    )
    expect((await call({ request: chat({ seed: 1 }), answer: 'Third.' })).text).toBe('Streamed.')
  })

  const tool = { kind: 'function', name: 'look', parameters: { type: 'object' } }
  test.each<[string, TestCall]>([
    ['organization', { facts: { organization: 'organization-2' } }],
    ['model', { request: chat({ model: 'acme/other' }) }],
    ['temperature', { request: chat({ temperature: 0.5 }) }],
    ['length', { request: chat({ max_output_tokens: 5 }) }],
    ['tools', { request: chat({ tools: [tool] }) }],
    ['system prompt', { request: chat({ system: [{ type: 'text', text: 'Be brief.' }] }) }],
    ['user', { request: chat({ user: 'anna' }) }],
    ['unknown field', { request: chat({ extensions: { own: 1 } }) }],
    ['wish about providers', { facts: { body: { provider: { order: ['acme'] } } } }],
    ['header', { facts: { headers: { 'anthropic-beta': 'more' } } }],
    ['unread member', { request: chat({ unread: ['messages.own'] }), facts: { body: { messages: [{ own: 1 }] } } }],
  ])('does not answer what differs by its %s', async (_, other) => {
    await call()
    const asked = await call({ ...other, answer: 'Second.' })
    expect([state(asked), asked.text]).toEqual(['MISS', 'Second.'])
    expect((await call({ ...other, answer: 'Third.' })).text).toBe('Second.')
  })

  test('tells members apart that only the body has', async () => {
    const unread = (own: number): TestCall => ({
      request: chat({ unread: ['messages.own'] }),
      facts: { body: { stream: own === 3, messages: [{ own: Math.min(own, 2) }] } },
    })
    expect(state(await call(unread(1)))).toBe('MISS')
    expect(state(await call(unread(2)))).toBe('MISS')
    expect(state(await call(unread(3)))).toBe('HIT')
  })

  test.each<[string, TestCall]>([
    ['API', { facts: { api: 'messages' } }],
    ['metadata', { request: chat({ metadata: { run: '2' }, store: true, stream: true }) }],
    ['key', { facts: { key: 'key-2', group: 'g' } }],
  ])('answers what differs by its %s alone', async (_, other) => {
    await call()
    expect(state(await call(other))).toBe('HIT')
  })

  test('keeps replies for a key or a group alone where it is told so', async () => {
    const ask = async (share: 'key' | 'group') => {
      tested = await openPlugin(cache, { options: { share } })
      const asked = [{ key: 'a', group: 'g' }, { key: 'b', group: 'g' }, { key: 'c' }].map(
        (facts) => () => call({ facts }),
      )
      const states: unknown[] = []
      for (const one of asked) states.push(state(await one()))
      return states
    }
    expect(await ask('key')).toEqual(['MISS', 'MISS', 'MISS'])
    expect(await ask('group')).toEqual(['MISS', 'HIT', 'MISS'])
  })

  test.each<[string, TestCall]>([
    ['was cut off', { answer: { finish: 'length' } }],
    ['was refused', { answer: { finish: 'content_filter' } }],
  ])('keeps no reply that %s', async (_, first) => {
    await call(first)
    expect(state(await call())).toBe('MISS')
    expect(state(await call())).toBe('HIT')
  })

  test('keeps replies with calls of tools, and other operations; not those in several variants', async () => {
    const parts = [{ type: 'tool_call' as const, id: 'c', name: 'look', arguments: '{}' }]
    await call({ answer: { finish: 'tool_calls', parts } })
    expect((await call()).reply).toMatchObject({ chat: { finish: 'tool_calls', parts } })
    const embed = { request: { operation: 'embed', model: 'm', fields: { input: 'x' } } as PluginRequest }
    expect(state(await call({ ...embed, answer: { json: { data: [1] } } }))).toBe('MISS')
    expect(await call({ ...embed, answer: { json: {} } })).toMatchObject({ reply: { json: { data: [1] } } })
    for (const operation of ['image', 'transcribe'] as const) {
      const request: PluginRequest = { operation, model: 'm', fields: {} }
      expect(state(await call({ request, answer: { json: {} } }))).toBe('BYPASS')
    }
    expect(state(await call({ request: chat({ n: 2 }) }))).toBe('BYPASS')
    expect(state(await call({ facts: { operation: 'count' } }))).toBe('BYPASS')
  })

  test('of deterministic requests alone', async () => {
    tested = await openPlugin(cache, { options: { only: 'deterministic' } })
    expect(state(await call())).toBe('BYPASS')
    expect(state(await call({ request: chat({ temperature: 0 }) }))).toBe('MISS')
    expect(state(await call({ request: chat({ temperature: 0 }) }))).toBe('HIT')
  })

  test('does what headers say', async () => {
    const asked = async (headers: Record<string, string>, answer: string) => {
      const { text, refusal, ...ended } = await call({ facts: { headers }, answer })
      return refusal ? [refusal.status, refusal.param] : [state(ended), text]
    }
    expect(await asked({ 'x-router-cache-ttl': '40ms' }, '1')).toEqual(['MISS', '1'])
    expect(await asked({ 'x-router-cache': 'bypass' }, '2')).toEqual(['BYPASS', '2'])
    expect(await asked({}, '3')).toEqual(['HIT', '1'])
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(await asked({}, '4')).toEqual(['MISS', '4'])
    expect(await asked({ 'x-router-cache': 'refresh' }, '5')).toEqual(['MISS', '5'])
    expect(await asked({}, '6')).toEqual(['HIT', '5'])
    await new Promise((resolve) => setTimeout(resolve, 10))
    expect(await asked({ 'x-router-cache-ttl': '5ms' }, '7')).toEqual(['MISS', '7'])
    expect(await asked({ 'x-router-cache': 'no' }, '')).toEqual([400, 'x-router-cache'])
    for (const ttl of ['60', '0s', '31d', '-1s'])
      expect(await asked({ 'x-router-cache-ttl': ttl }, '')).toEqual([400, 'x-router-cache-ttl'])
  })

  test('keeps no more bytes than it may, those that were used last', async () => {
    tested = await openPlugin(cache, { options: { max_bytes: 4_000, max_reply_bytes: 1_000 } })
    const ask = async (seed: number, answer = 'x'.repeat(500)) => state(await call({ request: chat({ seed }), answer }))
    expect([await ask(1), await ask(2), await ask(1), await ask(3), await ask(1), await ask(2)]).toEqual([
      ...['MISS', 'MISS', 'HIT', 'MISS', 'HIT', 'MISS'],
    ])
    await ask(9, 'x'.repeat(1_001))
    expect(await ask(9)).toBe('MISS')
  })

  test('says what is wrong with its options', async () => {
    await expect(openPlugin(cache, { options: { ttl: '1 hour' } })).rejects.toThrow('`ttl` must be')
  })
})

describe('its file', () => {
  const path = () => join(folderOf({}), 'data/replies.sqlite')

  test('outlives the process, is read by other threads, and by nobody else', async () => {
    const file = path()
    {
      await using first = await openPlugin(cache, { options: { file } })
      await first.call({ answer: 'First.' })
    }
    expect(statSync(file).mode & 0o777).toBe(0o600)
    await using second = await openPlugin(cache, { options: { file } })
    await using third = await openPlugin(cache, { options: { file } })
    expect((await second.call({ answer: 'Second.' })).text).toBe('First.')
    const refresh = { facts: { headers: { 'x-router-cache': 'refresh' } } }
    await third.call({ ...refresh, answer: 'Third.' })
    expect((await third.call()).text).toBe('Third.')
  })

  test('does not grow beyond its bound', async () => {
    const file = path()
    await using tested = await openPlugin(cache, { options: { file, max_file_bytes: 1_048_576, max_bytes: 1 } })
    const answer = 'x'.repeat(20_000)
    for (let seed = 0; seed < 300; seed++) await tested.call({ request: chat({ seed }), answer })
    expect(statSync(file).size).toBeLessThan(4 * 1_048_576)
    expect((await tested.call({ request: chat({ seed: 299 }) })).text).toBe(answer)
  })

  test('that cannot be opened is a problem', async () => {
    const file = join(folderOf({ 'a/b': '' }), 'a')
    await expect(openPlugin(cache, { options: { file } })).rejects.toThrow()
  })
})

describe('calls that are equal', () => {
  type Facts = Partial<PluginCall>
  const begin = async (tested: TestedPlugin, state: PluginCall['state'], facts: Facts = {}) => {
    const call = { ...usual, ...facts, state } as PluginCall
    return { call, asked: tested.hooks.request?.(chat(), call) }
  }
  const usual = { organization: 'o', key: 'k', api: 'chat', operation: 'chat', headers: {}, body: {} }
  const signal = () => new AbortController().signal
  const reply = (text: string): PluginReply => ({
    operation: 'chat',
    chat: { id: '', created: 0, parts: [{ type: 'text', text }], finish: 'stop', usage: {} },
  })
  const told = (headers: string) => ({ headers: { 'x-router-cache': headers } })
  const answered = async ({ hooks }: TestedPlugin, call: PluginCall, text: string) => {
    await hooks.reply?.(reply(text), call)
    await hooks.record?.({ outcome: 'complete' } as never, call)
  }

  test('wait for the first one, and ask themselves if it fails', async () => {
    await using tested = await openPlugin(cache)
    const first = await begin(tested, {}, { signal: signal() })
    expect(await first.asked).toEqual(told('MISS'))
    const second = await begin(tested, {}, { signal: signal() })
    const third = await begin(tested, {}, { signal: signal() })
    await tested.hooks.record?.({ error: 'provider_error' } as never, first.call)
    expect([await second.asked, await third.asked]).toEqual([told('MISS'), told('MISS')])
    await answered(tested, third.call, 'Third.')
    expect(await (await begin(tested, {}, { signal: signal() })).asked).toMatchObject({
      ...told('HIT'),
      reply: reply('Third.'),
    })
  })

  test('of whom the first one leaves: the next one asks', async () => {
    await using tested = await openPlugin(cache)
    const first = await begin(tested, {}, { signal: signal() })
    await first.asked
    const second = await begin(tested, {}, { signal: signal() })
    const third = await begin(tested, {}, { signal: signal() })
    await tested.hooks.record?.({ error: 'client_gone' } as never, first.call)
    expect(await second.asked).toEqual(told('MISS'))
    await answered(tested, second.call, 'Second.')
    expect(await third.asked).toMatchObject({ ...told('HIT'), reply: reply('Second.') })
  })

  test('stop waiting when their client leaves, or it takes too long', async () => {
    await using tested = await openPlugin(cache, { options: { wait: '20ms' } })
    await (await begin(tested, {}, { signal: signal() })).asked
    const leaving = new AbortController()
    const second = await begin(tested, {}, { signal: leaving.signal })
    leaving.abort(new Error('left'))
    await expect(second.asked).rejects.toThrow('left')
    expect(await (await begin(tested, {}, { signal: signal() })).asked).toEqual(told('MISS'))
  })
})

describe('through the router', () => {
  const open: PluginWorld[] = []
  afterAll(async () => {
    for (const world of open) await world.end()
  })
  async function cached(options: object = {}): Promise<PluginWorld> {
    const world = await pluginWorld({}, { settings: { plugins: [{ name: 'cache', options }] } })
    open.push(world)
    return world
  }

  test.each([false, true])('a reply that another plugin refuses is not stored; stream: %s', async (stream) => {
    const strict = `return { check: ({ texts }, { headers }) =>
      headers['x-strict'] && texts.some(({ text }) => text.includes('you')) ? new Refusal(451, 'No.') : undefined }`
    const world = await pluginWorld({ strict }, { settings: { plugins: [{ name: 'strict' }, { name: 'cache' }] } })
    open.push(world)
    for (const _ of [1, 2]) {
      const refused = await world.ask({ stream }, { 'x-strict': 'yes' })
      expect([refused.status, refused.text.includes('you')]).toEqual([451, false])
    }
    expect(world.providers.one.received).toHaveLength(2)
    const passed = await world.ask({ stream })
    expect([passed.content, passed.headers.get('x-router-cache')]).toEqual(['Hi you.', 'MISS'])
  })

  testEach([50, 1_000], { slowIf: (count) => count > 50 })(
    '%d equal requests at once ask a provider once; hits cost nothing and are in the ledger',
    async (count) => {
      const world = await cached()
      const { promise: free, resolve: answer } = Promise.withResolvers<void>()
      world.steps.one.push(async (response, request) => {
        await free
        await says('Once.')(response, request)
      })
      const asked = Array.from({ length: count }, (_, index) => world.ask({ stream: index % 2 === 1 }))
      const running = async () => {
        const text = await (await world.router.call('/metrics')).text()
        return Number(/^inference_router_requests_running (\d+)$/m.exec(text)?.[1])
      }
      await expect.poll(running, { timeout: limit(15_000) }).toBeGreaterThanOrEqual(count)
      expect(world.providers.one.received).toHaveLength(1)
      answer()
      const answers = await Promise.all(asked)
      expect(new Set(answers.map(({ status, content }) => `${status} ${content}`))).toEqual(new Set(['200 Once.']))
      expect(world.providers.one.received).toHaveLength(1)
      const rows = await world.rows()
      expect(rows).toHaveLength(count)
      expect(rows.filter(({ cost }) => cost.nanoUsd > 0)).toHaveLength(1)
      expect(rows.filter(({ provider, model }) => `${provider}/${model}` === 'plugin/cache')).toHaveLength(count - 1)
      expect(new Set(answers.map(({ headers }) => headers.get('x-router-cache')))).toEqual(new Set(['MISS', 'HIT']))
    },
  )

  test('a stream is replayed as one, also of a whole reply, on every API', async () => {
    const world = await cached()
    await world.ask({ stream: true })
    const hit = await world.ask({ stream: true })
    expect([hit.headers.get('x-router-cache'), hit.headers.get('content-type')]).toEqual([
      'HIT',
      expect.stringContaining('text/event-stream'),
    ])
    expect([hit.content, hit.text.trimEnd().endsWith('data: [DONE]')]).toEqual(['Hi you.', true])
    const whole = await world.ask()
    expect([whole.headers.get('x-router-cache'), whole.content]).toEqual(['HIT', 'Hi you.'])
    expect(JSON.parse(whole.text).usage).toMatchObject({ prompt_tokens: 3, cost: 0 })
    const body = { model: 'one/m1', input: 'Hello', stream: true }
    const response = await world.router.call('/v1/responses', body)
    expect([response.headers.get('x-router-cache'), await response.text()]).toEqual([
      'HIT',
      expect.stringContaining('response.completed'),
    ])
    expect(world.providers.one.received).toHaveLength(1)
  })

  describe('whose reply is kept', () => {
    let world: PluginWorld
    const manage = async (path: string, body: object, method = 'POST') => {
      const headers = { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' }
      const response = await fetch(`${world.router.url}/v1/manage/${path}`, {
        method,
        headers,
        body: JSON.stringify(body),
      })
      expect(response.status).toBeLessThan(300)
      return response.status === 204 ? {} : ((await response.json()) as { api_key_id: string; api_key: string })
    }
    const paths = {
      '/v1/chat/completions': { model: 'one/m1', messages: [{ role: 'user', content: 'Hello' }] },
      '/v1/embeddings': { model: 'one/vectors', input: 'Hello' },
    }
    const keyThatHits = async (limits: object = {}, path: keyof typeof paths = '/v1/chat/completions') => {
      const { api_key_id: id, api_key: secret } = (await manage('apikey', { name: 'k', ...limits })) as {
        api_key_id: string
        api_key: string
      }
      const ask = async () => {
        const headers = { authorization: `Bearer ${secret}` }
        const response = await world.router.call(path, paths[path], headers)
        const said = /Hi you\.|\[1,2\]/.exec(await response.text())?.[0]
        return { status: response.status, state: response.headers.get('x-router-cache'), said }
      }
      await (await world.router.call(path, paths[path])).text()
      expect(await ask()).toMatchObject({ status: 200, state: 'HIT', said: expect.any(String) })
      return { id, ask }
    }
    beforeEach(async () => {
      world = await cached()
    })

    describeEach(['/v1/chat/completions', '/v1/embeddings'], { slowIf: (path) => path === '/v1/embeddings' })(
      'at %s',
      (path) => {
        const nothing = { state: null, said: undefined }

        test('is not told to a key that may not ask the model', async () => {
          const { id, ask } = await keyThatHits({}, path)
          await manage(`apikey/${id}/access`, { models: ['two/*'] })
          expect(await ask()).toEqual({ status: 403, ...nothing })
        })

        test.each([
          ['models are not approved', 'org/models', { approved_models: ['two/*'] }],
          ['rules about data forbid the provider', 'org/rules', { geolocation: ['eu'] }],
        ])('is not told to an organization whose %s', async (_, rule, rules) => {
          const { ask } = await keyThatHits({}, path)
          await manage(rule, rules, 'PUT')
          const { status, ...told } = await ask()
          expect([400, 403, 404]).toContain(status)
          expect(told).toEqual(nothing)
        })

        test('is not told to a key that was deleted, or has expired', async () => {
          const gone = await keyThatHits({}, path)
          await manage(`apikey/${gone.id}`, {}, 'DELETE')
          expect(await gone.ask()).toEqual({ status: 403, ...nothing })
          const over = await keyThatHits({}, path)
          await manage(`apikey/${over.id}/expiry`, { expires_at: new Date(Date.now() + 500).toISOString() })
          await expect.poll(async () => (await over.ask()).status, { timeout: 10_000 }).toBe(403)
          expect(await over.ask()).toEqual({ status: 403, ...nothing })
        })

        test('is told to a key whose limit is used up, or 0: it costs nothing', async () => {
          const { id, ask } = await keyThatHits({ monthly_limit: 0.000_000_001 }, path)
          await manage(`apikey/${id}/limit`, { monthly_limit: 0 })
          expect(await ask()).toMatchObject({ status: 200, state: 'HIT' })
        })
      },
    )

    test('is all that a key gets whose limit is used up', async () => {
      const { api_key: secret } = (await manage('apikey', { name: 'k', monthly_limit: 0.000_000_001 })) as {
        api_key: string
      }
      const other = await world.ask({ seed: 3 }, { authorization: `Bearer ${secret}` })
      expect([other.status, other.content]).toEqual([402, ''])
    })
  })

  test('failures are not kept', async () => {
    const world = await cached()
    world.steps.one.push((response) => void response.writeHead(500).end('{}'))
    expect((await world.ask()).status).toBe(502)
    expect((await world.ask()).headers.get('x-router-cache')).toBe('MISS')
    expect((await world.ask()).headers.get('x-router-cache')).toBe('HIT')
  })

  test.each([
    ['breaks off', '{}'],
    ['is cut off', chunk({}, 'length')],
  ])('a stream that %s is not kept', async (_, end) => {
    const world = await cached()
    world.steps.one.push((response) => {
      beginStream(response)
      response.end(chunk({ content: 'Begun' }) + end)
    })
    expect((await world.ask({ stream: true })).content).toBe('Begun')
    expect((await world.ask({ stream: true })).headers.get('x-router-cache')).toBe('MISS')
    expect((await world.ask({ stream: true })).content).toBe('Hi you.')
  })
})
