import type { JsonObject } from '../../src/core/json.ts'
import { callRoutes } from '../../src/http/endpoints.ts'
import { wav } from '../media/sounds.ts'

// One request for every route of `http/endpoints.ts`. Every step of a call is tested against each of them.

/** The format of the provider that serves a route: the slug of a provider is `<one|two>-<format>`. */
export type Format = 'chat' | 'responses' | 'messages'

/** A request that a route accepts, and what the table has to know about the route. */
export type Example = {
  format: Format
  /** The API of the models that can serve it; a model is called `<api>` or `<api>-<variant>`. */
  models: string
  /** The body without its model. */
  body: JsonObject
  /** The name of the field with the text that a provider gets, and the text. */
  text: string
  /** The body is a form with this file. */
  file?: { field: string; bytes: Buffer; name: string; type: string }
  /** Members that make its answer a stream; missing where there is none. */
  stream?: JsonObject
  /** Set where the answer is not JSON. */
  isBytes?: true
  /** Set where the request is a conversation. */
  isConversation?: true
  /** Set where nothing is generated: the call costs nothing and has no ledger row. */
  isFree?: true
  /** A body with a file that a provider here cannot fetch; missing where there are no files by address. */
  linked?: (url: string) => JsonObject
  /** A field that is in `losses` of the providers here; missing where such a field is no part of the API. */
  lost?: JsonObject
}

/** A route with its example. */
export type Route = Example & { path: string }

const turns = [{ role: 'user', content: 'Hello' }]
const chat = { format: 'chat', models: 'chat', isConversation: true } as const
const streamed = { stream: true }
const turn = (part: JsonObject) => [{ role: 'user', content: [part] }]
const chatFile = (url: string) => ({ messages: turn({ type: 'image_url', image_url: { url } }) })
const messagesFile = (url: string) => ({ messages: turn({ type: 'image', source: { type: 'url', url } }) })
const responsesFile = (url: string) => ({ input: turn({ type: 'input_image', image_url: url }) })
const picture =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const examples: { readonly [path: string]: Example } = {
  '/v1/chat/completions': {
    ...chat,
    body: { messages: turns, max_tokens: 20 },
    linked: chatFile,
    text: 'Hello',
    stream: streamed,
    lost: { seed: 7 },
  },
  '/v1/messages': {
    ...chat,
    body: { messages: turns, max_tokens: 20 },
    linked: messagesFile,
    text: 'Hello',
    stream: streamed,
    lost: { top_k: 7 },
  },
  '/v1/messages/count_tokens': {
    ...chat,
    format: 'messages',
    body: { messages: turns },
    linked: messagesFile,
    text: 'Hello',
    isFree: true,
    lost: { thinking: { type: 'enabled', budget_tokens: 1_024 } },
  },
  '/v1/responses': {
    ...chat,
    body: { input: turns, max_output_tokens: 20 },
    linked: responsesFile,
    text: 'Hello',
    stream: streamed,
    lost: { temperature: 0.5 },
  },
  '/v1/responses/input_tokens': {
    ...chat,
    format: 'responses',
    body: { input: turns },
    linked: responsesFile,
    text: 'Hello',
    isFree: true,
    lost: { reasoning: { effort: 'low' } },
  },
  '/v1/responses/compact': {
    ...chat,
    format: 'responses',
    body: { input: turns },
    linked: responsesFile,
    text: 'Hello',
    lost: { temperature: 0.5 },
  },
  '/v1/images/generations': {
    format: 'chat',
    models: 'image',
    body: { prompt: 'A cat' },
    text: 'A cat',
    stream: streamed,
    lost: { seed: 7 },
  },
  '/v1/completions': {
    format: 'chat',
    models: 'completion',
    body: { prompt: 'Once', max_tokens: 20 },
    text: 'Once',
    stream: streamed,
    lost: { seed: 7 },
  },
  '/v1/embeddings': {
    format: 'chat',
    models: 'embedding',
    body: { input: 'Hello' },
    text: 'Hello',
    lost: { input_type: 'query' },
  },
  '/v1/rerank': {
    format: 'chat',
    models: 'rerank',
    body: { query: 'Hello', documents: ['one', 'two'] },
    text: 'Hello',
    lost: { rank_fields: ['a'] },
  },
  '/v1/moderations': {
    format: 'chat',
    models: 'moderation',
    body: { input: 'Hello' },
    text: 'Hello',
  },
  '/v1/images/edits': {
    format: 'chat',
    models: 'image',
    body: { prompt: 'A dog', images: [picture] },
    linked: (url) => ({ images: [{ image_url: url }] }),
    text: 'A dog',
    stream: streamed,
    lost: { seed: 7 },
  },
  '/v1/audio/transcriptions': {
    format: 'chat',
    models: 'transcription',
    body: { prompt: 'Hello' },
    text: 'Hello',
    file: { field: 'file', bytes: wav(0.1), name: 'sound.wav', type: 'audio/wav' },
    stream: { stream: 'true' },
    lost: { languages: ['en'] },
  },
  '/v1/decisions': {
    format: 'chat',
    models: 'decision',
    body: { input: 'Hello', questions: [{ type: 'predicate', instructions: 'Is it polite?' }] },
    text: 'Hello',
    lost: { safety_identifier: 'me' },
  },
  '/v1/audio/speech': {
    format: 'chat',
    models: 'speech',
    body: { input: 'Hello', voice: 'alloy' },
    text: 'Hello',
    stream: { stream_format: 'sse' },
    isBytes: true,
    lost: { instructions: 'Slowly' },
  },
}

/** The APIs of all models that an example names. */
export const modelApis = [...new Set(Object.values(examples).map(({ models }) => models))]

/** The paths of all routes for calls. */
export const paths = callRoutes.map(({ path }) => path)

/** Returns the route of a path. Throws for a path without an example. */
export function routeAt(path: string): Route {
  const example = examples[path]
  if (example) return { path, ...example }
  throw new Error(
    `POST ${path} has no example: add a request for it to \`examples\` in test/call/examples.ts and, where a provider is asked at a new path, its answer to \`answers\` in test/call/answers.ts. Every step of a call is then tested for it.`,
  )
}

/**
 * Routes whose kind of call has another route in the fast suite: the slow suite checks the steps at them. A new route is in both until it
 * is listed here.
 */
export const slowPaths: ReadonlySet<string> = new Set([
  ...['/v1/messages', '/v1/responses/input_tokens', '/v1/completions', '/v1/rerank', '/v1/moderations'],
  ...['/v1/decisions', '/v1/images/generations', '/v1/images/edits'],
])

/** All routes that have an example. */
export const routes: readonly Route[] = paths.flatMap((path) => (examples[path] ? [routeAt(path)] : []))
