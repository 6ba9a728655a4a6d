import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import type { CallRecord } from '../../src/core/call.ts'
import type { Store } from '../../src/store/open.ts'
import { newKey, storeIn } from '../e2e/money/budget-world.ts'
import {
  answerJson,
  beginStream,
  type LoopbackProvider,
  loopbackProvider,
  type Received,
  within,
} from '../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../helpers/router.ts'
import { until } from './speech-world.ts'

// How calls for operations end, whatever their providers do: one row each, nothing reserved, no success that was none.

const manifest = (slug: string, url: string) => `slug: ${slug}
name: ${slug}
base_url: ${url}
auth: { scheme: none }
dialect: openai-chat
endpoints:
  embed: { batch: { field: input, size: 1 } }
  image: { stream: {} }
  speech: {}
models:
  vectors: { api: embedding, pricing: [{ prompt_tokens_threshold: 0, input_price: 0.001, output_price: 0 }] }
  pictures: { api: image, pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0.000001 }] }
  voices: { api: speech, other_prices: { per_second: 0.001 } }
`

let one: LoopbackProvider
let two: LoopbackProvider
let router: TestRouter
let store: Store

type Answering = (request: Received, response: ServerResponse) => void | Promise<void>

async function begin(first: Answering, second: Answering = first, files: Record<string, string> = {}): Promise<void> {
  one = await loopbackProvider(first)
  two = await loopbackProvider(second)
  router = await testRouter({
    files: {
      'providers/one.yaml': manifest('one', one.url),
      'providers/two.yaml': manifest('two', two.url),
      ...Object.fromEntries(Object.entries(files).map(([path, text]) => [path, text.replaceAll('URL', one.url)])),
    },
  })
  store = await storeIn(router.folder)
}

afterEach(async () => {
  await store.close()
  await router.end()
  await one.close()
  await two.close()
})

const rows = async (): Promise<CallRecord[]> => await Array.fromAsync(store.ledger.each({}))

const vectors = (tokens: number, count = 1) => ({
  object: 'list',
  data: Array.from({ length: count }, (_, index) => ({ object: 'embedding', index, embedding: [1, 2] })),
  usage: { prompt_tokens: tokens, total_tokens: tokens },
})

function sendAll(response: ServerResponse, events: readonly object[]): void {
  beginStream(response)
  response.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
}

const picture = (n: number) => ({ type: 'image_generation.completed', b64_json: `UEl${n}` })
const preview = (n: number) => ({ type: 'image_generation.partial_image', b64_json: `UEl${n}`, partial_image_index: 0 })
const draw = { model: 'one/pictures', prompt: 'A cat', n: 2, stream: true }

describe('events', () => {
  test('several that end a stream all arrive, in their order, the last one with the cost', async () => {
    await begin((_, response) =>
      sendAll(response, [preview(0), picture(0), preview(1), { ...picture(1), usage: { output_tokens: 7 } }]),
    )
    const text = await (await router.call('/v1/images/generations', draw)).text()
    const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data as string))
    expect(events.map(({ b64_json }) => b64_json)).toEqual(['UEl0', 'UEl0', 'UEl1', 'UEl1'])
    expect(events.map(({ usage }) => usage?.cost)).toEqual([undefined, undefined, undefined, 0.000007])
    expect(await rows()).toMatchObject([{ outcome: 'complete' }])
  })

  test('one that another event follows did not end it', async () => {
    await begin((_, response) => sendAll(response, [picture(0), preview(1)]))
    const text = await (await router.call('/v1/images/generations', draw)).text()
    expect(text).toContain('image_generation.completed')
    expect(text).toContain('"code":"provider_cut"')
    expect(await rows()).toMatchObject([{ outcome: 'partial', error: 'provider_cut' }])
  })

  test('what came with a failure arrives before it', async () => {
    await begin((_, response) => sendAll(response, [preview(0), { error: { message: 'Out of paint.' } }]))
    const text = await (await router.call('/v1/images/generations', draw)).text()
    expect(text.indexOf('image_generation.partial_image')).toBeGreaterThan(-1)
    expect(text.indexOf('Out of paint.')).toBeGreaterThan(text.indexOf('partial_image'))
  })
})

describe('pieces of a request', () => {
  test('one that fails ends the others, and what was counted is paid', async () => {
    let answered = 0
    let ended = 0
    await begin(async ({ body, left }, response) => {
      if (body.input[0] === 'counted') {
        answerJson(response, vectors(10))
        answered++
      } else if (body.input[0] === 'fails') {
        await until(() => answered === 1)
        answerJson(response, { error: { message: 'No.' } }, 400)
      } else {
        await left
        ended++
      }
    })
    const input = ['counted', 'fails', 'waits', 'waits', 'never']
    const response = await within(2_000, 'a failure', router.call('/v1/embeddings', { model: 'one/vectors', input }))
    expect(response.status).toBe(400)
    expect(await rows()).toMatchObject([{ outcome: 'failed', usage: { input: 10 }, cost: { nanoUsd: 10_000_000 } }])
    await until(() => ended >= 2)
    expect(ended).toBe(one.received.length - 2)
  })

  test.each([
    ['what was sent, where less was counted', 2, { input: 10 }, true],
    ['what was counted, where that is more', 50, { input: 50 }, undefined],
  ])('a client that leaves while some are counted pays for %s', async (_, counted, usage, estimated) => {
    // The fifth is sent once the first has been counted, since four are sent at once.
    await begin(({ body }, response) => {
      if (body.input[0] === 'counted.') answerJson(response, vectors(counted))
    })
    const leaving = new AbortController()
    const gone = fetch(`${router.url}/v1/embeddings`, {
      method: 'POST',
      headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' },
      // Two tokens each, four characters to the token.
      body: JSON.stringify({ model: 'one/vectors', input: ['counted.', ...Array(4).fill('waiting.')] }),
      signal: leaving.signal,
    }).catch(() => {})
    await until(() => one.received.length === 5)
    leaving.abort()
    await gone
    await until(async () => (await rows()).length === 1)
    const [row] = await rows()
    expect(row).toMatchObject({ outcome: 'failed', status: 499, error: 'client_gone', usage })
    expect(row?.cost).toMatchObject({ nanoUsd: usage.input * 1_000_000 })
    expect(row?.cost.estimated).toBe(estimated)
  })

  test('what a failed target has spent is reserved again for the next one', async () => {
    let answered = 0
    const failing: Answering = async ({ body }, response) => {
      if (body.input[0] === 'aa') {
        answerJson(response, vectors(10))
        answered++
      } else {
        await until(() => answered === 1)
        answerJson(response, { error: { message: 'No.' } }, 500)
      }
    }
    await begin(failing, ({ body }, response) => answerJson(response, vectors(10, body.input.length)))
    const made = await router.call('/v1/manage/policy', { id: 'both', targets: ['one/vectors', 'two/vectors'] })
    expect(made.status).toBe(201)
    // Two texts of two bytes: at most ten tokens each.
    const limit = 20n * 1_000_000n
    const { id, secret } = await newKey(store, { monthlyLimitNano: limit })
    const body = { model: 'both', input: ['aa', 'bb'] }
    const response = await router.call('/v1/embeddings', body, { authorization: `Bearer ${secret}` })
    const { error } = (await response.json()) as { error: { code: string; attempts: { code: string }[] } }
    expect([response.status, error.code]).toEqual([502, 'provider_failed'])
    expect(error.attempts.map(({ code }) => code)).toEqual(['provider_failed', 'budget_exhausted'])
    expect(two.received).toHaveLength(0)
    expect(await store.spend.ofKey(id, Date.now())).toBe(10_000_000n)
    const rich = await newKey(store, { monthlyLimitNano: limit + 10_000_000n })
    answered = 0
    const again = await router.call('/v1/embeddings', body, { authorization: `Bearer ${rich.secret}` })
    expect(again.status).toBe(200)
    await again.arrayBuffer()
    expect(await store.spend.ofKey(rich.id, Date.now())).toBe(limit + 10_000_000n)
  })
})

describe('answers that are none', () => {
  test('a failure with the status 200 is one, and another target is tried', async () => {
    await begin(
      (_, response) => answerJson(response, { error: { message: 'Overloaded.', code: 'busy' } }),
      (_, response) => answerJson(response, vectors(3)),
    )
    const alone = await router.call('/v1/embeddings', { model: 'one/vectors', input: 'x' })
    expect([alone.status, await alone.json()]).toMatchObject([502, { error: { message: 'Overloaded.' } }])
    await router.call('/v1/manage/policy', { id: 'both', targets: ['one/vectors', 'two/vectors'] })
    const both = await router.call('/v1/embeddings', { model: 'both', input: 'x' })
    expect([both.status, both.headers.get('x-router-model')]).toEqual([200, 'two/vectors'])
  })

  test('events where the API has JSON: the call ends, and its money is free', async () => {
    const wrong = manifest('wrong', 'URL').replace(
      'embed: { batch: { field: input, size: 1 } }',
      'embed: { answer: events }',
    )
    let left = 0
    await begin(
      (request, response) => {
        request.left.then(() => left++)
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"data": []}\n\n')
      },
      undefined,
      { 'providers/wrong.yaml': wrong },
    )
    // At most ten tokens.
    const { secret } = await newKey(store, { monthlyLimitNano: 10_000_000n })
    for (let n = 1; n <= 2; n++) {
      const body = { model: 'wrong/vectors', input: 'aa' }
      const response = await router.call('/v1/embeddings', body, { authorization: `Bearer ${secret}` })
      expect(response.status).toBe(500)
      await response.arrayBuffer()
      await until(async () => (await rows()).length === n && left === n)
    }
  })

  test('text where bytes should be: the connection is closed', async () => {
    let left = 0
    await begin((request, response) => {
      request.left.then(() => left++)
      response.writeHead(200, { 'content-type': 'text/html' }).write('<p>')
    })
    const response = await router.call('/v1/audio/speech', { model: 'one/voices', input: 'Hello', voice: 'alloy' })
    expect(response.status).toBe(502)
    await until(() => left === 1)
  })
})

describe('counts of providers that lie', () => {
  test.each([9e9, 1e12, -50])('%d tokens: a key with a limit never pays more than it', async (tokens) => {
    await begin((_, response) => answerJson(response, vectors(tokens)))
    const { id, secret } = await newKey(store, { monthlyLimitNano: 10_000_000n })
    const body = { model: 'one/vectors', input: 'aa' }
    const response = await router.call('/v1/embeddings', body, { authorization: `Bearer ${secret}` })
    expect(response.status).toBe(200)
    await response.arrayBuffer()
    expect(await store.spend.ofKey(id, Date.now())).toBeLessThanOrEqual(10_000_000n)
  })

  test('audio that is longer than anybody speaks', async () => {
    await begin((_, response) => {
      response.writeHead(200, { 'content-type': 'audio/pcm' }).end(Buffer.alloc(4_000_000))
    })
    // Ten seconds, and a fifth for each of two letters.
    const { id, secret } = await newKey(store, { monthlyLimitNano: 10_400_000n })
    const body = { model: 'one/voices', input: 'Hi', voice: 'alloy', response_format: 'pcm' }
    const response = await router.call('/v1/audio/speech', body, { authorization: `Bearer ${secret}` })
    expect(response.status).toBe(200)
    await response.arrayBuffer()
    await until(async () => (await rows()).length === 1)
    expect(await store.spend.ofKey(id, Date.now())).toBeLessThanOrEqual(10_400_000n)
  })
})
