import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  answerJson,
  beginStream,
  type LoopbackProvider,
  loopbackProvider,
  type Received,
} from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'

// Providers of unusual forms, each dropped in as a file: events that are bare texts, models with slashes in the path,
// JSON lines, and servers of the Chat format with finish reasons and endings that no client knows.

const models = `models:
  maker/m1: { api: chat, context_window: 8000, max_output_tokens: 900, pricing: [{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 2e-6 }] }
`

const head = (slug: string) => `slug: ${slug}
name: ${slug}
base_url: http://127.0.0.1:9
auth: { scheme: none }
${models}`

const manifests = {
  'providers/texts.yaml': `${head('texts')}
usage: '{ "input": input_token_count, "output": output_token_count }'
endpoints:
  chat:
    path: /v1/models/{+model}/predictions
    stream: { data: text }
    request:
      let: '$said := messages.parts[type = "text"].text;'
      input: '{ "input": { "prompt": $join($said, "\\n"), "system_prompt": $join(system.text, "\\n"), "max_tokens": max_output_tokens } }'
      body: '{ "stream": stream }'
    reply: '{ "parts": [{ "type": "text", "text": $join(output) }], "finish": status = "succeeded" ? "stop" : "error", "usage": metrics }'
    events:
      output: '{ "text": $ }'
      error: '{ "error": { "message": $ } }'
      done: '{ "finish": "stop" }'
`,
  'providers/lines.yaml': `${head('lines')}
finish: { finished: stop, full: length }
usage: '{ "input": asked, "output": answered }'
endpoints:
  chat:
    path: /talk
    stream: { format: ndjson }
    request:
      talk: '[messages.{ "by": role, "words": $join(parts[type = "text"].text) }]'
      live: stream
    reply: '{ "parts": [{ "type": "text", "text": words }], "finish": over, "usage": count }'
    events: { "*": '{ "text": words, "finish": over, "usage": count }' }
`,
  'providers/native.yaml': `${head('native')}
dialect: openai-chat
finish: { eos: stop, model_length: length, sensitive: content_filter }
`,
}

let provider: LoopbackProvider
let router: TestRouter
beforeAll(async () => {
  provider = await loopbackProvider(answer)
  const at = { base_url: provider.url }
  router = await testRouter({ files: manifests, providers: { texts: at, lines: at, native: at } })
})
afterAll(async () => {
  await router.end()
  await provider.close()
})

function answer(request: Received, response: ServerResponse): void {
  if (request.path.startsWith('/v1/models')) answerTexts(request, response)
  else if (request.path === '/talk') answerLines(request, response)
  else answerNative(request, response)
}

function answerTexts({ body }: Received, response: ServerResponse): void {
  if (!body.stream) {
    const metrics = { input_token_count: 5, output_token_count: 3 }
    answerJson(response, { status: 'succeeded', output: ['Hel', 'lo'], metrics })
    return
  }
  beginStream(response)
  response.write('event: output\ndata: Hel\n\nevent: output\ndata: lo\n\nevent: output\ndata: \ndata: you\n\n')
  const broken = body.input.prompt === 'break'
  response.end(broken ? 'event: error\ndata: The model is gone.\n\n' : 'event: done\ndata: {}\n\n')
}

function answerLines({ body }: Received, response: ServerResponse): void {
  const over = body.talk.at(-1).words
  const count = { asked: 7, answered: 2 }
  const lines = body.live ? [{ words: 'Hel' }, { words: 'lo', over, count }] : [{ words: 'Hello', over, count }]
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
}

function answerNative({ body }: Received, response: ServerResponse): void {
  const reason = body.messages.at(-1).content
  const shared = { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm1' }
  const usage = { prompt_tokens: 4, completion_tokens: 2, total_tokens: 6 }
  if (!body.stream) {
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: reason }]
    answerJson(response, { ...shared, object: 'chat.completion', choices, usage })
    return
  }
  beginStream(response)
  const send = (chunk: unknown) => response.write(`data: ${JSON.stringify(chunk)}\n\n`)
  const none = reason === 'marked' || reason === 'cut'
  send({ ...shared, choices: [{ index: 0, delta: { role: 'assistant', content: 'Hello' }, finish_reason: null }] })
  if (!none) send({ ...shared, choices: [{ index: 0, delta: {}, finish_reason: reason }] })
  if (reason !== 'cut') response.write('data: [DONE]\n\n')
  response.end()
}

const call = (model: string, content: string, more: object = {}, path = '/v1/chat/completions') =>
  router.call(path, { model: `${model}/maker/m1`, messages: [{ role: 'user', content }], ...more })

/** The text and the finish reasons of a streamed reply. */
async function streamed(model: string, content: string) {
  const text = await (await call(model, content, { stream: true })).text()
  const frames = [...text.matchAll(/^data: (.+)$/gm)].map(([, data = '']) => data)
  const chunks = frames.filter((data) => data !== '[DONE]').map((data) => JSON.parse(data))
  const choices = chunks.flatMap((chunk) => chunk.choices ?? [])
  return {
    text: choices.map(({ delta }) => delta.content ?? '').join(''),
    reasons: choices.map(({ finish_reason }) => finish_reason).filter(Boolean),
    done: frames.at(-1) === '[DONE]',
    error: chunks.find((chunk) => chunk.error)?.error,
  }
}

describe('a provider whose events are bare texts', () => {
  test('is read whole and streamed, line breaks and all; slashes of the model stay in the path', async () => {
    const whole = await call('texts', 'Hi', { seed: 1 })
    expect(whole.headers.get('x-router-dropped')).toBe('seed')
    expect(await whole.json()).toMatchObject({
      choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 5, completion_tokens: 3 },
    })
    expect(provider.received.at(-1)?.path).toBe('/v1/models/maker/m1/predictions')
    expect(await streamed('texts', 'Hi')).toEqual({ text: 'Hello\nyou', reasons: ['stop'], done: true })
  })

  test('fails inside a stream as declared', async () => {
    const { error, done } = await streamed('texts', 'break')
    expect(error).toMatchObject({ message: 'The model is gone.' })
    expect(done).toBe(false)
  })
})

describe('a provider of JSON lines', () => {
  test('declares everything once: definitions, usage and finish reasons apply whole and streamed', async () => {
    const expected = {
      choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 7 },
    }
    expect(await (await call('lines', 'finished')).json()).toMatchObject(expected)
    expect((await call('lines', 'unheard')).status).toBe(502)
    expect(await streamed('lines', 'full')).toEqual({ text: 'Hello', reasons: ['length'], done: true })
    expect(await streamed('lines', 'unheard')).toMatchObject({ done: false, error: { code: expect.any(String) } })
  })
})

describe('a provider of the client’s own format', () => {
  test.each([
    ['eos', 'stop'],
    ['model_length', 'length'],
    ['sensitive', 'content_filter'],
    ['stop', 'stop'],
  ])('that ends with %s is told as %s, whole and streamed', async (word, reason) => {
    const whole = (await (await call('native', word)).json()) as { choices: unknown[] }
    expect(whole.choices[0]).toMatchObject({ message: { content: 'Hello' }, finish_reason: reason })
    expect(await streamed('native', word)).toEqual({ text: 'Hello', reasons: [reason], done: true })
    const answer = await call('native', word, { max_tokens: 9 }, '/v1/messages')
    const messages = (await answer.json()) as { stop_reason: string }
    expect(messages.stop_reason).toBe({ stop: 'end_turn', length: 'max_tokens', content_filter: 'refusal' }[reason])
  })

  test('that never sends a finish reason is complete with its end marker, and cut off without', async () => {
    expect(await streamed('native', 'marked')).toEqual({ text: 'Hello', reasons: ['stop'], done: true })
    expect(await streamed('native', 'cut')).toMatchObject({ text: 'Hello', reasons: [], done: false, error: {} })
    const messages = await (await call('native', 'marked', { max_tokens: 9, stream: true }, '/v1/messages')).text()
    expect(messages).toContain('"stop_reason":"end_turn"')
    expect(messages).toContain('event: message_stop')
  })
})
