import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clientApis } from '../e2e/translation/steps-world.ts'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider, type Received } from '../helpers/provider.ts'
import { alone, type TestRouter, testKey, testRouter } from '../helpers/router.ts'
import { formOf, twoSeconds } from '../operations/transcription-world.ts'

// Shipped providers whose answers are jobs, through the whole router.

let provider: LoopbackProvider
let router: TestRouter
let answer: (request: Received, response: ServerResponse) => void = () => {}

beforeAll(async () => {
  provider = await loopbackProvider((request, response) => answer(request, response))
  const at = { base_url: provider.url, secret: 'key-of-provider' }
  router = await testRouter({ providers: alone({ replicate: at, 'assemblyai-speech': at }) })
})
afterAll(async () => {
  await router?.end()
  await provider?.close()
})

function begin(answering: typeof answer): void {
  provider.received.length = 0
  answer = answering
}

const model = 'replicate/meta/meta-llama-3.1-405b-instruct'

describe('a text model of Replicate', () => {
  test.each(clientApis)('answers whole, and is paid by its tokens, at $path', async (api) => {
    let polls = 0
    begin(({ method, body }, response) => {
      if (method === 'POST')
        return answerJson(response, { id: 'p1', status: 'starting', input: body.input, urls: {} }, 201)
      const input = { max_tokens: 50 }
      if (++polls < 2) return answerJson(response, { id: 'p1', status: 'processing', output: ['Hel'], input })
      const metrics = { input_token_count: 100, output_token_count: 10, predict_time: 0.4 }
      answerJson(response, { id: 'p1', status: 'succeeded', error: null, output: ['Hel', 'lo.'], input, metrics })
    })
    const response = await router.call(api.path, { model, ...api.body })
    const reply = (await response.json()) as { usage: { cost: number } }
    expect(api.text(reply)).toBe('Hello.')
    expect(reply.usage.cost).toBeCloseTo(110 * 9.5e-6, 9)
    expect(provider.received.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /models/meta/meta-llama-3.1-405b-instruct/predictions',
      'GET /predictions/p1',
      'GET /predictions/p1',
    ])
    expect(provider.received[0]?.body.input).toMatchObject({ prompt: 'Hi' })
    expect(provider.received[0]?.body).not.toHaveProperty('stream')
  })

  test.each(clientApis)('streams from the address that its first answer names, at $path', async (api) => {
    begin(({ method, body }, response) => {
      if (method === 'POST') {
        expect(body.stream).toBe(true)
        return answerJson(
          response,
          { id: 'p1', status: 'starting', urls: { stream: `${provider.url}/stream/p1` } },
          201,
        )
      }
      beginStream(response)
      response.end('event: output\nid: 1:0\ndata: Hel\n\nevent: output\ndata: lo.\n\nevent: done\ndata: {}\n\n')
    })
    const response = await router.call(api.path, { model, ...api.body, stream: true })
    const raw = await response.text()
    const events = [...raw.matchAll(/^data: (\{.*)$/gm)].map(([, json = '']) => JSON.parse(json))
    expect(events.map(api.delta).filter(Boolean)).toEqual(['Hel', 'lo.'])
    expect(raw).toContain(api.end)
  })

  test('that is cancelled there is an error in the stream', async () => {
    begin(({ method, path }, response) => {
      if (method === 'POST') {
        const urls = { stream: `${provider.url}/stream/p1` }
        return answerJson(response, path.endsWith('/cancel') ? {} : { id: 'p1', urls }, 201)
      }
      beginStream(response)
      response.end('event: output\ndata: Hel\n\nevent: done\ndata: {"reason": "canceled"}\n\n')
    })
    const [{ path, body }] = clientApis
    const raw = await (await router.call(path, { model, ...body, stream: true })).text()
    expect(raw).toContain('The prediction ended as')
    expect(raw).not.toContain('[DONE]')
  })
})

test('a transcription of AssemblyAI uploads the file, waits for the transcript and is paid by the second', async () => {
  let polls = 0
  begin(({ method, path }, response) => {
    if (path === '/v2/upload') return answerJson(response, { upload_url: 'https://cdn.assemblyai.com/upload/1' })
    if (method === 'POST') return answerJson(response, { id: 't1', status: 'queued', audio_duration: null })
    if (++polls < 2) return answerJson(response, { id: 't1', status: 'processing' })
    const words = [{ text: 'Good', start: 100, end: 400, confidence: 1, speaker: null }]
    answerJson(response, {
      id: 't1',
      status: 'completed',
      text: 'Good day.',
      language_code: 'en_us',
      audio_duration: 2,
      words,
    })
  })
  const response = await fetch(`${router.url}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${testKey}` },
    body: formOf([
      ['model', 'assemblyai-speech/universal-2'],
      ['response_format', 'verbose_json'],
      ['timestamp_granularities', 'word'],
    ]),
  })
  expect(await response.json()).toMatchObject({
    text: 'Good day.',
    duration: 2,
    words: [{ word: 'Good', start: 0.1, end: 0.4 }],
    usage: { type: 'duration', seconds: 2, cost: 0.00008334 },
  })
  const [upload, request] = provider.received
  expect(Buffer.compare(upload?.body, twoSeconds)).toBe(0)
  expect(provider.received.every(({ headers }) => headers.authorization === 'key-of-provider')).toBe(true)
  expect(request?.body).toEqual({
    audio_url: 'https://cdn.assemblyai.com/upload/1',
    speech_models: ['universal-2'],
    language_detection: true,
  })
  expect(provider.received.map(({ path }) => path)).toEqual([
    '/v2/upload',
    '/v2/transcript',
    '/v2/transcript/t1',
    '/v2/transcript/t1',
  ])
})
