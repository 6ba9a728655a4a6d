import { afterAll, beforeAll, describe, expect } from 'vitest'
import type { CallRecord } from '../../../src/core/call.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import type { Store } from '../../../src/store/open.ts'
import { beginStream, type LoopbackProvider, loopbackProvider, within } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { testEach } from '../../helpers/slow.ts'
import { newKey, storeIn } from './budget-world.ts'

// A client that leaves after so many chunks of a stream: each chunk is one token, since the provider reports no counts.

let provider: LoopbackProvider
let router: TestRouter
let store: Store

const manifest = (slug: string, dialect: string) => `slug: ${slug}
name: ${slug}
base_url: ${provider.url}
auth: { scheme: none }
dialect: ${dialect}
models:
  m1:
    api: chat
    pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0.0001 }]
`

const event = (data: JsonObject) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`

/** The beginning of a stream and its texts, by the path of the format. */
const formats: Record<string, { begin: string; word: string }> = {
  '/chat/completions': {
    begin: '',
    word: `data: ${JSON.stringify({
      id: 'c',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm1',
      choices: [{ index: 0, delta: { content: 'word' }, finish_reason: null }],
    })}\n\n`,
  },
  '/v1/messages': {
    begin:
      event({
        type: 'message_start',
        message: {
          id: 'm',
          type: 'message',
          role: 'assistant',
          model: 'm1',
          content: [],
          stop_reason: null,
          usage: { input_tokens: 7, output_tokens: 1 },
        },
      }) + event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    word: event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'word' } }),
  },
  '/responses': {
    begin: event({
      type: 'response.created',
      sequence_number: 0,
      response: { id: 'r', object: 'response', created_at: 1, status: 'in_progress', model: 'm1', output: [] },
    }),
    word: event({
      type: 'response.output_text.delta',
      sequence_number: 1,
      item_id: 'i',
      output_index: 0,
      content_index: 0,
      delta: 'word',
    }),
  },
}

beforeAll(async () => {
  provider = await loopbackProvider(({ path, body }, response) => {
    const format = formats[path] ?? formats[path.replace(/^\/v1/, '')] ?? formats[`/v1${path}`]
    if (!format) throw new Error(`nothing is known of ${path}`)
    beginStream(response)
    const chunks = Number(/\d+/.exec(JSON.stringify(body.messages ?? body.input))?.[0])
    response.write(format.begin)
    for (let n = 0; n < chunks; n++) response.write(format.word)
  })
  router = await testRouter({
    files: {
      'providers/a.yaml': manifest('a', 'openai-chat'),
      'providers/b.yaml': manifest('b', 'anthropic-messages'),
      'providers/c.yaml': manifest('c', 'openai-responses'),
    },
  })
  store = await storeIn(router.folder)
})

afterAll(async () => {
  await store.close()
  await router.end()
  await provider.close()
})

const bodies: Record<string, (model: string, content: string) => JsonObject> = {
  '/v1/chat/completions': (model, content) => ({ model, messages: [{ role: 'user', content }] }),
  '/v1/messages': (model, content) => ({ model, max_tokens: 100, messages: [{ role: 'user', content }] }),
  '/v1/responses': (model, input) => ({ model, input }),
}

/** Reads a stream until so many texts have come, then disconnects. */
async function leaveAfter(words: number, path: string, slug: string, secret: string): Promise<void> {
  const leaving = new AbortController()
  const response = await fetch(router.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...bodies[path]?.(`${slug}/m1`, `Say ${words} words`), stream: true }),
    signal: leaving.signal,
  })
  const texts = response.body?.pipeThrough(new TextDecoderStream()) ?? []
  let received = ''
  for await (const text of texts) {
    received += text
    if (received.split('"word"').length > words) break
  }
  leaving.abort()
}

describe.each([
  ['/v1/chat/completions', 'a', 'same format'],
  ['/v1/chat/completions', 'b', 'mapped'],
  ['/v1/messages', 'b', 'same format'],
  ['/v1/messages', 'a', 'mapped'],
  ['/v1/responses', 'c', 'same format'],
  ['/v1/responses', 'a', 'mapped'],
])('a client of %s that leaves %s, %s,', (path, slug) => {
  testEach([1, 4, 25], { slowIf: (words) => words !== 4 })(
    'after chunk %i stops the provider within a second and pays for those chunks',
    async (words) => {
      const key = await newKey(store, { monthlyLimitNano: 10n ** 9n })
      const before = provider.received.length
      await leaveAfter(words, path, slug, key.secret)
      await within(
        5_000,
        'leaving the provider',
        provider.received[before]?.left ?? Promise.reject(new Error('no call')),
      )
      await expect.poll(async () => (await Array.fromAsync(store.ledger.each({ key: key.id }))).length).toBe(1)
      const [row] = (await Array.fromAsync(store.ledger.each({ key: key.id }))) as [CallRecord]
      expect(row).toMatchObject({ outcome: 'partial', status: 499, error: 'client_gone', usage: { output: words } })
      expect(row.cost.nanoUsd).toBe(words * 100_000)
      // Some providers count the first token with their first event.
      if (words > 1) expect(row.cost.estimated).toBe(true)
      expect(await store.spend.ofKey(key.id, Date.now())).toBe(BigInt(words) * 100_000n)
    },
  )
})
