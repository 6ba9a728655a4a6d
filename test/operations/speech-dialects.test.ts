import { createWriteStream, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Received } from '../helpers/provider.ts'
import {
  answerJson,
  audioOf,
  byCharacter,
  byToken,
  decoded,
  eventsIn,
  mp3Of,
  openaiSpeech,
  type SpeechProvider,
  type SpeechStage,
  type SpeechWorld,
  sendEvents,
  sendPieces,
  speechStage,
  speechWorld,
  type Unanswered,
  wavOf,
} from './speech-world.ts'

// OpenAI's own library speaks with every provider that has speech: into a file, and by events.

let stage: SpeechStage
let world: Omit<SpeechWorld, 'end'>

beforeAll(async () => {
  const providers: Record<string, SpeechProvider> = { openai: openaiSpeech }
  for (const { slug, base, model, entry = byCharacter } of dialects)
    providers[slug] = { base, models: { ...providers[slug]?.models, [model]: entry } }
  stage = await speechStage(providers)
})
afterAll(() => stage?.end())

/** A router of its own for a provider of one's own. */
async function beginOwn(endpoint: object, answer: Parameters<typeof speechWorld>[0]): Promise<void> {
  const own = await speechWorld(answer, { manifest: (url) => manifest('own', url, endpoint) })
  onTestFinished(own.end)
  world = own
}

/** A provider: what it is sent for one request in OpenAI's words, and how it answers. */
type Dialect = {
  slug: string
  base: string
  model: string
  entry?: object
  /** The fields of the request beside the input. */
  asks: {
    voice: OpenAI.Audio.SpeechCreateParams['voice']
    response_format?: 'mp3' | 'wav' | 'pcm' | 'opus'
    speed?: number
    instructions?: string
  }
  path: string
  headers: object
  sends: object
  /** What it is sent where events are asked for; the same where it has none. */
  sendsForEvents?: object
  dropped?: string
  answers(request: Received, response: Unanswered): void | Promise<void>
  /** What the client gets. */
  audio: Buffer
  format?: string
}

const mp3 = Buffer.concat([mp3Of(1), audioOf(50_000)])
const bytes = (type: string) => (_: Received, response: Unanswered) =>
  sendPieces(response, [mp3.subarray(0, 100), mp3.subarray(100)], type)
const samples = Buffer.alloc(48_000, 7)
const wavOfSamples = (() => {
  const wav = Buffer.concat([wavOf(0), samples])
  wav.writeUInt32LE(36 + samples.length, 4)
  wav.writeUInt32LE(samples.length, 40)
  return wav
})()
const usage = { input_tokens: 3, output_tokens: 5, total_tokens: 8 }
const eventsOrBytes = (request: Received, response: Unanswered) =>
  request.body.stream_format === 'sse'
    ? sendEvents(response, [mp3.subarray(0, 100), mp3.subarray(100)], usage)
    : bytes('audio/mpeg')(request, response)

const plain = { input: 'Hello.', voice: 'nova' }
const openai: Dialect = {
  slug: 'openai',
  base: '/v1',
  model: 'gpt-4o-mini-tts',
  entry: byToken,
  asks: { voice: 'nova', instructions: 'Softly.', speed: 1.5 },
  path: '/v1/audio/speech',
  headers: { authorization: 'Bearer secret-of-provider' },
  sends: { model: 'gpt-4o-mini-tts', ...plain, instructions: 'Softly.', speed: 1.5 },
  sendsForEvents: { model: 'gpt-4o-mini-tts', ...plain, instructions: 'Softly.', speed: 1.5, stream_format: 'sse' },
  answers: eventsOrBytes,
  audio: mp3,
}

const dialects: Dialect[] = [
  openai,
  {
    ...openai,
    model: 'tts-1',
    entry: { ...byCharacter, streams: false },
    sends: { model: 'tts-1', ...plain, speed: 1.5 },
    sendsForEvents: { model: 'tts-1', ...plain, speed: 1.5 },
    dropped: 'instructions',
  },
  {
    ...openai,
    slug: 'azure',
    base: '/openai/v1',
    path: '/openai/v1/audio/speech',
    headers: { 'api-key': 'secret-of-provider' },
  },
  {
    slug: 'groq',
    base: '/openai/v1',
    model: 'canopylabs/orpheus-v1-english',
    asks: { voice: { id: 'troy' }, response_format: 'mp3', instructions: 'Softly.' },
    path: '/openai/v1/audio/speech',
    headers: { authorization: 'Bearer secret-of-provider' },
    sends: { model: 'canopylabs/orpheus-v1-english', input: 'Hello.', voice: 'troy', response_format: 'wav' },
    dropped: 'instructions,response_format',
    answers: (_, response) => sendPieces(response, [wavOf(1)], 'audio/wav'),
    audio: wavOf(1),
    format: 'wav',
  },
  {
    slug: 'together',
    base: '/v1',
    model: 'hexgrad/Kokoro-82M',
    asks: { voice: 'nova', response_format: 'pcm', speed: 2 },
    path: '/v1/audio/speech',
    headers: { authorization: 'Bearer secret-of-provider' },
    sends: {
      model: 'hexgrad/Kokoro-82M',
      ...plain,
      response_format: 'raw',
      response_encoding: 'pcm_s16le',
      sample_rate: 24_000,
    },
    dropped: 'speed',
    answers: bytes('application/octet-stream'),
    audio: mp3,
  },
  {
    slug: 'openrouter',
    base: '/api/v1',
    model: 'mistralai/voxtral-mini-tts-2603',
    asks: { voice: 'nova', response_format: 'opus' },
    path: '/api/v1/audio/speech',
    headers: { authorization: 'Bearer secret-of-provider' },
    sends: { model: 'mistralai/voxtral-mini-tts-2603', ...plain, response_format: 'mp3' },
    dropped: 'response_format',
    answers: bytes('audio/mpeg'),
    audio: mp3,
    format: 'mp3',
  },
  {
    slug: 'mistral',
    base: '/v1',
    model: 'voxtral-mini-tts-2603',
    asks: { voice: 'en_paul_neutral', speed: 2 },
    path: '/v1/audio/speech',
    headers: { authorization: 'Bearer secret-of-provider' },
    sends: { model: 'voxtral-mini-tts-2603', input: 'Hello.', voice_id: 'en_paul_neutral' },
    sendsForEvents: { model: 'voxtral-mini-tts-2603', input: 'Hello.', voice_id: 'en_paul_neutral', stream: true },
    dropped: 'speed',
    answers({ body }, response) {
      if (!body.stream) return answerJson(response, { audio_data: mp3.toString('base64') })
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const piece of [mp3.subarray(0, 100), mp3.subarray(100)]) {
        const data = { type: 'speech.audio.delta', audio_data: piece.toString('base64') }
        response.write(`event: speech.audio.delta\ndata: ${JSON.stringify(data)}\n\n`)
      }
      const counts = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 }
      const data = { type: 'speech.audio.done', usage: counts }
      response.end(`event: speech.audio.done\ndata: ${JSON.stringify(data)}\n\n`)
    },
    audio: mp3,
  },
  ...(['wav', 'pcm', 'mp3'] as const).map(
    (response_format): Dialect => ({
      slug: 'google',
      base: '/v1beta',
      model: 'gemini-2.5-flash-preview-tts',
      entry: byToken,
      asks: { voice: 'Kore', response_format, instructions: 'Softly' },
      path: '/v1beta/models/gemini-2.5-flash-preview-tts:generateContent',
      headers: { 'x-goog-api-key': 'secret-of-provider' },
      sends: {
        contents: [{ role: 'user', parts: [{ text: 'Softly:\nHello.' }] }],
        generationConfig: {
          responseModalities: ['AUDIO'],
          speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } } },
        },
      },
      ...(response_format === 'mp3' && { dropped: 'response_format', format: 'wav' }),
      answers(_, response) {
        const inlineData = { mimeType: 'audio/L16;codec=pcm;rate=24000', data: samples.toString('base64') }
        answerJson(response, {
          candidates: [{ content: { role: 'model', parts: [{ inlineData }] }, finishReason: 'STOP' }],
          usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 5, totalTokenCount: 8 },
        })
      },
      audio: response_format === 'pcm' ? samples : wavOfSamples,
    }),
  ),
  {
    slug: 'elevenlabs',
    base: '',
    model: 'eleven_flash_v2_5',
    asks: { voice: 'a/b ?', response_format: 'opus', speed: 0.5 },
    path: '/v1/text-to-speech/a%2Fb%20%3F/stream?output_format=opus_48000_128',
    headers: { 'xi-api-key': 'secret-of-provider' },
    sends: { text: 'Hello.', model_id: 'eleven_flash_v2_5', voice_settings: { speed: 0.7 } },
    answers: bytes('audio/opus'),
    audio: mp3,
  },
  {
    slug: 'deepgram',
    base: '',
    model: 'aura-2-thalia-en',
    asks: { voice: 'thalia', response_format: 'wav' },
    path: '/v1/speak?model=aura-2-thalia-en&encoding=linear16&container=wav&sample_rate=24000',
    headers: { authorization: 'Token secret-of-provider' },
    sends: { text: 'Hello.' },
    answers: (_, response) => sendPieces(response, [wavOf(1)], 'audio/wav'),
    audio: wavOf(1),
  },
]

function client(): OpenAI {
  return new OpenAI({ baseURL: `${world.router.url}/v1`, apiKey: world.secret, maxRetries: 0, logLevel: 'off' })
}

describe.each(dialects.map((one) => [`${one.slug}/${one.model}`, one.asks.response_format ?? 'mp3', one] as const))(
  '%s, %s',
  (model, _, dialect) => {
    test('13.3 into a file', async () => {
      world = await stage.begin(dialect.answers)
      const response = await client().audio.speech.create({ model, input: 'Hello.', ...dialect.asks })
      expect(response.headers.get('content-type')).toBe('application/octet-stream')
      expect(response.headers.get('x-router-dropped')).toBe(dialect.dropped ?? null)
      expect(response.headers.get('x-router-audio-format')).toBe(dialect.format ?? null)
      const file = join(world.router.folder, 'speech')
      await pipeline(Readable.fromWeb(response.body as never), createWriteStream(file))
      expect(readFileSync(file).equals(dialect.audio)).toBe(true)
      const [{ path, headers, body } = { path: '', headers: {}, body: {} }] = world.provider.received
      expect({ path, headers, body }).toMatchObject({ path: dialect.path, headers: dialect.headers })
      expect(body).toEqual(dialect.sends)
      expect(await world.rows()).toMatchObject([{ outcome: 'complete', provider: dialect.slug }])
    })

    test('13.4, 18.7, 18.8 by events', async () => {
      world = await stage.begin(dialect.answers)
      const asked = { model, input: 'Hello.', ...dialect.asks, stream_format: 'sse' } as const
      const response = await client().audio.speech.create(asked)
      expect(response.headers.get('content-type')).toContain('text/event-stream')
      const events = [...(await response.text()).matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data ?? ''))
      const audio = events.filter(({ type }) => type === 'speech.audio.delta').map((event) => event.audio as string)
      expect(Buffer.concat(audio.map((piece) => Buffer.from(piece, 'base64'))).equals(dialect.audio)).toBe(true)
      expect(events.at(-1)).toMatchObject({ type: 'speech.audio.done', usage: { cost: expect.any(Number) } })
      expect(world.provider.received.map(({ body }) => body)).toEqual([dialect.sendsForEvents ?? dialect.sends])
      expect(await world.rows()).toMatchObject([{ outcome: 'complete', stream: true }])
    })
  },
)

test('a voice that would lead to another path is a 400, and nothing is sent', async () => {
  world = await stage.begin(bytes('audio/mpeg'))
  for (const voice of ['..', '.', { id: '..' }]) {
    const response = await world.speak({ model: 'elevenlabs/eleven_flash_v2_5', voice })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { param: 'voice' } })
  }
  expect(world.provider.received).toHaveLength(0)
})

const manifest = (slug: string, url: string, endpoint: object) =>
  JSON.stringify({
    slug,
    name: 'A provider of one’s own',
    base_url: url,
    auth: { scheme: 'none' },
    endpoints: { speech: endpoint },
    models: { m: byCharacter },
  })

describe('other forms of answers', () => {
  test('audio where events were asked for', async () => {
    world = await stage.begin(bytes('audio/mpeg'))
    const response = await world.speak({ model: 'openai/tokens', stream_format: 'sse' })
    const events = await eventsIn(response)
    expect(decoded(events).equals(mp3)).toBe(true)
    expect(events.at(-1)?.data.type).toBe('speech.audio.done')
    expect(world.provider.received[0]?.body.stream_format).toBe('sse')
  })

  test('bytes of a path with a field of the client, which is a 400 without it', async () => {
    await beginOwn({ path: '/say/{instructions}', answer: 'bytes' }, bytes('audio/mpeg'))
    const refused = await world.speak({ model: 'own/m' })
    expect([refused.status, await refused.json()]).toMatchObject([400, { error: { param: 'instructions' } }])
    expect(world.provider.received).toHaveLength(0)
    expect((await world.speak({ model: 'own/m', instructions: 'softly' })).status).toBe(200)
    expect(world.provider.received[0]?.path).toContain('/say/softly')
  })

  test('hexadecimal digits in JSON', async () => {
    const endpoint = { path: '/t2a', reply: '{ "audio": data.audio, "encoding": "hex", "media_type": "audio/mpeg" }' }
    const answer = (_: unknown, response: Unanswered) => answerJson(response, { data: { audio: mp3.toString('hex') } })
    await beginOwn(endpoint, answer)
    const response = await world.speak({ model: 'own/m' })
    expect(Buffer.from(await response.arrayBuffer()).equals(mp3)).toBe(true)
    expect(response.headers.get('x-router-cost')).toBe('0.00009')
  })

  test('events alone, from which bytes are made', async () => {
    const endpoint = { path: '/say', answer: 'events' }
    const answer = (_: unknown, response: Unanswered) =>
      sendEvents(response, [mp3.subarray(0, 7), mp3.subarray(7)], usage)
    await beginOwn(endpoint, answer)
    for (const stream_format of ['audio', 'sse']) {
      const response = await world.speak({ model: 'own/m', stream_format })
      const type = stream_format === 'sse' ? 'text/event-stream; charset=utf-8' : 'application/octet-stream'
      expect(response.headers.get('content-type')).toBe(type)
      const got = Buffer.from(await response.arrayBuffer())
      if (stream_format === 'audio') expect(got.equals(mp3)).toBe(true)
      expect((await world.rows())[0]).toMatchObject({ outcome: 'complete' })
    }
  })

  test('events alone that break, from which bytes are made', async () => {
    const endpoint = { path: '/say', answer: 'events' }
    const answer = (_: unknown, response: Unanswered) => sendEvents(response, [mp3.subarray(0, 7)])
    await beginOwn(endpoint, answer)
    const response = await world.speak({ model: 'own/m' })
    await expect(response.arrayBuffer()).rejects.toThrow()
    expect(await world.rows()).toMatchObject([{ outcome: 'partial', error: 'provider_cut' }])
  })
})
