/** A provider as fast as it can be: fixed answers in the formats of OpenAI and Anthropic, 200 chunks when streamed. */
import { createServer, type ServerResponse } from 'node:http'
import { serveMeasurements } from './measured.ts'

const words = Array.from({ length: 200 }, (_, index) => `word${index} `)
const usage = { prompt_tokens: 120, completion_tokens: 200, total_tokens: 320 }

const chat = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: 'bench',
  choices: [
    { index: 0, message: { role: 'assistant', content: words.join(''), refusal: null }, finish_reason: 'stop' },
  ],
  usage,
})

const chunk = (delta: object, finish: string | null = null, more: object = {}) =>
  `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'bench', choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`
const chatChunks = [
  chunk({ role: 'assistant', content: '' }),
  ...words.map((content) => chunk({ content })),
  chunk({}, 'stop'),
  `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'bench', choices: [], usage })}\n\n`,
  'data: [DONE]\n\n',
]

const message = {
  id: 'msg_bench',
  type: 'message',
  role: 'assistant',
  model: 'bench',
  content: [{ type: 'text', text: words.join('') }],
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

const server = createServer(async (request, response) => {
  let streamed = false
  let last = ''
  for await (const bytes of request) {
    const text = last + bytes
    streamed ||= /"stream":\s*true/.test(text)
    last = text.slice(-20)
  }
  const messages = request.url?.endsWith('/messages')
  if (!streamed) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(messages ? JSON.stringify(message) : chat)
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  stream(response, messages ? messageChunks : chatChunks, 0)
})

/** One write per turn of the event loop, as tokens come one by one. */
function stream(response: ServerResponse, chunks: string[], index: number): void {
  if (index === chunks.length) {
    response.end()
    return
  }
  response.write(chunks[index])
  setImmediate(stream, response, chunks, index + 1)
}

serveMeasurements(server)
