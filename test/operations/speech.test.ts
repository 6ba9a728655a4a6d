import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { testEach } from '../helpers/slow.ts'
import { publishedSpec, specMissing } from '../helpers/specs.ts'
import { audioOf, decoded, eventsIn, type SpeechWorld, sendEvents, sendPieces, speechWorld } from './speech-world.ts'

const audio = audioOf(100_000)
const pieces = [audio.subarray(0, 1), audio.subarray(1, 70_000), audio.subarray(70_000, 70_001), audio.subarray(70_001)]
const usage = { input_tokens: 14, output_tokens: 101, total_tokens: 115 }

let world: SpeechWorld

beforeAll(async () => {
  world = await speechWorld(({ body }, response) =>
    body.stream_format === 'sse' ? sendEvents(response, pieces, usage) : sendPieces(response, pieces),
  )
})

afterAll(() => world?.end())

describe('13.3 audio: bytes in the requested format', () => {
  testEach(['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'], { slowIf: (format) => format !== 'mp3' })(
    '%s is asked for, and passes as it comes',
    async (format) => {
      const response = await world.speak({ response_format: format, speed: 1.5, instructions: 'Softly.' })
      expect(response.status).toBe(200)
      expect(response.headers.get('content-type')).toBe('application/octet-stream')
      expect(response.headers.get('x-router-model')).toBe('openai/characters')
      expect(Buffer.from(await response.arrayBuffer()).equals(audio)).toBe(true)
      expect(world.provider.received.at(-1)).toMatchObject({
        path: '/v1/audio/speech',
        headers: { authorization: 'Bearer secret-of-provider' },
        body: {
          model: 'characters',
          input: 'Hello.',
          voice: 'alloy',
          response_format: format,
          speed: 1.5,
          instructions: 'Softly.',
        },
      })
    },
  )

  test('the format is told where it is another one', async () => {
    const asked = await world.speak({})
    expect(asked.headers.get('x-router-audio-format')).toBe(null)
    const other = await world.speak({ response_format: 'flac' })
    expect(other.headers.get('x-router-audio-format')).toBe('mp3')
  })

  test('13.2 audio is the default, and can be said', async () => {
    const response = await world.speak({ stream_format: 'audio' })
    expect(response.headers.get('content-type')).toBe('application/octet-stream')
    expect(await response.arrayBuffer()).toHaveProperty('byteLength', audio.length)
  })

  test('one byte', async () => {
    const small = await speechWorld((_, response) => sendPieces(response, [Buffer.from('x')]))
    expect(await (await small.speak({})).text()).toBe('x')
    await small.end()
  })
})

describe('13.4, 18.7, 18.8 sse: events', () => {
  test.each([
    [
      'the provider’s own',
      'openai/tokens',
      { input_tokens: 14, output_tokens: 101, total_tokens: 115, cost: 0.0012204 },
    ],
    ['made of its bytes', 'openai/characters', { input_tokens: 0, output_tokens: 0, total_tokens: 0, cost: 0.00009 }],
  ])('%s', async (_, model, expected) => {
    const response = await world.speak({ model, stream_format: 'sse' })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    const events = await eventsIn(response)
    expect(decoded(events).equals(audio)).toBe(true)
    const [last, ...others] = events.toReversed()
    expect(last).toEqual({ name: 'speech.audio.done', data: { type: 'speech.audio.done', usage: expected } })
    expect(others.length).toBeGreaterThan(1)
    for (const { name, data } of others) {
      expect(name).toBe('speech.audio.delta')
      expect(Object.keys(data)).toEqual(['type', 'audio'])
      expect(Buffer.from(data.audio ?? '', 'base64').toString('base64')).toBe(data.audio)
    }
    expect(world.provider.received.at(-1)?.body.stream_format).toBe(model === 'openai/tokens' ? 'sse' : undefined)
  })

  test.skipIf(specMissing('openai.openapi.yaml'))('as they are published', async () => {
    const schemas = (publishedSpec('openai.openapi.yaml') as { components: { schemas: Record<string, object> } })
      .components.schemas
    const ajv = new Ajv2020({ strict: false })
    for (const model of ['openai/tokens', 'openai/characters']) {
      for (const { data } of await eventsIn(await world.speak({ model, stream_format: 'sse' }))) {
        const name = data.type === 'speech.audio.done' ? 'SpeechAudioDoneEvent' : 'SpeechAudioDeltaEvent'
        const accepts = ajv.compile(schemas[name] ?? {})
        expect([accepts(data), accepts.errors]).toEqual([true, null])
      }
    }
  })
})

describe('13.1 the request', () => {
  test.each([
    ['input', { input: undefined }],
    ['input', { input: '' }],
    ['input', { input: 7 }],
    ['input', { input: 'x'.repeat(101) }],
    ['input', { model: 'openai/tokens', input: '𝄞'.repeat(4_097) }],
    ['voice', { voice: undefined }],
    ['voice', { voice: '' }],
    ['voice.id', { voice: {} }],
    ['voice.name', { voice: { id: 'a', name: 'b' } }],
    ['response_format', { response_format: 'midi' }],
    ['speed', { speed: 0.2 }],
    ['speed', { speed: 4.1 }],
    ['speed', { speed: '1' }],
    ['stream_format', { stream_format: 'ws' }],
    ['instructions', { instructions: 1 }],
    ['model', { model: undefined }],
  ])('a bad %s is a 400 that names it', async (param, fields) => {
    const before = world.provider.received.length
    const response = await world.speak(fields)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { origin: 'router', param, message: expect.any(String) } })
    expect(world.provider.received.length).toBe(before)
  })

  test('a character is a code point', async () => {
    const response = await world.speak({ input: '𝄞'.repeat(100) })
    expect(response.status).toBe(200)
    expect(response.headers.get('x-router-cost')).toBe('0.0015')
    expect((await world.speak({ model: 'openai/tokens', input: 'x'.repeat(4_096) })).status).toBe(200)
  })

  test('a voice by its id, and null for what is not said', async () => {
    const response = await world.speak({ voice: { id: 'voice_1' }, speed: null, response_format: null, user: 'ann' })
    expect(response.status).toBe(200)
    await response.arrayBuffer()
    expect(world.provider.received.at(-1)?.body).toEqual({
      model: 'characters',
      input: 'Hello.',
      voice: { id: 'voice_1' },
    })
    expect((await world.rows())[0]).toMatchObject({ user: 'ann', api: 'speech', operation: 'speech' })
  })

  test('a form is a 415, a model of another kind a 400', async () => {
    const form = await fetch(`${world.router.url}/v1/audio/speech`, {
      method: 'POST',
      headers: { authorization: 'Bearer ir-test-key-on-loopback' },
      body: new URLSearchParams({ input: 'x' }),
    })
    expect(form.status).toBe(415)
    expect((await world.speak({ model: 'openai/gpt-4.1' })).status).toBe(400)
  })
})
