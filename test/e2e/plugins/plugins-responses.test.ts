import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { eventually } from '../../helpers/time.ts'
import { type PluginWorld, pluginWorld } from './plugin-world.ts'

let world: PluginWorld
beforeAll(async () => {
  const hides = `
    const each = (chat, change) => ({ operation: 'chat', chat: { ...chat, parts: chat.parts.map((part) => part.type === 'text' ? { ...part, text: change(part.text) } : part) } })
    const show = (text) => text.replaceAll('you', 'YOU')
    return {
      request({ chat }, { operation }) {
        note(operation)
        const said = chat.messages.at(-1).parts[0].text
        if (said === 'refuse') throw new Refusal(403, 'Not here.')
        if (said === 'answer') return { reply: { operation: 'chat', chat: { id: '', created: 0, parts: [{ type: 'text', text: 'From here.' }], finish: 'stop', usage: {} } } }
        if (said === 'stay') return
        const messages = chat.messages.map((message) => ({ ...message, parts: message.parts.map((part) => part.type === 'text' ? { ...part, text: part.text.replaceAll('secret', 'hidden') } : part) }))
        return { request: { operation: 'chat', chat: { ...chat, messages } }, headers: { 'x-hidden': 'yes' } }
      },
      event: (event) => event.text === undefined ? undefined : [{ ...event, text: show(event.text) }],
      reply: ({ chat }) => each(chat, show),
      send: () => ({ 'x-sent': 'yes' }),
      record({ operation, outcome, status }) { note([operation, outcome, status]) },
    }`
  world = await pluginWorld({ hides })
})
afterAll(async () => await world.end())
beforeEach(() => {
  world.providers.one.received.length = 0
})

/**
 * Calls, and waits for what the `record` hook notes of the call: it comes after the answer, and is not to be taken for
 * a note of the next call. Counting tokens is not recorded.
 */
async function call(path: string, body: object) {
  world.notes.length = 0
  const response = await world.router.call(path, body)
  const text = await response.text()
  const records = path.endsWith('/input_tokens') ? 0 : 1
  await eventually(() => expect(world.notes.filter(Array.isArray)).toHaveLength(records))
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: text.startsWith('{') ? JSON.parse(text) : undefined,
  }
}

describe.each(['/v1/responses/input_tokens', '/v1/responses/compact'])('%s', (path) => {
  const operation = path.endsWith('compact') ? 'compact' : 'count'
  test('shows the provider what plugins leave of the conversation, and sends their headers', async () => {
    const { status, headers } = await call(path, { model: 'own/m', input: 'my secret' })
    expect([status, headers.get('x-hidden')]).toEqual([200, 'yes'])
    const [{ body, headers: sent } = {}] = world.providers.one.received
    expect(JSON.stringify(body)).toContain('my hidden')
    expect(JSON.stringify(body)).not.toContain('secret')
    expect([body.stream, sent?.['x-sent']]).toEqual([undefined, 'yes'])
    expect(world.notes[0]).toBe(operation)
  })

  test('sends the body of the client where they change nothing', async () => {
    await call(path, { model: 'own/m', input: 'stay', instructions: 'Be brief.' })
    expect(world.providers.one.received[0]?.body).toEqual({ model: 'm', input: 'stay', instructions: 'Be brief.' })
  })

  test('is refused by plugins, and not answered by them', async () => {
    expect((await call(path, { model: 'own/m', input: 'refuse' })).status).toBe(403)
    const { json } = await call(path, { model: 'own/m', input: 'answer' })
    expect(json.object).toBe(operation === 'compact' ? 'response.compaction' : 'response.input_tokens')
  })
})

test('a conversation that is made shorter is recorded', async () => {
  await call('/v1/responses/compact', { model: 'own/m', input: 'stay' })
  expect(world.notes).toEqual(['compact', ['compact', 'complete', 200]])
})

describe('a stored response', () => {
  test.each([false, true])('is what the client got; stream: %s', async (stream) => {
    const model = 'one/m1'
    const first = await call('/v1/responses', { model, input: 'my secret', stream })
    const id = /"id":"(resp_[^"]*)"/.exec(first.text)?.[1] ?? ''
    expect(first.text).toContain('Hi YOU.')
    const stored = await world.router.call(`/v1/responses/${id}`)
    expect(JSON.stringify(await stored.json())).toContain('Hi YOU.')
    await call('/v1/responses', { model, input: 'Go on', previous_response_id: id })
    const { messages } = world.providers.one.received.at(-1)?.body ?? {}
    expect(messages.map(({ content }: { content: unknown }) => JSON.stringify(content)).join()).toMatch(
      /my hidden.*Hi YOU.*Go on/,
    )
  })

  test.each([false, true])('may be that of a plugin; stream: %s', async (stream) => {
    const model = 'one/m1'
    const first = await call('/v1/responses', { model, input: 'answer', stream })
    const id = /"id":"(resp_[^"]*)"/.exec(first.text)?.[1] ?? ''
    const { status } = await call('/v1/responses', { model, input: 'Go on', previous_response_id: id })
    expect([first.status, status]).toEqual([200, 200])
    const { messages } = world.providers.one.received.at(-1)?.body ?? {}
    expect(JSON.stringify(messages)).toContain('From here.')
  })
})

test.each([false, true])('the Messages API is answered by plugins as well; stream: %s', async (stream) => {
  const body = { model: 'one/m1', max_tokens: 10, messages: [{ role: 'user', content: 'answer' }], stream }
  const { text, status } = await call('/v1/messages', body)
  expect([status, text]).toEqual([200, expect.stringContaining('From here.')])
  const shown = await call('/v1/messages', { ...body, messages: [{ role: 'user', content: 'stay' }] })
  const texts = [...shown.text.matchAll(/"text":"([^"]*)"/g)].map(([, text]) => text)
  expect(texts.join('')).toBe('Hi YOU.')
})
