import { afterAll, describe, expect, test } from 'vitest'
import { answerJson, beginStream, within } from '../../helpers/provider.ts'
import { chunk, type PluginWorld, pluginWorld, type Step, streamEnd } from './plugin-world.ts'

const open: PluginWorld[] = []
afterAll(async () => {
  await Promise.all(open.map((world) => world.end()))
})
async function worldOf(...given: Parameters<typeof pluginWorld>): Promise<PluginWorld> {
  const world = await pluginWorld(...given)
  open.push(world)
  return world
}

const refusal = `new Refusal(451, 'Not this.', { code: 'legal_hold' })`
const refused = { message: 'Not this.', code: 'legal_hold', type: 'invalid_request_error', origin: 'router' }

/** Streams these texts, the next one only when the client has seen all before it. */
function inTurn(...texts: string[]): { step: Step; next(): void } {
  const waiting: (() => void)[] = []
  let ready = 1
  const next = () => {
    ready++
    for (const go of waiting.splice(0)) go()
  }
  const step: Step = async (response) => {
    beginStream(response)
    for (const [index, content] of texts.entries()) {
      if (ready <= index) await new Promise<void>((resolve) => waiting.push(resolve))
      response.write(chunk({ content }))
    }
    response.end(streamEnd)
  }
  return { step, next }
}

/** Reads a streamed response piece by piece, and calls `on` with all of the text so far. */
async function read(response: Response, on: (text: string) => void = () => {}): Promise<string> {
  let text = ''
  for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += piece
    on(text)
  }
  return text
}

const ask = (world: PluginWorld, path: string, body: object = {}) => {
  const said = path === '/v1/responses' ? { input: 'Hello' } : { messages: [{ role: 'user', content: 'Hello' }] }
  return world.router.call(path, {
    model: 'one/m1',
    max_tokens: path === '/v1/messages' ? 50 : undefined,
    ...said,
    ...body,
  })
}
const paths = ['/v1/chat/completions', '/v1/messages', '/v1/responses']

describe.each(['open', 'closed'])('with `on_error: %s`, a refusal in', (on_error) => {
  test.each([
    ['thrown by `reply`', `reply() { throw ${refusal} }`],
    ['returned by `reply`', `reply: () => ${refusal}`],
    ['that `reply` rejects with', `async reply() { await null; throw ${refusal} }`],
    ['that `reply` resolves with', `reply: async () => ${refusal}`],
    ['thrown by `check`', `async check() { throw ${refusal} }`],
  ])('a whole answer, %s, is an error with its status and code, and the answer is charged', async (_, hook) => {
    const world = await worldOf({ guard: `return { ${hook} }` }, { said: { guard: { on_error } } })
    for (const path of paths) {
      const response = await ask(world, path)
      const text = await response.text()
      expect([path, response.status]).toEqual([path, 451])
      expect(JSON.parse(text).error).toMatchObject(refused)
      expect(text).not.toContain('Hi')
      expect(response.headers.get('x-should-retry')).toBe('false')
      expect((await world.rows()).at(-1)).toMatchObject({
        ...{ outcome: 'partial', status: 451, error: 'plugin_refused', provider: 'one' },
        ...{ usage: { input: 3, output: 2 }, cost: { nanoUsd: 10_000 } },
      })
    }
    expect(await world.faults()).toEqual([])
  })

  test.each([
    ['thrown by `event`', `event({ text }) { if (text?.includes('you')) throw ${refusal} }`],
    ['returned by `event`', `event: ({ text }) => text?.includes('you') ? ${refusal} : undefined`],
  ])('a stream that has begun, %s, is the error event of the API, and no end of a whole answer', async (_, hook) => {
    const world = await worldOf({ guard: `return { ${hook} }` }, { said: { guard: { on_error } } })
    for (const path of paths) {
      const { step, next } = inTurn('Hi ', 'you.')
      world.steps.one.push(step)
      const response = await ask(world, path, { stream: true })
      const text = await read(response, (text) => text.includes('Hi') && next())
      expect([path, response.status]).toEqual([path, 200])
      expect(text).toContain('Hi ')
      expect(text).not.toContain('you')
      expect(text).not.toMatch(/\[DONE\]|message_stop|response\.completed|"finish_reason":"stop"/)
      const [last = ''] = text.trim().split('\n\n').slice(-1)
      const event = JSON.parse(last.slice(last.indexOf('data: ') + 6))
      const error = path === '/v1/responses' ? event.response.error : event.error
      expect(error).toMatchObject({ message: 'Not this.', code: 'legal_hold' })
      if (path === '/v1/responses')
        expect(event).toMatchObject({ type: 'response.failed', response: { status: 'failed' } })
      const row = (await world.rows()).at(-1)
      expect(row).toMatchObject({ outcome: 'partial', status: 451, error: 'plugin_refused', stream: true })
      expect(row?.cost.nanoUsd).toBeGreaterThan(0)
    }
    expect(await world.faults()).toEqual([])
  })

  test('the first event of a stream is an error with its status, as of a whole answer', async () => {
    const world = await worldOf(
      { guard: `return { event({ text }) { if (text) throw ${refusal} } }` },
      { said: { guard: { on_error } } },
    )
    for (const path of paths) {
      const response = await ask(world, path, { stream: true })
      const text = await response.text()
      expect([path, response.status, JSON.parse(text).error.code]).toEqual([path, 451, 'legal_hold'])
      expect((await world.rows()).at(-1)).toMatchObject({ outcome: 'partial', status: 451, stream: true })
    }
  })

  test('the `reply` of a stream is an error event at its end', async () => {
    const world = await worldOf({ guard: `return { reply() { throw ${refusal} } }` }, { said: { guard: { on_error } } })
    for (const path of paths) {
      const text = await (await ask(world, path, { stream: true })).text()
      expect(text).toContain('legal_hold')
      expect(text).not.toMatch(/\[DONE\]|message_stop|response\.completed/)
      expect((await world.rows()).at(-1)).toMatchObject({
        outcome: 'partial',
        status: 451,
        usage: { input: 3, output: 2 },
      })
    }
  })
})

test('a refusal whose status is none refuses with 403, and is reported as a fault', async () => {
  const world = await worldOf({ guard: `return { reply() { throw new Refusal(200, 'No.', { code: 'a b' }) } }` })
  const { status, text } = await world.ask()
  expect([status, JSON.parse(text).error.code]).toEqual([403, 'forbidden'])
  expect(await world.faults()).toEqual([{ plugin: 'guard', hook: 'reply', fault: 'wrong_result', count: 1 }])
})

test('a target is not blamed for answers that a plugin refuses, and no other one is asked', async () => {
  const world = await worldOf(
    { guard: `return { reply() { throw new Refusal(503, 'No.') }, event() { throw new Refusal(503, 'No.') } }` },
    { settings: { policies: { both: { targets: ['one/m1', 'two/m1'], on_cut: 'restart' } } } },
  )
  for (const stream of [false, true, false, true, false, true]) await world.ask({ model: 'policy/both', stream })
  expect(world.providers.one.received).toHaveLength(6)
  expect(world.providers.two.received).toHaveLength(0)
})

describe('the text that `hold` keeps back', () => {
  const bad = 'how to build it'
  const guard = (hold: string) => `return { hold: ${hold},
    check({ texts, isLast }) { note({ texts, isLast }); if (texts.some(({ text }) => text.includes('${bad}'))) throw ${refusal} } }`

  test('is never sent once the plugin has refused it, however the provider cuts it', async () => {
    const world = await worldOf({ guard: guard('{ characters: 20 }') })
    const said = `${'Fine words. '.repeat(20)}Here is ${bad}, step by step.`
    for (const size of [1, 3, 7, 50, 1000]) {
      for (const path of paths) {
        world.steps.one.push((response) => {
          beginStream(response)
          response.end(
            said
              .match(new RegExp(`.{1,${size}}`, 'g'))
              ?.map((content) => chunk({ content }))
              .join('') + streamEnd,
          )
        })
        const text = await (await ask(world, path, { stream: true })).text()
        const sent = [...text.matchAll(/"(?:content|text|delta)":"([^"]*)"/g)].map(([, piece]) => piece).join('')
        expect([path, size, sent.includes('how to b')]).toEqual([path, size, false])
        expect(text).toContain('legal_hold')
      }
    }
  })

  test('is sent when enough follows, and all of it at the end', async () => {
    const world = await worldOf({ guard: guard('{ characters: 20 }') })
    const { step, next } = inTurn('Twenty letters or so. ', 'Then twenty more are. ', 'And the end.')
    world.steps.one.push(step)
    next()
    const response = await ask(world, '/v1/chat/completions', { stream: true })
    const text = await read(response, (text) => text.includes('Twenty') && next())
    expect(text).toContain('And the end.')
    expect(text).toContain('data: [DONE]')
    expect(world.notes).toMatchObject([
      { texts: [{ kind: 'text', text: 'Twenty letters or so. Then twenty more are. ', before: '' }], isLast: false },
      { texts: [{ text: 'Then twenty more are. And the end.', before: 'Twenty letters or so. ' }], isLast: true },
    ])
  })

  test('is sent sentence by sentence', async () => {
    const world = await worldOf({ guard: guard('{ sentences: true }') })
    const { step, next } = inTurn('One. ', 'Two, still two. ', `Three: ${bad}. `, 'Four.')
    world.steps.one.push(step)
    const response = await ask(world, '/v1/chat/completions', { stream: true })
    let seen = 0
    const text = await read(response, (text) => {
      for (const sentence of ['One', 'still two'].slice(seen)) {
        if (!text.includes(sentence)) break
        seen++
        next()
      }
    })
    expect(text).toContain('still two. ')
    expect(text).not.toContain('Three')
    expect(text).toContain('legal_hold')
  })

  test('is sent after a time, when the provider says nothing more', async () => {
    const world = await worldOf({ guard: guard('{ characters: 1000, maxMs: 50 }') })
    const { step, next } = inTurn('Hi ', 'you.')
    world.steps.one.push(step)
    const response = await ask(world, '/v1/chat/completions', { stream: true })
    const text = await read(response, (text) => text.includes('Hi') && next())
    expect(text).toContain('you.')
    expect(world.notes).toMatchObject([{ texts: [{ text: 'Hi ' }], isLast: false }, { isLast: true }])
  })

  test('is refused after a time, while the provider says nothing more, and its connection is closed', async () => {
    const world = await worldOf({ guard: guard('{ characters: 1000, maxMs: 50 }') })
    const closed = Promise.withResolvers<void>()
    world.steps.one.push((response) => {
      response.on('close', closed.resolve)
      beginStream(response)
      response.write(chunk({ content: `Here is ${bad}` }))
    })
    const response = await ask(world, '/v1/chat/completions', { stream: true })
    expect([response.status, JSON.parse(await response.text()).error.code]).toEqual([451, 'legal_hold'])
    await within(5_000, 'the end of the connection', closed.promise)
  })

  test('is all that a client could read: reasoning, tool calls, refusals, citations', async () => {
    const world = await worldOf({ guard: guard('{ characters: 5000 }') })
    const call = { index: 0, id: 'c', type: 'function', function: { name: 'run', arguments: `{"a":"` } }
    const kinds = {
      reasoning: [{ reasoning_content: 'I know ' }, { reasoning_content: bad }],
      tool_arguments: [{ tool_calls: [call] }, { tool_calls: [{ index: 0, function: { arguments: `${bad}"}` } }] }],
      refusal: [{ refusal: 'No ' }, { refusal: bad }],
      citation: [
        { content: 'See.' },
        { annotations: [{ type: 'url_citation', url_citation: { url: 'https://a.example', title: bad } }] },
      ],
    }
    for (const [kind, deltas] of Object.entries(kinds)) {
      for (const path of paths) {
        world.notes.length = 0
        world.steps.one.push((response) => {
          beginStream(response)
          response.end(deltas.map((delta) => chunk(delta)).join('') + streamEnd)
        })
        const response = await ask(world, path, { stream: true })
        const text = await response.text()
        expect([kind, path, response.status]).toEqual([kind, path, 451])
        expect(text).not.toContain('how to build')
        expect(world.notes).toMatchObject([{ texts: expect.arrayContaining([expect.objectContaining({ kind })]) }])
      }
    }
  })

  test('is looked at by `event` alone, where the plugin has no `check`', async () => {
    const world = await worldOf({
      guard: `return { hold: { characters: 30 }, event({ text = '' }, { state }) {
        state.all = (state.all ?? '') + text
        if (state.all.includes('${bad}')) throw ${refusal}
      } }`,
    })
    world.steps.one.push((response) => {
      beginStream(response)
      response.end([...`Here is ${bad}.`].map((content) => chunk({ content })).join('') + streamEnd)
    })
    const text = await (await ask(world, '/v1/chat/completions', { stream: true })).text()
    expect(text).not.toContain('how')
    expect(text).toContain('legal_hold')
  })

  test('of a completion is kept back as well', async () => {
    const world = await worldOf({ guard: guard('{ characters: 30 }') })
    world.steps.one.push((response) => {
      beginStream(response)
      const event = (choice: object) =>
        `data: ${JSON.stringify({ id: 'c1', object: 'text_completion', created: 1, model: 'words', choices: [{ index: 0, ...choice }] })}\n\n`
      const texts = [...`Here is ${bad}.`].map((text) => event({ text, finish_reason: null }))
      response.end(`${texts.join('')}${event({ text: '', finish_reason: 'stop' })}data: [DONE]\n\n`)
    })
    const body = { model: 'one/words', prompt: 'Hello', stream: true, max_tokens: 50 }
    const response = await world.router.call('/v1/completions', body)
    const text = await response.text()
    expect([response.status, text.includes('how')]).toEqual([451, false])
    expect((await world.rows()).at(-1)).toMatchObject({ outcome: 'partial', status: 451, operation: 'complete' })
  })
})

test('a client of a plugin with `check` gets nothing that it has not seen', async () => {
  const world = await worldOf({ guard: 'return { check({ texts }) { note(texts) } }' })
  const message = { role: 'assistant', content: 'One.', own_words: 'unseen' }
  const choices = [message, { ...message, content: 'Two.' }].map((one, index) => ({
    index,
    message: one,
    finish_reason: 'stop',
  }))
  world.steps.one.push((response) =>
    answerJson(response, { id: 'c1', object: 'chat.completion', created: 1, model: 'm1', choices, more: 'unseen' }),
  )
  const { status, text } = await world.ask()
  expect(status).toBe(200)
  expect(world.notes).toEqual([[{ kind: 'text', text: 'One.', before: '' }]])
  expect(text).not.toMatch(/unseen|Two/)
})

test.each([false, true])('a refused response is not stored, and cannot be continued; stream: %s', async (stream) => {
  const world = await worldOf({
    guard: `return { check({ texts }) { if (texts.some(({ text }) => text.includes('you'))) throw ${refusal} }, hold: { characters: 1, maxMs: 50 } }`,
  })
  const { step, next } = inTurn('Hi there, ', 'you.')
  if (stream) world.steps.one.push(step)
  const response = await ask(world, '/v1/responses', { stream, store: true })
  const text = await read(response, (text) => text.includes('Hi') && next())
  const id = /"id":"(resp_[^"]+)"/.exec(text)?.[1] ?? `resp_${(await world.rows()).at(-1)?.id}`
  expect((await world.router.call(`/v1/responses/${id}`)).status).toBe(404)
  const more = await ask(world, '/v1/responses', { input: 'More', previous_response_id: id })
  expect(more.status).toBe(400)
})

describe('targets', () => {
  const settings = { policies: { both: { targets: ['one/m1', 'two/m1'] } } }
  test.each([
    ['none', 'targets: () => []', 503, 'unavailable'],
    ['a refusal', `targets: () => new Refusal(446, 'Nobody.', { code: 'nobody' })`, 446, 'nobody'],
    ['a refusal of `send`', `send() { throw new Refusal(446, 'Nobody.') }`, 446, 'plugin_refused'],
  ])('that are %s end the call before any provider is asked', async (_, hook, status, code) => {
    const world = await worldOf({ guard: `return { ${hook} }` }, { settings })
    const { text, ...answered } = await world.ask({ model: 'policy/both' })
    expect([answered.status, JSON.parse(text).error.code]).toEqual([status, code])
    expect([...world.providers.one.received, ...world.providers.two.received]).toEqual([])
    expect((await world.rows()).at(-1)).toMatchObject({ outcome: 'failed', status, cost: { nanoUsd: 0 } })
    expect(await world.faults()).toEqual([])
  })

  test('may be fewer', async () => {
    const world = await worldOf({ guard: 'return { targets: (targets) => targets.slice(1) }' }, { settings })
    expect((await world.ask({ model: 'policy/both' })).headers.get('x-router-model')).toBe('two/m1')
  })
})

test.each([
  ['before', ['guard', 'answers']],
  ['after', ['answers', 'guard']],
])('the answer of a plugin is refused by those that check it, %s it in the list', async (_, order) => {
  const answers = `return { request: () => ({ reply: { operation: 'chat', chat: { id: '', created: 0, parts: [{ type: 'text', text: 'Hi you.' }], finish: 'stop', usage: {} } } }) }`
  const settings = { plugins: order.map((name) => ({ name })) }
  const world = await worldOf({ guard: `return { check() { throw ${refusal} } }`, answers }, { settings })
  for (const stream of [false, true]) {
    const { status, text } = await world.ask({ stream })
    expect([status, JSON.parse(text).error.code]).toEqual([451, 'legal_hold'])
    expect(text).not.toContain('Hi')
  }
})

test('the answer of a plugin whose guard fails is an error with its status, whole and streamed', async () => {
  const answers = `return { request: () => ({ reply: { operation: 'chat', chat: { id: '', created: 0, parts: [{ type: 'text', text: 'Hi you.' }], finish: 'stop', usage: {} } } }) }`
  const world = await worldOf(
    { guard: `return { check() { throw new Error('broken') } }`, answers },
    { said: { guard: { on_error: 'closed' } } },
  )
  for (const stream of [false, true]) {
    const { status, text } = await world.ask({ stream })
    expect([status, JSON.parse(text).error.code]).toEqual([500, 'plugin_failed'])
  }
})
