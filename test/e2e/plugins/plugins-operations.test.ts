import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../../helpers/time.ts'
import { type PluginWorld, pluginWorld } from './plugin-world.ts'

let world: PluginWorld
beforeAll(async () => {
  const changes = `return {
    request(request, call) {
      note([call.operation, Object.keys(request.operation === 'chat' ? request.chat : request.fields)])
      const { input, prompt } = request.fields ?? {}
      const says = String(input ?? prompt)
      if (says === 'refuse') throw new Refusal(403, 'Not here.')
      if (says === 'other') return { request: { ...request, model: 'two/vectors' } }
      if (says === 'wrong') return { request: { ...request, fields: { input: {} } } }
      if (says === 'answer' && request.operation === 'embed')
        return { reply: { operation: 'embed', json: { object: 'list', data: [{ object: 'embedding', index: 0, embedding: [7] }] } } }
      if (says === 'answer' && request.operation === 'image')
        return { reply: { operation: 'image', json: { created: 1, data: [{ b64_json: 'b3du' }] } } }
      if (says === 'nothing') return { reply: { operation: 'embed', json: {} } }
      if (input !== undefined) return { request: { ...request, fields: { ...request.fields, input: says.toUpperCase() } } }
    },
    reply(reply, call) {
      if (call.operation === 'embed' && call.body.user === 'bad') return { operation: 'embed', json: {} }
      if (call.operation === 'embed') return { ...reply, json: { ...reply.json, data: reply.json.data.map((one) => ({ ...one, embedding: [9, ...one.embedding] })) } }
    },
    event(event, call) {
      if (event.done) { note('done'); return [{ operation: 'image', json: { type: 'image_generation.partial_image', partial_image_index: 9, b64_json: 'bGFzdA==' } }, event] }
      note(event.json.type)
      return [{ ...event, json: { ...event.json, b64_json: 'c2Vlbg==' } }]
    },
    send: ({ id }) => ({ 'x-target': id }),
    record({ operation, outcome, provider }) { note([operation, outcome, provider]) },
  }`
  world = await pluginWorld({ changes }, { said: { changes: { on_error: 'closed' } } })
})
afterAll(async () => await world.end())

/**
 * Calls, and waits for what the `record` hook notes of the call: it comes after the answer, and is not to be taken for
 * a note of the next call.
 */
async function call(path: string, body: object) {
  world.notes.length = 0
  world.providers.one.received.length = 0
  const response = await world.router.call(path, body)
  const text = await response.text()
  const json = text.startsWith('{') ? JSON.parse(text) : undefined
  await eventually(() => expect(world.notes.filter(isRecord)).toHaveLength(1))
  return { status: response.status, headers: response.headers, text, json }
}
const isRecord = (note: unknown) => Array.isArray(note) && note.length === 3
const embed = (input: string, others: object = {}) => call('/v1/embeddings', { model: 'one/vectors', input, ...others })
const draw = (prompt: string) => call('/v1/images/generations', { model: 'one/pictures', prompt, stream: true })

describe('plugins of an operation', () => {
  test('change what is asked and what is answered, and send headers', async () => {
    const { json, headers } = await embed('soft')
    expect(json.data[0].embedding).toEqual([9, 1, 2])
    expect(world.providers.one.received[0]).toMatchObject({
      body: { input: 'SOFT' },
      headers: { 'x-target': 'one/vectors' },
    })
    expect(Number(headers.get('x-router-cost') ?? json.usage.cost)).toBeGreaterThan(0)
    expect(world.notes).toEqual([
      ['embed', ['input']],
      ['embed', 'complete', 'one'],
    ])
  })

  test('refuse, and choose another model', async () => {
    const { status, json } = await embed('refuse')
    expect([status, json.error.message]).toEqual([403, 'Not here.'])
    expect((await embed('other')).headers.get('x-router-model')).toBe('two/vectors')
  })

  test('answer it, in JSON and in events, with a row and without a provider', async () => {
    const { json, headers } = await embed('answer')
    expect(json).toMatchObject({ object: 'list', data: [{ embedding: [7] }] })
    expect([headers.get('x-router-model'), headers.get('x-router-cost')]).toEqual(['plugin/changes', '0'])
    expect((await world.rows()).at(-1)).toMatchObject({
      provider: 'plugin',
      model: 'changes',
      operation: 'embed',
      cost: { nanoUsd: 0 },
    })
    const { text } = await draw('answer')
    expect(text).toContain('"b64_json":"b3du"')
    expect(world.providers.one.received).toEqual([])
    expect((await embed('answer', { model: 'one/none' })).status).toBe(404)
  })

  test('see the events of a stream: the last one comes last', async () => {
    const { text } = await draw('a cat')
    expect(world.notes.slice(1, 4)).toEqual(['image_generation.partial_image', 'image_generation.completed', 'done'])
    const events = text
      .split('\n')
      .filter((line) => line.startsWith('data: {'))
      .map((line) => JSON.parse(line.slice(6)))
    expect(events.map(({ type, b64_json }) => [type, b64_json])).toEqual([
      ['image_generation.partial_image', 'c2Vlbg=='],
      ['image_generation.partial_image', 'bGFzdA=='],
      ['image_generation.completed', 'c2Vlbg=='],
    ])
    expect((await world.rows()).at(-1)).toMatchObject({ outcome: 'complete', model: 'pictures' })
  })

  test('see nothing of bytes but the request', async () => {
    const { text, status } = await call('/v1/audio/speech', { model: 'one/voice', input: 'say', voice: 'alloy' })
    expect([status, text]).toEqual([200, 'sound'])
    expect(world.providers.one.received[0]?.body).toMatchObject({ input: 'SAY' })
    expect(world.notes).toEqual([
      ['speech', ['input', 'voice']],
      ['speech', 'complete', 'one'],
    ])
  })

  test.each([
    ['a request', 'wrong', {}],
    ['a reply of its own', 'nothing', {}],
    ['a reply', 'good', { user: 'bad' }],
  ])('that return %s which cannot be read have failed', async (_, input, others) => {
    const { status, json } = await embed(input, others)
    expect([status, json.error.code]).toEqual([500, 'plugin_failed'])
  })
})
