/**
 * A provider as fast as it can be: fixed answers in the formats of OpenAI and Anthropic, whole ones of about 700 bytes, streams of
 * 200 words; where it is asked to be slow, with pauses between them.
 */
import { createServer, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout } from 'node:timers/promises'
import { serveMeasurements } from './measured.ts'
import { inAMoment, longSpeech, momentMs, slowly, tenASecond, verySlowly } from './ways.ts'

const sentence =
  'Hello! A gateway is a service between applications and the providers that they call. It sends each call on to the right one, and counts what it costs.'

const words = Array.from({ length: 200 }, (_, index) => `word${index} `)
const usage = { prompt_tokens: 120, completion_tokens: 200, total_tokens: 320 }

const chat = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: 'gpt-4o-mini-2024-07-18',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: sentence, refusal: null, annotations: [] },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: {
    prompt_tokens: 32,
    completion_tokens: 34,
    total_tokens: 66,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: 0,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  },
  service_tier: 'default',
  system_fingerprint: 'fp_bench',
})

const chunk = (delta: object, finish: string | null = null, more: object = {}) =>
  `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'gpt-4o-mini-2024-07-18', choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`
const chatChunks = [
  chunk({ role: 'assistant', content: '' }),
  ...words.map((content) => chunk({ content })),
  chunk({}, 'stop'),
  `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'gpt-4o-mini-2024-07-18', choices: [], usage })}\n\n`,
  'data: [DONE]\n\n',
]

const message = {
  id: 'msg_bench',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-5-20250929',
  content: [{ type: 'text', text: sentence }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 120, output_tokens: 200 },
}
const named = (data: { type: string; [name: string]: unknown }) =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
const messageChunks = [
  named({
    type: 'message_start',
    message: { ...message, content: [], stop_reason: null, usage: { input_tokens: 120, output_tokens: 1 } },
  }),
  named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
  ...words.map((text) => named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })),
  named({ type: 'content_block_stop', index: 0 }),
  named({
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 200 },
  }),
  named({ type: 'message_stop' }),
]

const image = JSON.stringify({
  created: 1_700_000_000,
  data: [{ b64_json: Buffer.alloc(1_000, 85).toString('base64') }],
  usage: {
    input_tokens: 300,
    output_tokens: 1_056,
    total_tokens: 1_356,
    input_tokens_details: { text_tokens: 10, image_tokens: 290 },
  },
})

const embedding = JSON.stringify({
  object: 'list',
  model: 'text-embedding-3-small',
  data: [{ object: 'embedding', index: 0, embedding: Buffer.alloc(6_144, 85).toString('base64') }],
  usage: { prompt_tokens: 12, total_tokens: 12 },
})

const server = createServer(async (request, response) => {
  let body = ''
  for await (const bytes of request) body += bytes
  if (request.url?.endsWith('/images/edits')) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(image)
    return
  }
  if (request.url?.endsWith('/embeddings')) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(embedding)
    return
  }
  if (request.url?.endsWith('/audio/speech')) return await speak(response, body.includes(longSpeech) ? 800 : 2)
  const streamed = /"stream":\s*true/.test(body)
  const messages = request.url?.endsWith('/messages')
  if (body.includes(inAMoment)) await setTimeout(momentMs)
  if (!streamed) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(messages ? JSON.stringify(message) : chat)
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const chunks = messages ? messageChunks : chatChunks
  if (body.includes(verySlowly))
    pace(
      response,
      chunks.filter((_, index) => index % 10 === 0 || index > 200),
      500,
    )
  else if (body.includes(slowly)) pace(response, chunks, 5)
  else if (body.includes(tenASecond)) pace(response, chunks, 100)
  else stream(response, chunks, 0)
})

/** Audio in pieces of 64 KB, as fast as it is read. */
async function speak(response: ServerResponse, pieces: number): Promise<void> {
  response.writeHead(200, { 'content-type': 'audio/mpeg' })
  await pipeline(Readable.from(Array(pieces).fill(audio)), response).catch(() => {})
}

const audio = Buffer.alloc(64 * 1_024, 85)

/** One write per turn of the event loop, as tokens come one by one. */
function stream(response: ServerResponse, chunks: string[], index: number): void {
  if (index === chunks.length) {
    response.end()
    return
  }
  response.write(chunks[index])
  setImmediate(stream, response, chunks, index + 1)
}

function pace(response: ServerResponse, chunks: string[], pauseMs: number): void {
  let next = 0
  const timer = setInterval(() => {
    response.write(chunks[next])
    if (++next < chunks.length) return
    clearInterval(timer)
    response.end()
  }, pauseMs)
}

serveMeasurements(server)
