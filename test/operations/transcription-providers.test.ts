import { Ajv2020 } from 'ajv/dist/2020.js'
import OpenAI, { toFile } from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import { answerJson, beginStream } from '../helpers/provider.ts'
import { type Recording, recordedEvents, recordings, recordingsMissing } from '../helpers/recordings.ts'
import { publishedSpec, specMissing } from '../helpers/specs.ts'
import { type FormFields, type TranscriptionWorld, transcriptionWorld, twoSeconds } from './transcription-world.ts'

let world: TranscriptionWorld
beforeAll(async () => {
  world = await transcriptionWorld()
})
afterAll(() => world?.end())

const says = (reply: object) => world.answer((_, response) => answerJson(response, reply))
const streams = (...events: (object | string)[]) =>
  world.answer((_, response) => {
    beginStream(response)
    for (const event of events) response.write(`data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`)
    response.end()
  })
async function asked(fields: FormFields) {
  const response = await world.ask(fields)
  const text = await response.text()
  const dropped = response.headers.get('x-router-dropped')?.split(',')
  // biome-ignore lint/suspicious/noExplicitAny: a test knows the reply it expects.
  return { status: response.status, dropped, text, body: (text.startsWith('{') ? JSON.parse(text) : undefined) as any }
}
const sent = (): Record<string, unknown> => {
  const { file, ...fields } = world.last()
  return { ...fields, file: file?.filename }
}
const at = () => world.provider.received.at(-1)?.path
const verbose = [['response_format', 'verbose_json']] as const
const word = ['timestamp_granularities[]', 'word'] as const
const segment = ['timestamp_granularities[]', 'segment'] as const
const duration = (seconds: number) => ({ type: 'duration', seconds, cost: seconds / 10_000 })

describe('Groq and others whose plain answers do not say how long the sound is', () => {
  test.each([
    ['groq/whisper-large-v3', { response_format: 'verbose_json' }, 12],
    ['together/whisper', { response_format: 'verbose_json', language: 'auto' }, 12],
    ['fireworks/asr', { response_format: 'verbose_json' }, 12],
  ])('%s', async (model, fields, seconds) => {
    says({ task: 'transcribe', language: 'English', duration: 12, text: 'Hello.', segments: [], x_groq: { id: 'r' } })
    const { body, dropped } = await asked([
      ['model', model],
      ['keywords', 'a'],
    ])
    expect(body).toEqual({ text: 'Hello.', x_groq: { id: 'r' }, usage: duration(seconds) })
    expect([sent(), dropped]).toEqual([{ model: model.split('/')[1], file: 'sound.wav', ...fields }, ['keywords']])
    expect(at()).toBe('/v1/audio/transcriptions')
  })
})

describe('Mistral', () => {
  const model = ['model', 'mistral/voxtral'] as const
  const usage = { prompt_audio_seconds: 3, prompt_tokens: 3, total_tokens: 389, completion_tokens: 11 }
  const pieces = [
    { type: 'transcription_segment', text: ' Hello', start: 0, end: 0.4, speaker_id: 'speaker_1' },
    { type: 'transcription_segment', text: ' there.', start: 0.4, end: 1, speaker_id: null },
  ]
  const reply = { model: 'voxtral', text: 'Hello there.', language: 'en', segments: pieces, usage }
  test('14.5 a transcript, paid by the second', async () => {
    says({ ...reply, language: null, segments: [] })
    const { body, dropped } = await asked([
      model,
      ['language', 'en'],
      ['keywords', 'New York'],
      ['keywords', 'Zurich'],
      ['prompt', 'Hm'],
      ['temperature', '0.2'],
    ])
    expect(body).toEqual({ text: 'Hello there.', usage: duration(3) })
    expect(sent()).toEqual({
      model: 'voxtral',
      file: 'sound.wav',
      language: 'en',
      temperature: '0.2',
      context_bias: 'New_York,Zurich',
    })
    expect(dropped).toEqual(['prompt'])
  })
  test('6.5 6.6 words; a language cannot be told at the same time', async () => {
    says(reply)
    const { body, dropped } = await asked([model, ...verbose, word, ['language', 'en']])
    expect(body).toEqual({
      task: 'transcribe',
      language: 'english',
      duration: 2,
      text: 'Hello there.',
      words: [
        { word: 'Hello', start: 0, end: 0.4 },
        { word: 'there.', start: 0.4, end: 1 },
      ],
      usage: duration(3),
    })
    expect([sent(), dropped]).toEqual([
      { model: 'voxtral', file: 'sound.wav', timestamp_granularities: 'word' },
      ['language'],
    ])
  })
  test('6.7 segments, also as subtitles', async () => {
    says(reply)
    const { body } = await asked([model, ...verbose])
    expect(body.segments).toMatchObject([
      { id: 0, start: 0, end: 0.4, text: ' Hello', tokens: [], no_speech_prob: 0 },
      { id: 1 },
    ])
    expect(sent().timestamp_granularities).toBe('segment')
    const { text } = await asked([model, ['response_format', 'srt']])
    expect(text).toBe('1\n00:00:00,000 --> 00:00:00,400\nHello\n\n2\n00:00:00,400 --> 00:00:01,000\nthere.\n\n')
  })
  test('14.9 20.4 both kinds of times at once are refused before anything is sent', async () => {
    const before = world.provider.received.length
    const { status, body } = await asked([model, ...verbose, word, segment])
    expect([status, body.error.param]).toEqual([400, 'timestamp_granularities'])
    expect(world.provider.received.length).toBe(before)
  })
  test('who speaks', async () => {
    says(reply)
    const { body } = await asked([model, ['response_format', 'diarized_json']])
    expect(body).toMatchObject({
      task: 'transcribe',
      duration: 2,
      segments: [{ id: 'seg_0', speaker: 'speaker_1', text: ' Hello' }, { speaker: 'A' }],
    })
    expect(sent()).toMatchObject({ diarize: 'true', timestamp_granularities: 'segment' })
  })
  test('events', async () => {
    streams(
      { type: 'transcription.language', audio_language: 'en' },
      { type: 'transcription.text.delta', text: 'Hello' },
      { type: 'transcription.segment', ...pieces[0], type_: 1 },
      { type: 'transcription.text.delta', text: ' there.' },
      { ...reply, type: 'transcription.done' },
    )
    const { text } = await asked([model, ['stream', 'true']])
    const events = text
      .split('\n\n')
      .filter(Boolean)
      .map((line) => line.replace('data: ', ''))
    expect(events.pop()).toBe('[DONE]')
    expect(events.map((event) => JSON.parse(event))).toEqual([
      { type: 'transcript.text.delta', delta: 'Hello' },
      { type: 'transcript.text.delta', delta: ' there.' },
      { type: 'transcript.text.done', text: 'Hello there.', usage: duration(3) },
    ])
    expect(sent().stream).toBe('true')
  })
})

test('OpenRouter: tokens, and what it says that they cost', async () => {
  says({ text: 'Hello.', usage: { total_tokens: 49, input_tokens: 37, output_tokens: 12, cost: 0.00010625 } })
  const { body } = await asked([
    ['model', 'openrouter/whisper'],
    ['prompt', 'Hm'],
  ])
  expect(body.usage).toMatchObject({ type: 'tokens', input_tokens: 37, output_tokens: 12, total_tokens: 49 })
  expect((await Array.fromAsync(world.store.ledger.each({}))).at(-1)?.usage.reported_cost).toBe(0.00010625)
})

test('xAI: words with times, and segments made of them', async () => {
  const words = [
    { text: 'Hello', start: 0, end: 0.4, speaker: 0 },
    { text: 'there.', start: 0.4, end: 1, speaker: 0 },
    { text: 'Bye.', start: 3, end: 3.5, speaker: 1 },
  ]
  says({ text: 'Hello there. Bye.', language: '', duration: 3.6, words })
  const model = ['model', 'xai/grok-voice-transcribe-2.0'] as const
  const { body } = await asked([model, ...verbose, word, segment, ['language', 'de']])
  expect(body).toMatchObject({ language: 'german', duration: 3.6, usage: duration(3.6) })
  expect(body.words[1]).toMatchObject({ word: 'there.', start: 0.4, end: 1 })
  expect(body.segments).toMatchObject([
    { start: 0, end: 1, text: 'Hello there.' },
    { start: 3, end: 3.5, text: 'Bye.' },
  ])
  expect([at(), sent()]).toEqual([
    '/v1/stt',
    { model: 'grok-voice-transcribe-2.0', format: 'true', language: 'de', file: 'sound.wav' },
  ])
  expect(world.provider.received.at(-1)?.body.at(-1)[0]).toBe('file')
  expect((await asked([model, ['response_format', 'diarized_json']])).body.segments).toMatchObject([
    { speaker: '0' },
    { speaker: '1', text: 'Bye.' },
  ])
})

test('Deepgram: the bytes alone, everything else in the query', async () => {
  const words = [{ word: 'hello', punctuated_word: 'Hello.', start: 0, end: 0.4, speaker: 1 }]
  const channel = { detected_language: 'en', alternatives: [{ transcript: 'Hello.', words }] }
  const utterances = [{ transcript: 'Hello.', start: 0, end: 0.5, speaker: 1 }]
  says({ metadata: { duration: 2.5 }, results: { channels: [channel], utterances } })
  const model = ['model', 'deepgram/nova-x'] as const
  const { body, dropped } = await asked([model, ...verbose, word, segment])
  expect(body).toMatchObject({
    language: 'english',
    duration: 2.5,
    text: 'Hello.',
    words: [{ word: 'Hello.', start: 0, end: 0.4 }],
    segments: [{ id: 0, start: 0, end: 0.5, text: 'Hello.' }],
    usage: duration(2.5),
  })
  expect(dropped).toBeUndefined()
  const { headers, body: bytes } = world.provider.received.at(-1) ?? {}
  expect([headers?.['content-type'], headers?.authorization]).toEqual(['audio/wav', 'Token provider-secret'])
  expect(twoSeconds.equals(bytes)).toBe(true)
  expect(at()).toBe('/v1/listen?model=nova-x&detect_language=true&smart_format=true&utterances=true')
  const said = { model: 'deepgram/nova-x', file: await toFile(twoSeconds, 'sound.wav') }
  expect(await world.router.openai().audio.transcriptions.create(said)).toEqual({
    text: 'Hello.',
    usage: duration(2.5),
  })
})

test('ElevenLabs: words without the spaces between them; the router knows how long the sound is', async () => {
  const spoken = (text: string, start: number, speaker_id: string) => ({
    text,
    start,
    end: start + 0.4,
    type: 'word',
    speaker_id,
  })
  const words = [
    spoken('Hello.', 0, 'speaker_0'),
    { text: ' ', start: 0.4, end: 0.5, type: 'spacing' },
    spoken('Hi.', 0.5, 'speaker_1'),
  ]
  says({ language_code: 'eng', language_probability: 1, text: 'Hello. Hi.', words })
  const model = ['model', 'elevenlabs/scribe_x'] as const
  const { body, dropped } = await asked([model, ['response_format', 'diarized_json'], ['prompt', 'Hm']])
  expect(body).toMatchObject({
    duration: 2,
    usage: duration(2),
    segments: [{ speaker: 'speaker_0', text: 'Hello.' }, { speaker: 'speaker_1' }],
  })
  expect(dropped).toEqual(['prompt'])
  expect([at(), sent()]).toEqual([
    '/v1/speech-to-text',
    { model_id: 'scribe_x', diarize: 'true', tag_audio_events: 'false', file: 'sound.wav' },
  ])
  const { language, segments } = (await asked([model, ...verbose])).body
  expect([language, segments.length]).toEqual(['english', 2])
})

test('Cohere: a text, whatever is wanted', async () => {
  says({ text: 'Hello.' })
  const model = ['model', 'cohere/transcribe-x'] as const
  const { body, dropped } = await asked([model, ['language', 'en'], ...verbose, word])
  expect(body).toEqual({
    task: 'transcribe',
    language: 'english',
    duration: 2,
    text: 'Hello.',
    words: [],
    usage: duration(2),
  })
  expect([at(), sent(), dropped]).toEqual([
    '/v2/audio/transcriptions',
    { model: 'transcribe-x', language: 'en', file: 'sound.wav' },
    ['timestamp_granularities'],
  ])
})

describe('the SDK of OpenAI', () => {
  const models = [
    'openai/whisper-1',
    'groq/whisper-large-v3',
    'mistral/voxtral',
    'together/whisper',
    'fireworks/asr',
    'xai/grok-voice-transcribe-2.0',
    'openrouter/whisper',
  ]
  const file = () => toFile(twoSeconds, 'sound.wav')
  const times = { start: 0, end: 1.5 }
  beforeEach(() =>
    says({
      text: 'Hello.',
      language: 'en',
      duration: 12,
      words: [{ word: 'Hello.', text: 'Hello.', ...times }],
      segments: [{ id: 0, text: 'Hello.', ...times }],
      usage: { type: 'duration', seconds: 12, prompt_audio_seconds: 12 },
    }),
  )
  test.each(models)('%s: json, verbose and streamed', async (model) => {
    const { transcriptions } = world.router.openai().audio
    const plain = await transcriptions.create({ model, file: await file() })
    expect(plain).toEqual({ text: 'Hello.', usage: duration(12) })
    const told = await transcriptions.create({
      model,
      file: await file(),
      response_format: 'verbose_json',
      timestamp_granularities: ['segment'],
    })
    expect([told.text, told.language, told.segments?.length]).toEqual(['Hello.', 'english', 1])
    const events = []
    for await (const event of await transcriptions.create({ model, file: await file(), stream: true }))
      events.push(event)
    expect(events).toMatchObject([{ type: 'transcript.text.done', text: 'Hello.', usage: duration(12) }])
  })
  test('errors', async () => {
    const { transcriptions } = world.router.openai().audio
    const call = transcriptions.create({ model: 'openai/whisper-1', file: await toFile(Buffer.from('text'), 'a.txt') })
    await expect(call).rejects.toThrow(OpenAI.BadRequestError)
  })
})

const specification = 'openai.openapi.yaml'

describe.skipIf(recordingsMissing || specMissing(specification))(
  'recorded answers, 14.10: of models billed by token with times in a schema of their own',
  () => {
    const spec = publishedSpec(specification) as { components: { schemas: JsonObject } } | undefined
    const ajv = new Ajv2020({ strict: false, validateFormats: false })
    const accepts = (name: string) =>
      ajv.compile({ $ref: `#/$defs/${name}`, $defs: definitionsOf(spec?.components.schemas) })
    const all = recordings('openai-transcription').filter(({ feature }) => feature !== 'translation')
    const byModel: Record<string, string> = {
      'voxtral-mini-latest': 'mistral/voxtral',
      'openai/gpt-4o-mini-transcribe': 'openrouter/whisper',
    }

    test.each(all.map((one) => [one.case, one] as const))('%s', async (_, recorded) => {
      world.answer((_, response) => replay(recorded, response))
      const parts = (recorded.request?.body?.multipart ?? []).filter(
        ({ name }: { name: string }) => name && name !== 'file',
      )
      const model = byModel[recorded.model ?? ''] ?? `openai/${recorded.model ?? 'whisper-1'}`
      const fields = parts.map(({ name, value }: { name: string; value: string }) => [
        name,
        name === 'model' ? model : value,
      ])
      const format = recorded.feature === 'verbose-json' ? verbose : []
      const { status, text, body } = await asked([...(fields.length > 0 ? fields : [['model', model]]), ...format])
      expect(status).toBe(recorded.response.status)
      const expected: JsonObject = recorded.response.body
      if (recorded.response.sse !== undefined) {
        const events = recordedEvents(recorded).map(({ data }) => (data === '[DONE]' ? data : JSON.parse(data)))
        const came = text
          .split('\n\n')
          .filter(Boolean)
          .map((line) => line.replace('data: ', ''))
        expect(came.map((data) => (data === '[DONE]' ? data : withoutCost(JSON.parse(data))))).toEqual(events)
        const check = accepts('CreateTranscriptionResponseStreamEvent')
        for (const event of events) if (event !== '[DONE]') expect([check(event), check.errors]).toEqual([true, null])
      } else if (status === 200) {
        expect(body.text).toBe(expected.text)
        if (model.startsWith('openai/')) expect(withoutCost(body)).toEqual(expected)
        const schema = { 'verbose-json': 'VerboseJson', diarized: 'DiarizedJson' }[recorded.feature] ?? 'Json'
        const check = accepts(`CreateTranscriptionResponse${schema}`)
        expect([check(body), check.errors]).toEqual([true, null])
      } else
        expect(body.error).toMatchObject({ origin: 'provider', message: expect.stringContaining('response_format') })
    })
  },
)

function replay(
  { response: recorded }: Recording,
  response: Parameters<Parameters<TranscriptionWorld['answer']>[0]>[1],
) {
  const { status, headers, sse, body } = recorded
  response.writeHead(status, headers).end(sse ?? JSON.stringify(body))
}

function withoutCost({ usage, ...reply }: JsonObject): JsonObject {
  const { cost: _, ...counts } = (usage ?? {}) as JsonObject
  return usage === undefined ? reply : { ...reply, usage: counts }
}

/** Published schemas whose references stay inside. */
function definitionsOf(schemas: JsonObject = {}): JsonObject {
  const needed = Object.entries(schemas).filter(([name]) => /^(?:CreateTranscriptionResponse|Transcript)/.test(name))
  return JSON.parse(JSON.stringify(Object.fromEntries(needed)).replaceAll('#/components/schemas/', '#/$defs/'))
}
