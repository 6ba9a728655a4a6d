import { expect, test } from 'vitest'
import { definePlugin, Refusal, type StreamedEvent } from '../../src/plugin/contract.ts'
import { openPlugin } from '../../src/plugin/test-kit.ts'

const seen = definePlugin<{ word: string; secret: string }>({
  options: {
    properties: { word: { type: 'string' }, secret: { type: 'string', default: '$HOOK' } },
    required: ['word'],
  },
  setup({ word, secret }, { log, secret: reveal, values, fetch }) {
    let held = ''
    return {
      async request(request, { state, requested }) {
        state.requested = requested
        if (!('chat' in request)) return undefined
        const [part] = request.chat.messages[0]?.parts ?? []
        if (part?.type === 'text' && part.text === 'refuse') throw new Refusal(403, 'No.', { param: 'messages' })
        if (part?.type === 'text' && part.text === 'answer') {
          const chat = {
            id: '',
            created: 0,
            parts: [{ type: 'text' as const, text: word }],
            finish: 'stop' as const,
            usage: {},
          }
          return { reply: { operation: 'chat', chat }, headers: { 'x-by': 'me' } }
        }
        await values.set('word', word)
        return { request: { ...request, chat: { ...request.chat, temperature: 0 } }, headers: { 'x-seen': '1' } }
      },
      targets: (targets) => targets.toReversed(),
      send: ({ id }) => ({ 'X-Target': id }),
      event(event): readonly StreamedEvent[] | undefined {
        if ('json' in event) return undefined
        if (event.done) return [{ text: held.toUpperCase() }, event]
        if (event.text === undefined) return undefined
        held += event.text
        return []
      },
      reply: (reply, { state }) => {
        state.replied = 'chat' in reply && reply.chat.parts
        return 'chat' in reply && reply.chat.model === 'other'
          ? { ...reply, chat: { ...reply.chat, parts: [] } }
          : undefined
      },
      async record({ outcome, status }, { state }) {
        const answer = await fetch('https://hook.test').then((response) => response.text())
        log.info(
          { ...state, outcome, status, value: (await values.get('word')) ?? null, secret: reveal(secret), answer },
          'ended',
        )
      },
    }
  },
})
const setup = { options: { word: 'plum' }, secrets: { HOOK: 's3' }, fetch: async () => new Response('ok') }

test('a call goes through all hooks, in the order of the router', async () => {
  await using tested = await openPlugin(seen, setup)
  const targets = ['a/m', 'b/m'].map((id) => ({ id, provider: id, model: 'm' }))
  const { forwarded, asked, ...ended } = await tested.call({ text: 'Hi', answer: 'A plum.', targets })
  expect(asked).toBe(forwarded)
  expect(forwarded).toMatchObject({ chat: { temperature: 0, messages: [{ parts: [{ text: 'Hi' }] }] } })
  expect(ended).toMatchObject({ text: 'A plum.', headers: { 'x-seen': '1' }, sent: { 'x-target': 'b/m' }, events: [] })
  expect(ended.targets.map(({ id }) => id)).toEqual(['b/m', 'a/m'])
  expect(tested.logged).toEqual([
    {
      level: 'info',
      message: 'ended',
      facts: {
        requested: 'acme/model',
        replied: [{ type: 'text', text: 'A plum.' }],
        outcome: 'complete',
        status: 200,
        value: 'plum',
        secret: 's3',
        answer: 'ok',
        plugin: 'tested',
      },
    },
  ])
})

test('a plugin may refuse a call, answer it, and change its answer', async () => {
  await using tested = await openPlugin(seen, setup)
  const refused = await tested.call({ text: 'refuse' })
  expect(refused).toMatchObject({ refusal: { status: 403, message: 'No.', param: 'messages' }, text: '' })
  expect(tested.logged.at(-1)?.facts).toMatchObject({ outcome: 'failed', status: 403 })
  const answered = await tested.call({ text: 'answer' })
  expect([answered.text, answered.forwarded, answered.headers]).toEqual(['plum', undefined, { 'x-by': 'me' }])
  expect((await tested.call({ answer: { model: 'other', parts: [{ type: 'text', text: 'x' }] } })).text).toBe('')
})

test('a stream is cut anywhere, and ends with what was held back', async () => {
  for (const stream of [true, [1], [2, 3], [100]] as const) {
    await using tested = await openPlugin(seen, setup)
    const { text, events, reply } = await tested.call({ answer: 'A plum.', stream })
    expect([text, reply]).toMatchObject(['A PLUM.', { chat: { parts: [{ text: 'A PLUM.' }], finish: 'stop' } }])
    expect(events.at(-1)).toEqual({ text: 'A PLUM.' })
    expect(tested.logged[0]?.facts.replied).toEqual([{ type: 'text', text: 'A plum.' }])
  }
  await using tested = await openPlugin(seen, setup)
  expect((await tested.call({ events: [{ text: 'a' }, { text: 'b' }, { finish: 'stop' }, { done: true }] })).text).toBe(
    'AB',
  )
})

test('other operations go through as well', async () => {
  await using tested = await openPlugin(seen, setup)
  const request = { operation: 'embed' as const, model: 'demo/embed', fields: { input: 'a' } }
  const { forwarded, reply } = await tested.call({ request, answer: { json: { data: [] } } })
  expect([forwarded, reply]).toEqual([request, { operation: 'embed', json: { data: [] } }])
})

test('what a hook may not do fails the test', async () => {
  const withHooks = (hooks: object) => openPlugin({ setup: () => hooks as never })
  await expect((await withHooks({ request: () => ({ answer: 1 }) })).call()).rejects.toThrow(
    "has an unknown member 'answer'",
  )
  await expect((await withHooks({ event: () => 'x' })).call({ stream: true })).rejects.toThrow('a list of events')
  await expect((await withHooks({ send: () => ({ authorization: 'x' }) })).call()).rejects.toThrow('may not send')
  const mutates = (request: { chat: { model: string } }) => {
    request.chat.model = 'other'
  }
  await expect((await withHooks({ request: mutates })).call()).rejects.toThrow(/read only/)
  await expect((await openPlugin(seen, { options: { word: 'a' } })).call()).rejects.toThrow('no network in tests')
  await expect(withHooks({ requests() {} })).rejects.toThrow('unknown member `requests`')
  await expect(openPlugin(seen)).rejects.toThrow('`options` needs `word`')
})
