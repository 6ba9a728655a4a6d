import type { ServerResponse } from 'node:http'
import { answerJson, beginStream, type Received } from '../../helpers/provider.ts'

// Three providers, and calls of each of them by every API, whole and streamed.

const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`
const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 }

/** Answers as Acme (Chat Completions), Beta (Messages) and Gamma (Ollama) do. */
export function answerAsProvider({ path, body }: Received, response: ServerResponse): void {
  const { model, stream } = body
  const answer = path.includes('embeddings')
    ? {
        whole: {
          object: 'list',
          data: [{ object: 'embedding', index: 0, embedding: [1, 2] }],
          model,
          usage: { prompt_tokens: 2, total_tokens: 2 },
        },
        streamed: '',
      }
    : path.includes('/messages')
      ? inMessages(model)
      : path.includes('/api/chat')
        ? inOllama(model)
        : inChat(model)
  if (!stream) answerJson(response, answer.whole)
  else {
    beginStream(response)
    response.end(answer.streamed)
  }
}

function inChat(model: string) {
  const head = { id: 'c1', created: 1, model }
  const message = { role: 'assistant', content: 'Hello.' }
  const chunk = (delta: object, finish_reason: string | null = null) =>
    data({ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] })
  const last = data({ ...head, object: 'chat.completion.chunk', choices: [], usage })
  return {
    whole: { ...head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'stop' }], usage },
    streamed: `${chunk({ role: 'assistant', content: 'Hel' })}${chunk({ content: 'lo.' })}${chunk({}, 'stop')}${last}data: [DONE]\n\n`,
  }
}

function inMessages(model: string) {
  const content = [{ type: 'text', text: 'Hello.' }]
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model,
    content,
    stop_reason: 'end_turn',
    stop_sequence: null,
  }
  const counts = { input_tokens: 9, output_tokens: 3 }
  const events = [
    { type: 'message_start', message: { ...message, content: [], stop_reason: null, usage: counts } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello.' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 3 } },
    { type: 'message_stop' },
  ]
  return {
    whole: { ...message, usage: counts },
    streamed: events.map((event) => `event: ${event.type}\n${data(event)}`).join(''),
  }
}

function inOllama(model: string) {
  const head = { model, created_at: '2026-01-01T00:00:00Z' }
  const message = (content: string) => ({ message: { role: 'assistant', content } })
  const end = { done: true, done_reason: 'stop', prompt_eval_count: 9, eval_count: 3 }
  const lines = [
    { ...head, ...message('Hello.'), done: false },
    { ...head, ...message(''), ...end },
  ]
  return {
    whole: { ...head, ...message('Hello.'), ...end },
    streamed: lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
  }
}

const messages = [{ role: 'user', content: 'Hi' }]
const calls = [
  ...['acme/small', 'beta/sage', 'gamma/tiny'].flatMap((model) =>
    [false, true].flatMap((stream) => [
      { path: '/v1/chat/completions', body: { model, messages, stream, temperature: 0.5 } },
      { path: '/v1/messages', body: { model, max_tokens: 50, messages, stream } },
      { path: '/v1/responses', body: { model, input: 'Hi', stream } },
    ]),
  ),
  { path: '/v1/embeddings', body: { model: 'acme/vectors', input: 'Hi' } },
  { path: '/v1/chat/completions', body: { model: 'acme/small', deep_search: true, messages } },
]

type Answered = { call: string; status: number; headers: Record<string, string>; text: string }

/** Makes these calls, and asks for the models. Ids and times are left out of the answers. */
export async function answersOf(url: string, key: string): Promise<Answered[]> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const answered: Answered[] = []
  for (const { path, body } of [{ path: '/v1/models', body: undefined }, ...calls]) {
    const method = body ? { method: 'POST', body: JSON.stringify(body) } : {}
    const response = await fetch(url + path, { headers, ...method })
    const own = [...response.headers].filter(([name]) => name.startsWith('x-router') || name === 'content-type')
    const text = (await response.text()).replaceAll(ids, 'ID').replaceAll(times, '"$1":0')
    answered.push({
      call: `${path} ${JSON.stringify(body)}`,
      status: response.status,
      headers: Object.fromEntries(own),
      text,
    })
  }
  return answered
}

const ids = /(?:chatcmpl|resp|msg)[_-][\da-f-]{8,}|[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}|[\da-f]{32}/g
const times = /"(created|created_at|completed_at)":\d+/g
