import type { ServerResponse } from 'node:http'
import type { JsonObject } from '../../src/core/json.ts'
import { answerJson, type Received } from '../helpers/provider.ts'

// Provider answers for the paths that the routes lead to: whole or streamed, with or without token counts.

/** The tokens that every answer counts. */
export const counted = { input: 10, output: 5 }

/** Facts that an answer reports beside its content. */
export type Reported = {
  /** The model that served, as the provider calls it. */
  model?: string
  /** No tokens are counted. */
  uncounted?: boolean
  /** Makes another usage of the usual one. */
  usage?: ((usage: JsonObject) => JsonObject) | undefined
}

type AllReported = Required<Omit<Reported, 'usage'>> & Pick<Reported, 'usage'>

type Answering = (request: Received, reported: AllReported) => JsonObject
type Streaming = (request: Received, reported: AllReported) => JsonObject[]

const chatUsage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
const tokens = { input_tokens: 10, output_tokens: 5, total_tokens: 15 }
const usageOf = (usage: JsonObject, { uncounted, usage: other }: Reported) =>
  uncounted ? {} : { usage: other?.(usage) ?? usage }
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
  '/chat/completions': (_, reported) => ({
    ...{ id: 'c1', created: 1, object: 'chat.completion', model: reported.model },
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    ...usageOf(chatUsage, reported),
  }),
  '/v1/messages': (_, reported) => ({
    ...{ id: 'm1', type: 'message', role: 'assistant', model: reported.model, stop_reason: 'end_turn' },
    content: [{ type: 'text', text: 'Hi you.' }],
    ...usageOf(tokens, reported),
  }),
  '/count_tokens': () => ({ input_tokens: 14 }),
  '/input_tokens': () => ({ object: 'response.input_tokens', input_tokens: 14 }),
  '/responses/compact': (_, reported) => ({
    ...{ id: 'r2', object: 'response.compaction', created_at: 2, model: reported.model },
    output: [{ type: 'compaction', id: 'cmp_1', encrypted_content: 'sealed' }],
    ...usageOf(tokens, reported),
  }),
  '/responses': (_, reported) => ({
    ...{ id: 'r1', object: 'response', created_at: 1, status: 'completed', model: reported.model, output },
    ...usageOf(tokens, reported),
  }),
  '/completions': (_, reported) => ({
    ...{ id: 'c1', created: 1, object: 'text_completion', model: reported.model },
    choices: [{ index: 0, text: ' upon', finish_reason: 'stop', logprobs: null }],
    ...usageOf(chatUsage, reported),
  }),
  '/embeddings': (_, reported) => ({
    ...{ object: 'list', model: reported.model, data: [{ object: 'embedding', index: 0, embedding: [1, 2] }] },
    ...usageOf({ prompt_tokens: 10, total_tokens: 10 }, reported),
  }),
  '/rerank': (_, reported) => ({
    ...{ id: 'k1', model: reported.model, results: [{ index: 0, relevance_score: 0.9 }] },
    ...usageOf({ prompt_tokens: 10, total_tokens: 10 }, reported),
  }),
  '/moderations': (_, reported) => ({
    ...{ id: 'k1', model: reported.model, results: [{ flagged: false, categories: {}, category_scores: {} }] },
    ...usageOf({ prompt_tokens: 10 }, reported),
  }),
  '/images/generations': (_, reported) => ({
    created: 1,
    model: reported.model,
    data: [image],
    ...usageOf(imageUsage, reported),
  }),
  '/images/edits': (_, reported) => ({
    created: 1,
    model: reported.model,
    data: [image],
    ...usageOf(imageUsage, reported),
  }),
  '/audio/transcriptions': (_, reported) => ({
    text: 'Hi.',
    model: reported.model,
    ...usageOf({ ...tokens }, reported),
  }),
  '/audio/speech': () => ({ audio: 'c291bmQ=' }),
  '/decisions': (_, reported) => ({
    ...{ model: reported.model, answers: [{ type: 'predicate', probability: 0.9 }] },
    ...usageOf(tokens, reported),
  }),
}

const chunk = (object: string, choice: JsonObject, model: string): JsonObject => ({
  ...{ id: 'c1', created: 1, object, model },
  choices: [{ index: 0, ...choice }],
})

/** The events of streams, by the end of the path. */
const streams: { readonly [path: string]: Streaming } = {
  '/chat/completions': (_, reported) => [
    chunk(
      'chat.completion.chunk',
      { delta: { role: 'assistant', content: 'Hi ' }, finish_reason: null },
      reported.model,
    ),
    chunk('chat.completion.chunk', { delta: { content: 'you.' }, finish_reason: null }, reported.model),
    chunk('chat.completion.chunk', { delta: {}, finish_reason: 'stop' }, reported.model),
    ...(reported.uncounted
      ? []
      : [{ ...chunk('chat.completion.chunk', {}, reported.model), choices: [], ...usageOf(chatUsage, reported) }]),
  ],
  '/completions': (_, reported) => [
    chunk('text_completion', { text: ' upon', finish_reason: null, logprobs: null }, reported.model),
    chunk('text_completion', { text: ' a time', finish_reason: 'stop', logprobs: null }, reported.model),
    ...(reported.uncounted
      ? []
      : [{ ...chunk('text_completion', {}, reported.model), choices: [], ...usageOf(chatUsage, reported) }]),
  ],
  '/images/generations': (_, reported) => [
    { type: 'image_generation.partial_image', partial_image_index: 0, ...image },
    { type: 'image_generation.completed', ...image, ...usageOf(imageUsage, reported) },
  ],
  '/images/edits': (_, reported) => [
    { type: 'image_edit.partial_image', partial_image_index: 0, ...image },
    { type: 'image_edit.completed', ...image, ...usageOf(imageUsage, reported) },
  ],
  '/audio/transcriptions': (_, reported) => [
    { type: 'transcript.text.delta', delta: 'Hi' },
    { type: 'transcript.text.done', text: 'Hi.', ...usageOf({ ...tokens }, reported) },
  ],
  '/audio/speech': (_, reported) => [
    { type: 'speech.audio.delta', audio: 'c291bmQ=' },
    { type: 'speech.audio.done', ...usageOf(tokens, reported) },
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

/** Returns true for a request that asks for a stream. */
export function asksForStream(request: Received): boolean {
  return String(fieldOf(request, 'stream')) === 'true' || fieldOf(request, 'stream_format') === 'sse'
}

/** The texts of the events of a stream. */
export function eventsFor(request: Received, facts: Reported = {}): string[] {
  const reported = { model: String(fieldOf(request, 'model')), uncounted: false, ...facts }
  const made = entryFor(streams, request.path)
  if (!made) throw new Error(`no stream is made for ${request.path}: add it to test/call/answers.ts`)
  const texts = made(request, reported).map((event) => `data: ${JSON.stringify(event)}\n\n`)
  return /completions|transcriptions/.test(request.path) ? [...texts, 'data: [DONE]\n\n'] : texts
}

/** Answers a request as providers do. */
export function answer(response: ServerResponse, request: Received, facts: Reported = {}, headers = {}): void {
  if (asksForStream(request)) {
    response.writeHead(200, { 'content-type': 'text/event-stream', ...headers })
    response.end(eventsFor(request, facts).join(''))
  } else if (request.path.endsWith('/audio/speech')) {
    response.writeHead(200, { 'content-type': 'audio/mpeg', ...headers }).end(Buffer.from('sound'))
  } else {
    const made = entryFor(answers, request.path)
    if (!made) throw new Error(`no answer is made for ${request.path}: add it to \`answers\` in test/call/answers.ts`)
    const reported = { model: String(fieldOf(request, 'model')), uncounted: false, ...facts }
    answerJson(response, made(request, reported), 200, headers)
  }
}
