import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { answerJson, beginStream } from '../../helpers/provider.ts'
import { eventually } from '../../helpers/time.ts'
import { chunk, type PluginWorld, pluginWorld, type Step, says, streamEnd } from './plugin-world.ts'

const open: PluginWorld[] = []
afterAll(async () => {
  for (const world of open) await world.end()
})
async function worldOf(...given: Parameters<typeof pluginWorld>): Promise<PluginWorld> {
  const world = await pluginWorld(...given)
  open.push(world)
  return world
}

const streams = [{ stream: false }, { stream: true }]

describe('a request hook', () => {
  const changes = `return { request({ chat }, { body }) {
    const text = chat.messages[0].parts[0].text
    if (text === 'stay') return
    if (text.startsWith('refuse')) throw new Refusal(Number(text.slice(7)), 'Not here.', { param: 'messages' })
    if (text === 'elsewhere') return { request: { operation: 'chat', chat: { ...chat, model: 'two/m1' } } }
    if (text === 'answer') return {
      reply: { operation: 'chat', chat: { id: 'old', created: 1, parts: [{ type: 'text', text: 'From here.' }], finish: 'stop', usage: {} } },
      headers: { 'x-answered': 'yes' },
    }
    const messages = [{ role: 'user', parts: [{ type: 'text', text: text.toUpperCase() }] }]
    return { request: { operation: 'chat', chat: { ...chat, messages } }, headers: { 'x-changed': body.model } }
  } }`
  let world: PluginWorld
  beforeEach(async () => {
    world ??= await worldOf({ changes })
    world.providers.one.received.length = 0
    world.providers.two.received.length = 0
  })
  const ask = (text: string, others: object = {}) =>
    world.ask({ messages: [{ role: 'user', content: text }], seed: 7, own_field: 'kept', ...others })

  test('that returns nothing leaves a body as the client wrote it', async () => {
    const { content, status } = await ask('stay')
    expect([status, content]).toEqual([200, 'Hi you.'])
    expect(world.providers.one.received[0]?.body).toMatchObject({ own_field: 'kept', seed: 7 })
  })

  test.each(streams)('changes what is asked, and tells the client by a header: $stream', async (how) => {
    const { content, headers } = await ask('loud', how)
    expect([content, headers.get('x-changed')]).toEqual(['Hi you.', 'one/m1'])
    const { body } = world.providers.one.received[0] ?? {}
    expect(body).toMatchObject({ seed: 7, messages: [{ role: 'user', content: 'LOUD' }] })
    expect(body.stream ?? false).toBe(how.stream)
  })

  test.each([400, 402, 403, 404, 429])('refuses with %i, as the router', async (status) => {
    const refused = await ask(`refuse ${status}`)
    expect(refused.status).toBe(status)
    expect(JSON.parse(refused.text).error).toMatchObject({ origin: 'router', message: 'Not here.', param: 'messages' })
    expect(world.providers.one.received).toEqual([])
  })

  test('chooses another model, which none of the client’s further names stands beside', async () => {
    world.steps.two.push((response) => void response.writeHead(500).end('{}'))
    const { status, headers } = await ask('elsewhere', { models: ['one/m1'] })
    expect([status, headers.get('x-router-model')]).toEqual([502, 'two/m1'])
    expect(world.providers.one.received).toEqual([])
  })

  test.each(streams)('answers: a fresh id, no cost, a row, no provider: $stream', async (how) => {
    const before = (await world.rows()).length
    const { text, content, headers } = await ask('answer', {
      ...how,
      stream_options: how.stream ? { include_usage: true } : undefined,
    })
    expect(content).toBe('From here.')
    expect([headers.get('x-router-model'), headers.get('x-answered')]).toEqual(['plugin/changes', 'yes'])
    expect(text).not.toContain('"old"')
    expect(text).toContain('"cost":0')
    expect(world.providers.one.received).toEqual([])
    const row = (await world.rows())[before]
    expect(row).toMatchObject({
      provider: 'plugin',
      model: 'changes',
      requested: 'one/m1',
      outcome: 'complete',
      cost: { nanoUsd: 0 },
      attempts: 0,
    })
  })

  test.each(streams)('says that it answered where the client wants to know: $stream', async (how) => {
    const before = (await world.rows()).length
    const body = { messages: [{ role: 'user', content: 'answer' }], ...how }
    const { text } = await world.ask(body, { 'x-router-explain': 'true' })
    expect(text).toContain('"router":{"attempts":0,"explain":{"plugin":"changes","attempts":[]')
    expect((await world.rows())[before]?.explanation).toMatchObject({ plugin: 'changes', attempts: [] })
    expect((await world.ask(body)).text).not.toContain('"router"')
  })

  test('does not answer who may not ask the model', async () => {
    const { status } = await ask('answer', { model: 'one/none' })
    expect(status).toBe(404)
  })
})

describe('answers', () => {
  const loud = `return {
    reply({ chat }) { return { operation: 'chat', chat: { ...chat, parts: chat.parts.map((part) => part.type === 'text' ? { ...part, text: part.text.toUpperCase() } : part) } } },
    event(event) { return event.text === undefined ? undefined : [{ ...event, text: event.text.toUpperCase() }] },
  }`
  const marks = (mark: string) => `return {
    event(event) { return event.done ? [{ text: '${mark}' }, event] : undefined },
    reply({ chat }) { note({ plugin: '${mark}', text: chat.parts.map(({ text }) => text).join('') })
      return { operation: 'chat', chat: { ...chat, parts: [...chat.parts, { type: 'text', text: '${mark}' }] } } },
  }`

  test.each(streams)('are changed from the inside out, and paid as the provider gave them: $stream', async (how) => {
    const world = await worldOf({ outer: marks('<'), loud, inner: marks('>') })
    world.notes.length = 0
    const { content } = await world.ask(how)
    expect(content).toBe('HI YOU.><')
    expect(world.notes).toEqual([
      { plugin: '>', text: 'Hi you.' },
      { plugin: '<', text: 'HI YOU.>' },
    ])
    expect((await world.rows()).at(-1)).toMatchObject({
      outcome: 'complete',
      usage: { input: 3, output: 2 },
      cost: { nanoUsd: 10_000 },
    })
  })

  test('of a stream are shown to a `reply` hook as they came to its plugin, from wherever another one changes them', async () => {
    const sees = 'return { reply({ chat }) { note(chat.parts[0].text) } }'
    const later = `return { event(event, { state }) {
      if (!event.text) return
      if (state.first) return [{ text: event.text.toUpperCase() }]
      state.first = true
    } }`
    const world = await worldOf({ outer: sees, idle: 'return { event() {} }', later, inner: sees })
    world.steps.one.push((response) => {
      beginStream(response)
      response.write(chunk({ content: 'Hi ' }), () =>
        setImmediate(() => response.end(chunk({ content: 'you.' }) + streamEnd)),
      )
    })
    expect((await world.ask({ stream: true })).content).toBe('Hi YOU.')
    expect(world.notes).toEqual(['Hi you.', 'Hi YOU.'])
  })

  test('of a stream end once, after what was held back, and never where the provider broke off', async () => {
    const holds = `return { event(event, { state }) {
      if (event.done) { note('done'); return [{ text: state.held }, event] }
      if (event.text === undefined) return
      state.held = (state.held ?? '') + event.text
      return []
    } }`
    const world = await worldOf({ holds })
    const whole = await world.ask({ stream: true })
    expect([whole.content, world.notes]).toEqual(['Hi you.', ['done']])
    expect(whole.text.match(/"finish_reason":"stop"/g)).toHaveLength(1)
    expect(whole.text).toContain('data: [DONE]')
    world.steps.one.push((response) => {
      beginStream(response)
      response.write(chunk({ content: 'Hi ' }), () => response.destroy())
    })
    const broken = await world.ask({ stream: true })
    expect([broken.content, world.notes]).toEqual(['', ['done']])
    expect(broken.text).toContain('"error"')
    expect(broken.text).not.toContain('[DONE]')
  })

  test('that plugins empty still end', async () => {
    const world = await worldOf({ nothing: 'return { event: () => [] }' })
    const { text, content } = await world.ask({ stream: true })
    expect(content).toBe('')
    expect(text).toContain('"finish_reason":"stop"')
    expect(text).toContain('data: [DONE]')
  })

  test('are gone on with by what the providers said, not by what the client was shown', async () => {
    const policy = (onCut: string) => ({ targets: ['one/m1', 'two/m1'], on_cut: onCut })
    const settings = { policies: { again: policy('restart'), on: policy('continue'), held: policy('hold') } }
    const world = await worldOf({ loud }, { settings })
    const cut = (response: Parameters<typeof beginStream>[0]) => {
      beginStream(response)
      response.write(chunk({ content: 'Once upon ' }), () => response.destroy())
    }
    world.steps.one.push(cut, cut)
    world.steps.two.push(says('Once ', 'upon a time.'))
    const again = await world.ask({ stream: true, model: 'policy/again' })
    expect(again.content).toBe('ONCE UPON A TIME.')
    world.steps.two.push(says('a', ' time.'))
    const on = await world.ask({ stream: true, model: 'policy/on' })
    expect(on.content).toBe('ONCE UPON A TIME.')
    const asked = world.providers.two.received.at(-1)?.body.messages
    expect(asked.at(-1)).toEqual({ role: 'assistant', content: 'Once upon' })
    world.steps.one.push(cut)
    world.steps.two.push(says('Another', ' one.'))
    expect((await world.ask({ stream: true, model: 'policy/held' })).content).toBe('ANOTHER ONE.')
  })

  test('that a `reply` hook leaves as they are stay the provider’s own', async () => {
    const world = await worldOf({ sees: 'return { reply({ chat }) { note(chat.parts) } }' })
    const { text } = await world.ask()
    expect(JSON.parse(text)).toMatchObject({
      system_fingerprint: 'own',
      choices: [{ message: { content: 'Hi you.' } }],
    })
    expect(world.notes).toEqual([[{ type: 'text', text: 'Hi you.' }]])
  })

  test('that cannot be read when a `reply` hook looks at them are failures: another target is asked', async () => {
    const { rows, ...world } = await worldOf(
      { looks: 'return { reply({ chat }) { note(chat.parts) } }' },
      { settings: { policies: { both: { targets: ['one/m1', 'two/m1'] } } } },
    )
    const message = { role: 'assistant', content: 'A picture.', images: [{ image_url: { url: 5 } }] }
    const unreadable: Step = (response) =>
      answerJson(response, {
        ...{ id: 'c1', object: 'chat.completion', created: 1, model: 'm1' },
        choices: [{ index: 0, message, finish_reason: 'stop' }],
        usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
      })
    world.steps.one.push(unreadable, unreadable)
    const { status, content, headers } = await world.ask({ model: 'policy/both' })
    expect([status, content, headers.get('x-router-model')]).toEqual([200, 'Hi you.', 'two/m1'])
    expect(headers.get('x-router-attempts')).toBe('2')
    expect(world.notes).toEqual([[{ type: 'text', text: 'Hi you.' }]])
    // Both have counted what they did.
    const told = (await rows()).map(({ provider, outcome, error, cost, attempts }) => [
      provider,
      outcome,
      error,
      cost.nanoUsd,
      attempts,
    ])
    expect(told.toSorted()).toEqual([
      ['one', 'failed', 'provider_unreadable', 10_000, 1],
      ['two', 'complete', undefined, 5_000, 2],
    ])
    const alone = await world.ask()
    expect([alone.status, JSON.parse(alone.text).error.code]).toEqual([502, 'provider_unreadable'])
    expect(await world.faults()).toEqual([])
  })

  test('that a `reply` hook looks at and passes on are no changes', async () => {
    const world = await worldOf({
      same: 'return { reply: (reply) => reply }',
      copy: 'return { reply: (reply) => ({ ...reply }) }',
    })
    expect(JSON.parse((await world.ask()).text)).toMatchObject({ system_fingerprint: 'own' })
  })

  test('that only a `reply` hook sees are streamed as the provider wrote them', async () => {
    const sees = `return { reply({ chat }, { state }) { note(chat.parts[0].text) } }`
    const world = await worldOf({ sees })
    world.steps.one.push((response) => {
      beginStream(response)
      response.end(chunk({ content: 'Hi', own: 1 }) + streamEnd)
    })
    const { text } = await world.ask({ stream: true })
    expect(text).toContain('"own":1')
    expect(world.notes).toEqual(['Hi'])
  })
})

describe('targets, headers and records', () => {
  test('a targets hook sees the targets in their order and sets another', async () => {
    const world = await worldOf(
      { turns: `return { targets(targets) { note(targets); return targets.toReversed() } }` },
      { settings: { policies: { both: { targets: ['one/m1', 'two/m1'] } } } },
    )
    const { headers } = await world.ask({ model: 'policy/both' })
    expect(headers.get('x-router-model')).toBe('two/m1')
    const facts = { model: 'm1', context_window: 1_000 }
    expect(world.notes).toEqual([
      [
        { id: 'one/m1', provider: 'one', input_price: 2e-6, output_price: 2e-6, ...facts },
        { id: 'two/m1', provider: 'two', input_price: 1e-6, output_price: 1e-6, ...facts },
      ],
    ])
  })

  test('a send hook adds headers beside those of the manifest', async () => {
    const world = await worldOf({ sends: `return { send: ({ id }) => ({ 'X-Target': id, 'x-declared': 'plugin' }) }` })
    await world.ask()
    const { headers } = world.providers.one.received[0] ?? {}
    expect(headers).toMatchObject({
      'x-target': 'one/m1',
      'x-declared': 'manifest',
      authorization: 'Bearer secret-of-one',
    })
  })

  test('a record hook hears of every call once, however it ended', async () => {
    const records = `return {
      request({ chat }) { if (chat.messages[0].parts[0].text === 'no') throw new Refusal(403, 'No.') },
      record({ outcome, status, provider, cost, error }, { state }) { note({ outcome, status, provider, nano: cost.nanoUsd, error }) },
    }`
    const world = await worldOf({ records })
    await world.ask()
    await world.ask({ stream: true })
    world.steps.one.push((response) => void response.writeHead(500).end('{}'))
    await world.ask()
    await world.ask({ messages: [{ role: 'user', content: 'no' }] })
    await world.ask({ model: 'one/none' })
    await eventually(() => expect(world.notes).toHaveLength(5))
    expect(world.notes).toEqual([
      { outcome: 'complete', status: 200, provider: 'one', nano: 10_000, error: undefined },
      { outcome: 'complete', status: 200, provider: 'one', nano: 10_000, error: undefined },
      { outcome: 'failed', status: 502, provider: 'one', nano: 0, error: 'provider_failed' },
      { outcome: 'failed', status: 403, provider: '', nano: 0, error: 'forbidden' },
      { outcome: 'failed', status: 404, provider: '', nano: 0, error: 'model_not_found' },
    ])
  })
})

test('the call of a hook has what the client said of it, no secret of anybody, and its own state', async () => {
  const sees = `return {
    request(_, call) { call.state.began = 1; note({ ...call, headers: call.headers, body: call.body, aborted: call.signal.aborted }) },
    reply(_, call) { note(call.state) },
  }`
  const world = await worldOf({ sees })
  await world.ask({ user: 'u1', metadata: { a: 'b' } }, { 'x-own': '1', 'x-api-key': 'k', cookie: 'c' })
  expect(world.notes).toMatchObject([
    {
      api: 'chat',
      operation: 'chat',
      requested: 'one/m1',
      stream: false,
      user: 'u1',
      metadata: { a: 'b' },
      headers: { 'x-own': '1' },
      body: { model: 'one/m1', user: 'u1' },
      aborted: false,
      state: { began: 1 },
    },
    { began: 1 },
  ])
  expect(JSON.stringify(world.notes)).not.toMatch(/secret-of|"k"|ir-test-key/)
})
