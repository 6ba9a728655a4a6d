import type { ServerResponse } from 'node:http'
import type { CallRecord } from '../../../src/core/call.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import type { Store } from '../../../src/store/open.ts'
import {
  answerJson,
  beginStream,
  type LoopbackProvider,
  loopbackProvider,
  type Received,
} from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { eventually } from '../../helpers/time.ts'
import { storeIn } from './budget-world.ts'

// Providers whose models think unseen: of what they bill, clients see a few words.

/** The providers, by their formats; each has the same models. */
export const formats = { chat: 'openai-chat', messages: 'anthropic-messages', responses: 'openai-responses' } as const
export type Format = keyof typeof formats

/** The endpoints of clients, and a request of each for a short streamed answer. */
export const endpoints = { chat: '/v1/chat/completions', messages: '/v1/messages', responses: '/v1/responses' } as const

export function requestIn(api: Format, model: string, more: JsonObject = {}): JsonObject {
  const messages = [{ role: 'user', content: 'Think about it.' }]
  if (api === 'responses') return { model, input: 'Think about it.', max_output_tokens: 30_000, stream: true, ...more }
  return { model, messages, max_tokens: 30_000, stream: true, ...more }
}

const tokenNano = { input: 1_000, output: 8_000 }
const searchNano = 10_000_000
export const promptTokens = 20
const textTokens = 3

/** The bill for an answer that was thought about for so many tokens. */
export function billOf(hidden: number, searches = 0): number {
  return promptTokens * tokenNano.input + (hidden + textTokens) * tokenNano.output + searches * searchNano
}

const manifest = (slug: Format | 'second', url: string) => `slug: ${slug}
name: ${slug}
base_url: ${url}/${slug}
auth: { scheme: none }
dialect: ${slug === 'second' ? formats.chat : formats[slug]}
traits: [{ match: "asked", facts: { thinks_unasked: false } }]
endpoints: ${slug === 'responses' ? '{ compact: { path: /compact } }' : '{}'}
models:
${['m1', 'quiet', 'asked', 'plain']
  .map(
    (model) => `  ${model}:
    api: chat
    context_window: 200000
    max_output_tokens: 100000
    supports_reasoning: ${model !== 'plain'}
    supports_web_search: true
    pricing: [{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 8e-6 }]
    other_prices: { web_search_per_call: 0.01 }
`,
  )
  .join('')}`

/** The manifests of all providers, which are served at an address, by their paths. */
export function manifestsAt(url: string): Record<string, string> {
  const slugs = [...(Object.keys(formats) as Format[]), 'second'] as const
  return Object.fromEntries(slugs.map((slug) => [`providers/${slug}.yaml`, manifest(slug, url)]))
}

/** What a provider does with one request: `write` gives it the parts of a streamed answer one by one. */
export type Answering = (received: Received, response: ServerResponse) => void | Promise<void>

export type HiddenWorld = {
  provider: LoopbackProvider
  router: TestRouter
  store: Store
  answer(answering: Answering): void
  post(path: string, body: JsonObject, secret: string, init?: RequestInit): Promise<Response>
  rowsOf(key: string): Promise<CallRecord[]>
  /** Waits for the rows of a key. */
  rows(key: string, count?: number): Promise<CallRecord[]>
  close(): Promise<void>
}

export async function openHiddenWorld(settings: object = {}): Promise<HiddenWorld> {
  let answering: Answering = () => {}
  const provider = await loopbackProvider((request, response) => answering(request, response))
  const router = await testRouter({ files: manifestsAt(provider.url), settings })
  const store = await storeIn(router.folder)
  const rowsOf = async (key: string) => await Array.fromAsync(store.ledger.each({ key }))
  return {
    provider,
    router,
    store,
    answer: (next) => {
      answering = next
      provider.received.length = 0
    },
    post: (path, body, secret, init) =>
      fetch(router.url + path, {
        method: 'POST',
        body: JSON.stringify(body),
        ...init,
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...init?.headers },
      }),
    rowsOf,
    rows: (key, count = 1) =>
      eventually(async () => {
        const rows = await rowsOf(key)
        if (rows.length < count) throw new Error(`${rows.length} of ${count} rows`)
        return rows
      }),
    async close() {
      await store.close()
      await router.end()
      await provider.close()
    },
  }
}

/** The format that a request of a provider came in. */
export function formatOf({ path }: Received): Format {
  const slug = path.split('/')[1] ?? ''
  return slug in formats ? (slug as Format) : 'chat'
}

/** Checks whether a provider is asked to search. */
const searched = ({ body }: Received) => body.tools !== undefined

/** Sends the beginning of a streamed answer, up to its whole text; a provider that was asked to search has done so before. */
export function writeText(received: Received, response: ServerResponse): void {
  beginStream(response)
  response.write(streams[formatOf(received)].text(searched(received)))
}

/** Sends the rest: the usage, with so many tokens of thinking, and the end. */
export function writeUsage(received: Received, response: ServerResponse, hidden: number): void {
  response.end(streams[formatOf(received)].end(hidden, searched(received)))
}

/** The words that a client sees last. */
export const words = 'Hello there.'

const data = (...events: object[]) => events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
const named = (...events: { type: string; [name: string]: unknown }[]) =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')

const chatUsage = (hidden: number) => ({
  prompt_tokens: promptTokens,
  completion_tokens: hidden + textTokens,
  completion_tokens_details: { reasoning_tokens: hidden },
})
const chunk = (choices: object[], more = {}) => ({
  ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm1' },
  choices,
  ...more,
})

const responsesUsage = (hidden: number) => ({
  input_tokens: promptTokens,
  output_tokens: hidden + textTokens,
  output_tokens_details: { reasoning_tokens: hidden },
})
const response = { id: 'resp_1', object: 'response', created_at: 1, model: 'm1' }
const search = {
  ...{ type: 'web_search_call', id: 'ws_1', status: 'completed' },
  action: { type: 'search', query: 'It' },
}
const message = {
  ...{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed' },
  content: [{ type: 'output_text', text: words, annotations: [] }],
}

const streams: {
  [format in Format]: { text(searches: boolean): string; end(hidden: number, searches: boolean): string }
} = {
  chat: {
    text: () => data(chunk([{ index: 0, delta: { role: 'assistant', content: words }, finish_reason: null }])),
    end: (hidden) =>
      `${data(chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]), chunk([], { usage: chatUsage(hidden) }))}data: [DONE]\n\n`,
  },
  messages: {
    text: () =>
      named(
        {
          type: 'message_start',
          message: {
            ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'm1', content: [], stop_reason: null },
            usage: { input_tokens: promptTokens, output_tokens: 1 },
          },
        },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: words } },
        { type: 'content_block_stop', index: 0 },
      ),
    end: (hidden) =>
      named(
        {
          type: 'message_delta',
          delta: { stop_reason: 'end_turn', stop_sequence: null },
          usage: { output_tokens: hidden + textTokens },
        },
        { type: 'message_stop' },
      ),
  },
  responses: {
    text: (searches) =>
      named(
        { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
        ...(searches
          ? [
              { type: 'response.output_item.added', output_index: 0, item: { ...search, status: 'in_progress' } },
              { type: 'response.output_item.done', output_index: 0, item: search },
            ]
          : []),
        {
          type: 'response.output_item.added',
          output_index: 1,
          item: { ...message, content: [], status: 'in_progress' },
        },
        { type: 'response.output_text.delta', output_index: 1, item_id: 'msg_1', content_index: 0, delta: words },
      ),
    end: (hidden, searches) =>
      named({
        type: 'response.completed',
        response: {
          ...response,
          status: 'completed',
          output: searches ? [search, message] : [message],
          usage: responsesUsage(hidden),
        },
      }),
  },
}

/** Sends a whole answer. */
export function writeWhole(received: Received, to: ServerResponse, hidden: number): void {
  const { path } = received
  if (path.endsWith('/compact')) {
    answerJson(to, { ...response, object: 'response.compaction', output: [], usage: responsesUsage(hidden) })
    return
  }
  const whole = {
    chat: () => ({
      ...chunk([{ index: 0, message: { role: 'assistant', content: words }, finish_reason: 'stop' }]),
      usage: chatUsage(hidden),
    }),
    messages: () => ({
      ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'm1', stop_reason: 'end_turn' },
      content: [{ type: 'text', text: words }],
      usage: { input_tokens: promptTokens, output_tokens: hidden + textTokens },
    }),
    responses: () => ({ ...response, status: 'completed', output: [message], usage: responsesUsage(hidden) }),
  }
  answerJson(to, whole[formatOf(received)]())
}
