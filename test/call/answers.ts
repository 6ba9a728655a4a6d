import type { ServerResponse } from 'node:http'
import type { JsonObject } from '../../src/core/json.ts'
import { answerJson, type Received } from '../helpers/provider.ts'

// What a provider answers at the paths that routes lead to: whole or streamed, with or without the tokens that it counted.

/** The tokens that every answer counts. */
export const counted = { input: 10, output: 5 }

/** What an answer is to say beside its words. */
export type Saying = {
  /** The model that served, as the provider calls it. */
  model?: string
  /** No tokens are counted. */
  uncounted?: boolean
}

type Answering = (request: Received, said: Required<Saying>) => JsonObject
type Streaming = (request: Received, said: Required<Saying>) => JsonObject[]

const chatUsage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
const tokens = { input_tokens: 10, output_tokens: 5, total_tokens: 15 }
const usageOf = (usage: JsonObject, { uncounted }: Saying) => (uncounted ? {} : { usage })
const message = { role: 'assistant', content: 'Hi you.' }
const output = [
  {
    ...{ type: 'message', id: 'm1', role: 'assistant', status: 'completed' },
    content: [{ type: 'output_text', text: 'Hi you.', annotations: [] }],
  },
]
const image = { b64_json: 'UEk=' }
const imageUsage = { ...tokens, input_tokens_details: { text_tokens: 10, image_tokens: 0 } }

/** Whole answers, by the end of the path. */
export const answers: { readonly [path: string]: Answering } = {
  '/chat/completions': (_, said) => ({
    ...{ id: 'c1', created: 1, object: 'chat.completion', model: said.model },
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    ...usageOf(chatUsage, said),
  }),
  '/v1/messages': (_, said) => ({
    ...{ id: 'm1', type: 'message', role: 'assistant', model: said.model, stop_reason: 'end_turn' },
    content: [{ type: 'text', text: 'Hi you.' }],
    ...usageOf(tokens, said),
  }),
  '/count_tokens': () => ({ input_tokens: 14 }),
  '/input_tokens': () => ({ object: 'response.input_tokens', input_tokens: 14 }),
  '/responses/compact': (_, said) => ({
    ...{ id: 'r2', object: 'response.compaction', created_at: 2, model: said.model },
    output: [{ type: 'compaction', id: 'cmp_1', encrypted_content: 'sealed' }],
    ...usageOf(tokens, said),
  }),
  '/responses': (_, said) => ({
    ...{ id: 'r1', object: 'response', created_at: 1, status: 'completed', model: said.model, output },
    ...usageOf(tokens, said),
  }),
  '/completions': (_, said) => ({
    ...{ id: 'c1', created: 1, object: 'text_completion', model: said.model },
    choices: [{ index: 0, text: ' upon', finish_reason: 'stop', logprobs: null }],
    ...usageOf(chatUsage, said),
  }),
  '/embeddings': (_, said) => ({
    ...{ object: 'list', model: said.model, data: [{ object: 'embedding', index: 0, embedding: [1, 2] }] },
    ...usageOf({ prompt_tokens: 10, total_tokens: 10 }, said),
  }),
  '/rerank': (_, said) => ({
    ...{ id: 'k1', model: said.model, results: [{ index: 0, relevance_score: 0.9 }] },
    ...usageOf({ prompt_tokens: 10, total_tokens: 10 }, said),
  }),
  '/moderations': (_, said) => ({
    ...{ id: 'k1', model: said.model, results: [{ flagged: false, categories: {}, category_scores: {} }] },
    ...usageOf({ prompt_tokens: 10 }, said),
  }),
  '/images/generations': (_, said) => ({ created: 1, model: said.model, data: [image], ...usageOf(imageUsage, said) }),
  '/images/edits': (_, said) => ({ created: 1, model: said.model, data: [image], ...usageOf(imageUsage, said) }),
  '/audio/transcriptions': (_, said) => ({ text: 'Hi.', model: said.model, ...usageOf({ ...tokens }, said) }),
  '/audio/speech': () => ({ audio: 'c291bmQ=' }),
  '/decisions': (_, said) => ({
    ...{ model: said.model, answers: [{ type: 'predicate', probability: 0.9 }] },
    ...usageOf(tokens, said),
  }),
}

const chunk = (object: string, choice: JsonObject, model: string): JsonObject => ({
  ...{ id: 'c1', created: 1, object, model },
  choices: [{ index: 0, ...choice }],
})

/** The events of streams, by the end of the path. */
const streams: { readonly [path: string]: Streaming } = {
  '/chat/completions': (_, said) => [
    chunk('chat.completion.chunk', { delta: { role: 'assistant', content: 'Hi ' }, finish_reason: null }, said.model),
    chunk('chat.completion.chunk', { delta: { content: 'you.' }, finish_reason: null }, said.model),
    chunk('chat.completion.chunk', { delta: {}, finish_reason: 'stop' }, said.model),
    ...(said.uncounted ? [] : [{ ...chunk('chat.completion.chunk', {}, said.model), choices: [], usage: chatUsage }]),
  ],
  '/completions': (_, said) => [
    chunk('text_completion', { text: ' upon', finish_reason: null, logprobs: null }, said.model),
    chunk('text_completion', { text: ' a time', finish_reason: 'stop', logprobs: null }, said.model),
    ...(said.uncounted ? [] : [{ ...chunk('text_completion', {}, said.model), choices: [], usage: chatUsage }]),
  ],
  '/images/generations': (_, said) => [
    { type: 'image_generation.partial_image', partial_image_index: 0, ...image },
    { type: 'image_generation.completed', ...image, ...usageOf(imageUsage, said) },
  ],
  '/images/edits': (_, said) => [
    { type: 'image_edit.partial_image', partial_image_index: 0, ...image },
    { type: 'image_edit.completed', ...image, ...usageOf(imageUsage, said) },
  ],
  '/audio/transcriptions': (_, said) => [
    { type: 'transcript.text.delta', delta: 'Hi' },
    { type: 'transcript.text.done', text: 'Hi.', ...usageOf({ ...tokens }, said) },
  ],
  '/audio/speech': (_, said) => [
    { type: 'speech.audio.delta', audio: 'c291bmQ=' },
    { type: 'speech.audio.done', ...usageOf(tokens, said) },
  ],
}

/** The entry whose path a request ends with, the longest first. */
function entryFor<Entry>(entries: { readonly [path: string]: Entry }, path: string): Entry | undefined {
  const found = Object.keys(entries).filter((end) => path.endsWith(end))
  return entries[found.toSorted((one, other) => other.length - one.length)[0] ?? '']
}

/** The value of a field of a body, which may be a form. */
export function fieldOf({ body }: Pick<Received, 'body'>, name: string): unknown {
  if (!Array.isArray(body)) return body?.[name]
  return body.find(([field]: [string]) => field === name)?.[1]
}

/** Whether a request asks for a stream. */
export function asksForStream(request: Received): boolean {
  return String(fieldOf(request, 'stream')) === 'true' || fieldOf(request, 'stream_format') === 'sse'
}

/** The texts of the events of a stream. */
export function eventsFor(request: Received, saying: Saying = {}): string[] {
  const said = { model: String(fieldOf(request, 'model')), uncounted: false, ...saying }
  const made = entryFor(streams, request.path)
  if (!made) throw new Error(`no stream is made for ${request.path}: add it to test/call/answers.ts`)
  const texts = made(request, said).map((event) => `data: ${JSON.stringify(event)}\n\n`)
  return /completions|transcriptions/.test(request.path) ? [...texts, 'data: [DONE]\n\n'] : texts
}

/** Answers a request as providers do. */
export function answer(response: ServerResponse, request: Received, saying: Saying = {}, headers = {}): void {
  if (asksForStream(request)) {
    response.writeHead(200, { 'content-type': 'text/event-stream', ...headers })
    response.end(eventsFor(request, saying).join(''))
  } else if (request.path.endsWith('/audio/speech')) {
    response.writeHead(200, { 'content-type': 'audio/mpeg', ...headers }).end(Buffer.from('sound'))
  } else {
    const made = entryFor(answers, request.path)
    if (!made) throw new Error(`no answer is made for ${request.path}: add it to \`answers\` in test/call/answers.ts`)
    const said = { model: String(fieldOf(request, 'model')), uncounted: false, ...saying }
    answerJson(response, made(request, said), 200, headers)
  }
}
