import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { answerJson, beginStream } from '../helpers/provider.ts'
import { mp3, ogg, wav, webm } from '../media/sounds.ts'
import { type FormFields, type TranscriptionWorld, transcriptionWorld, twoSeconds } from './transcription-world.ts'

const whisper = 'openai/whisper-1'
const byToken = 'openai/gpt-4o-transcribe'
const tokens = {
  type: 'tokens',
  input_tokens: 37,
  output_tokens: 12,
  total_tokens: 49,
  input_token_details: { text_tokens: 0, audio_tokens: 37 },
}

let world: TranscriptionWorld
beforeAll(async () => {
  world = await transcriptionWorld()
})
afterAll(() => world?.end())
beforeEach(() =>
  world.answer((_, response) => answerJson(response, { text: 'Hello.', usage: { type: 'duration', seconds: 2 } })),
)

const md5 = (bytes: Buffer) => createHash('md5').update(bytes).digest('hex')
const says = (reply: object) => world.answer((_, response) => answerJson(response, reply))
async function asked(fields: FormFields) {
  const response = await world.ask(fields)
  // biome-ignore lint/suspicious/noExplicitAny: a test knows the body it expects.
  const body = (await response.json()) as any
  return { status: response.status, body }
}
async function refused(fields: FormFields, param: string, status = 400) {
  const before = world.provider.received.length
  const { status: got, body } = await asked(fields)
  expect([got, body.error?.origin, body.error?.param], JSON.stringify(body)).toEqual([status, 'router', param])
  expect(world.provider.received.length).toBe(before)
  return body.error.message as string
}

const segments = [
  {
    id: 0,
    seek: 0,
    start: 0,
    end: 1.2,
    text: ' Hello.',
    tokens: [1, 2],
    temperature: 0,
    avg_logprob: -0.3,
    compression_ratio: 0.9,
    no_speech_prob: 0.01,
  },
  {
    id: 1,
    seek: 0,
    start: 1.2,
    end: 62.3456,
    text: ' And\n\nbye --> now.',
    tokens: [3],
    temperature: 0,
    avg_logprob: -0.2,
    compression_ratio: 1,
    no_speech_prob: 0,
  },
]
const verbose = {
  task: 'transcribe',
  language: 'english',
  duration: 2.01,
  text: 'Hello. And bye.',
  segments,
  usage: { type: 'duration', seconds: 3 },
}

describe('the request', () => {
  test('14.1 14.2 14.4 a form with a file and a model, which the provider gets as it is', async () => {
    const { status } = await asked([['model', whisper]])
    expect(status).toBe(200)
    const { model, file } = world.last()
    expect([model, file.filename, file.type, md5(file.bytes)]).toEqual([
      'whisper-1',
      'sound.wav',
      'audio/wav',
      md5(twoSeconds),
    ])
  })
  test('fields may come in any order and several times, with brackets and without', async () => {
    const file = ['file', {}] as const
    await asked([
      ['timestamp_granularities', 'word'],
      ['model', whisper],
      ['timestamp_granularities[]', 'segment'],
      file,
      ['response_format', 'verbose_json'],
      ['keywords', 'a'],
      ['keywords', 'b'],
      ['temperature', '0.5'],
      ['chunking_strategy[type]', 'server_vad'],
      ['chunking_strategy[threshold]', '0.5'],
      ['language', 'DE'],
    ])
    const { file: _, ...sent } = world.last()
    expect(sent).toEqual({
      model: 'whisper-1',
      'timestamp_granularities[]': ['word', 'segment'],
      response_format: 'verbose_json',
      'keywords[]': ['a', 'b'],
      temperature: '0.5',
      'chunking_strategy[type]': 'server_vad',
      'chunking_strategy[threshold]': '0.5',
      language: 'de',
    })
  })
  test('what the API does not know goes on where the body is edited', async () => {
    await asked([
      ['model', whisper],
      ['hotwords', 'x'],
      ['user', 'me'],
    ])
    expect(world.last()).toMatchObject({ hotwords: 'x', user: 'me' })
  })
  test.each([
    ['mpga', 'a.mpga', mp3(50)],
    ['mp3', 'A.MP3', mp3(50)],
    ['webm', 'a.webm', webm(2)],
    ['ogg', 'a.ogg', ogg(2)],
    ['wav', 'a.wav', wav(1)],
  ])('14.2 %s', async (_, filename, bytes) => {
    expect(
      (
        await asked([
          ['file', { filename, bytes }],
          ['model', whisper],
        ])
      ).status,
    ).toBe(200)
  })
  test('a file without an ending gets that of its bytes', async () => {
    await asked([
      ['file', { filename: 'blob', type: 'application/octet-stream', bytes: webm(2) }],
      ['model', whisper],
    ])
    expect(world.last().file).toMatchObject({ filename: 'blob.webm', type: 'audio/webm' })
  })
  test('14.2 19.15 a missing, empty or other file is refused', async () => {
    const model = ['model', whisper] as const
    await refused([['file', 'text'], model], 'file')
    await refused([['file', { name: 'audio' }], model], 'file')
    await refused([['file', { bytes: Buffer.alloc(0) }], model], 'file')
    expect(await refused([['file', { filename: 'a.aac' }], model], 'file')).toContain('.aac')
    await refused([['file', { filename: 'a.txt' }], model], 'file')
    await refused([['file', { bytes: Buffer.from('{"no": "sound"}') }], model], 'file')
    expect(await refused([['file', { filename: 'a.mp3', bytes: Buffer.from('plain text') }], model], 'file')).toContain(
      'flac, mp3, mp4, mpeg, mpga, m4a, ogg, wav, webm',
    )
  })
  test('14.4 19.15 a missing model is refused', async () => {
    await refused([], 'model')
    await refused([['model', '']], 'model')
    await refused(
      [
        ['model', whisper],
        ['model', whisper],
      ],
      'model',
    )
  })
  test('14.6 14.7 14.8 values that cannot be are refused by their field', async () => {
    const one = (name: string, value: string) =>
      [
        ['model', whisper],
        [name, value],
      ] as const
    for (const language of ['english', 'xx', 'e', '']) await refused(one('language', language), 'language')
    await refused(one('response_format', 'xml'), 'response_format')
    await refused(one('temperature', 'warm'), 'temperature')
    await refused(one('temperature', '1.5'), 'temperature')
    await refused(one('stream', 'yes'), 'stream')
    await refused(one('include[]', 'all'), 'include[0]')
    await refused(one('chunking_strategy', '{"type":"other"}'), 'chunking_strategy')
    await refused(
      [...one('timestamp_granularities[]', 'char'), ['response_format', 'verbose_json']],
      'timestamp_granularities[0]',
    )
    await refused(one('timestamp_granularities[]', 'word'), 'timestamp_granularities')
  })
  test('JSON is no form', async () => {
    const response = await world.router.call('/v1/audio/transcriptions', { model: whisper })
    expect(response.status).toBe(415)
  })
})

describe('the reply', () => {
  test('6.1 6.3 6.4 14.7 14.11 text and usage by duration', async () => {
    const { status, body } = await asked([['model', whisper]])
    expect([status, body]).toEqual([200, { text: 'Hello.', usage: { type: 'duration', seconds: 2, cost: 0.0002 } }])
  })
  test('6.2 6.4 usage by tokens', async () => {
    says({ text: 'Hello.', usage: tokens })
    const { body } = await asked([['model', byToken]])
    // 37 tokens of sound at 6 USD per million, 12 of text at 10.
    expect(body).toEqual({ text: 'Hello.', usage: { ...tokens, cost: 0.000342 } })
  })
  test('6.5 6.6 6.7 14.8 14.9 a verbose one with words and segments', async () => {
    const words = [{ word: 'Hello', start: 0, end: 0.5 }]
    says({ ...verbose, words })
    const { body } = await asked([
      ['model', whisper],
      ['response_format', 'verbose_json'],
      ['timestamp_granularities[]', 'word'],
      ['timestamp_granularities[]', 'segment'],
    ])
    expect(body).toEqual({ ...verbose, words, usage: { type: 'duration', seconds: 3, cost: 0.0003 } })
  })
  test('6.7 members that a provider leaves out are filled in', async () => {
    says({ text: 'Hello.', language: 'de', segments: [{ id: 7, start: 0, end: 1.5, text: 'Hello.' }] })
    const { body } = await asked([
      ['model', whisper],
      ['response_format', 'verbose_json'],
    ])
    expect(body).toEqual({
      task: 'transcribe',
      language: 'german',
      duration: 2,
      text: 'Hello.',
      segments: [
        {
          id: 0,
          seek: 0,
          start: 0,
          end: 1.5,
          text: 'Hello.',
          tokens: [],
          temperature: 0,
          avg_logprob: 0,
          compression_ratio: 0,
          no_speech_prob: 0,
        },
      ],
      usage: { type: 'duration', seconds: 2, cost: 0.0002 },
    })
  })
  test.each([
    ['text', 'json', 'Hello. And bye.\n'],
    [
      'srt',
      'verbose_json',
      '1\n00:00:00,000 --> 00:00:01,200\nHello.\n\n2\n00:00:01,200 --> 00:01:02,346\nAnd\nbye -> now.\n\n',
    ],
    [
      'vtt',
      'verbose_json',
      'WEBVTT\n\n00:00:00.000 --> 00:00:01.200\nHello.\n\n00:00:01.200 --> 00:01:02.346\nAnd\nbye -> now.\n\n',
    ],
  ])('as %s', async (format, sent, text) => {
    says(verbose)
    const response = await world.ask([
      ['model', whisper],
      ['response_format', format],
    ])
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8'])
    expect(await response.text()).toBe(text)
    expect(response.headers.get('x-router-cost')).toBe('0.0003')
    expect(world.last().response_format).toBe(sent)
  })
  test('the row of the ledger', async () => {
    says({ text: 'Hello.', usage: tokens })
    await asked([['model', byToken]])
    const row = (await Array.fromAsync(world.store.ledger.each({}))).at(-1)
    expect(row).toMatchObject({
      api: 'transcriptions',
      provider: 'openai',
      model: 'gpt-4o-transcribe',
      outcome: 'complete',
      usage: { input_audio: 37, output: 12 },
    })
  })
  test('an answer without a text is unreadable, and paid', async () => {
    says({ usage: { type: 'duration', seconds: 2 } })
    const { status } = await asked([['model', whisper]])
    expect(status).toBe(502)
    world.answer((_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'))
    expect((await asked([['model', whisper]])).status).toBe(502)
  })
})

describe('events', () => {
  const stream = (...events: object[]) =>
    world.answer((_, response) => {
      beginStream(response)
      for (const event of events) response.write(`data: ${JSON.stringify(event)}\n\n`)
      response.end('data: [DONE]\n\n')
    })
  const eventsOf = (text: string) =>
    text
      .split('\n\n')
      .filter(Boolean)
      .map((line) => line.replace(/^data: /, ''))
  test('as they come, the last one with usage and cost', async () => {
    stream(
      { type: 'transcript.text.delta', delta: 'Hel' },
      { type: 'transcript.text.delta', delta: 'lo.' },
      { type: 'transcript.text.done', text: 'Hello.', usage: tokens },
    )
    const response = await world.ask([
      ['model', byToken],
      ['stream', 'true'],
    ])
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    const events = eventsOf(await response.text())
    expect(events.pop()).toBe('[DONE]')
    expect(events.map((event) => JSON.parse(event))).toEqual([
      { type: 'transcript.text.delta', delta: 'Hel' },
      { type: 'transcript.text.delta', delta: 'lo.' },
      { type: 'transcript.text.done', text: 'Hello.', usage: { ...tokens, cost: 0.000342 } },
    ])
    expect(world.last().stream).toBe('true')
  })
  test.each([
    ['whisper-1 is not asked for them', whisper, undefined],
    ['a model that ignores the wish', 'openai/gpt-transcribe', 'true'],
  ])('one event where there are none: %s', async (_, model, sent) => {
    const response = await world.ask([
      ['model', model],
      ['stream', 'true'],
    ])
    const events = eventsOf(await response.text())
    expect(JSON.parse(events[0] ?? '')).toMatchObject({
      type: 'transcript.text.done',
      text: 'Hello.',
      usage: { type: 'duration', seconds: 2 },
    })
    expect(events.slice(1)).toEqual(['[DONE]'])
    expect(world.last().stream).toBe(sent)
  })
  test('a stream that breaks off ends with an error, and is paid as far as it came', async () => {
    world.answer((_, response) => {
      beginStream(response)
      response.write(`data: ${JSON.stringify({ type: 'transcript.text.delta', delta: 'Hello there' })}\n\n`)
      setTimeout(() => response.destroy(), 20)
    })
    const response = await world.ask([
      ['model', byToken],
      ['stream', 'true'],
    ])
    const events = eventsOf(await response.text())
    expect(JSON.parse(events.at(-1) ?? '')).toMatchObject({ error: { origin: 'provider' } })
    const row = (await Array.fromAsync(world.store.ledger.each({}))).at(-1)
    // Two seconds are twenty tokens of sound.
    expect(row).toMatchObject({ outcome: 'partial', usage: { input_audio: 20, output: 3 }, cost: { estimated: true } })
  })
})
