import type { ServerResponse } from 'node:http'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  answerJson,
  beginStream,
  type LoopbackProvider,
  loopbackProvider,
  type Received,
  within,
} from '../../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../../helpers/router.ts'

const limits = { connect: '500ms', first_event: '400ms', between_events: '400ms', whole: '400ms', total: '5s' }
const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
const whole = {
  id: 'c1',
  object: 'chat.completion',
  created: 1,
  model: 'gpt-4o-mini',
  choices: [{ index: 0, message: { role: 'assistant', content: 'fine' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
}

/** How the provider behaves, by the text of the last message. */
const behaviours: Record<string, (request: Received, response: ServerResponse) => void> = {
  fine: (_, response) => answerJson(response, whole),
  reset: (_, response) => response.socket?.resetAndDestroy(),
  silent: () => {},
  html: (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Bad gateway</h1>'),
  refused: (_, response) => answerJson(response, { error: { message: 'bad key', type: 'invalid_request_error' } }, 401),
  busy: (_, response) => answerJson(response, { error: { message: 'slow down' } }, 429, { 'retry-after': '7' }),
  broken: (_, response) => response.writeHead(503).end('upstream down'),
  wrong: (_, response) =>
    answerJson(
      response,
      { error: { message: "Unsupported value: 'x'", type: 'invalid_request_error', param: 'x' } },
      400,
    ),
  unfinished: (_, response) => answerJson(response, { ...whole, choices: [] }),
  garbage: (_, response) => {
    beginStream(response)
    for (let index = 0; index < 9; index++) response.write(chunk({ content: `w${index} ` }))
    response.end('data: {"choices": [{"delta": {"con\n\n')
  },
  unterminated: (_, response) => {
    beginStream(response)
    response.write(chunk({ role: 'assistant', content: '' }))
    response.end(chunk({ content: 'half' }))
  },
  cut: (_, response) => {
    beginStream(response)
    response.write(chunk({ content: 'half' }), () => setTimeout(() => response.destroy(), 20))
  },
  stalled: (_, response) => {
    beginStream(response)
    response.write(chunk({ content: 'half' }))
  },
  'done without a reason': (_, response) => {
    beginStream(response)
    response.write(chunk({ content: 'all of it' }))
    response.end('data: [DONE]\n\n')
  },
  'error inside': (_, response) => {
    beginStream(response)
    response.write(chunk({ content: 'half' }))
    response.end(`data: ${JSON.stringify({ error: { message: 'overloaded', type: 'server_error' } })}\n\n`)
  },
  'error first': (_, response) => {
    beginStream(response)
    response.end(`data: ${JSON.stringify({ error: { message: 'overloaded', type: 'server_error' } })}\n\n`)
  },
}

let provider: LoopbackProvider
let router: TestRouter

beforeAll(async () => {
  provider = await loopbackProvider((request, response) => {
    const prompt = request.body.messages.at(-1).content as string
    behaviours[prompt]?.(request, response)
  })
  router = await testRouter({
    providers: { openai: { base_url: provider.url, secret: '${UPSTREAM_KEY}', timeouts: limits } },
    env: { UPSTREAM_KEY: 'sk-upstream' },
  })
})

afterAll(async () => {
  await router.end()
  await provider.close()
})

const ask = (content: string, more: object = {}) =>
  router.call('/v1/chat/completions', { model: 'openai/gpt-4o-mini', messages: [{ role: 'user', content }], ...more })

async function failure(content: string, more: object = {}) {
  const response = await within(5_000, content, ask(content, more))
  // biome-ignore lint/suspicious/noExplicitAny: an error body is checked field by field.
  return { status: response.status, headers: response.headers, error: ((await response.json()) as any).error }
}

describe('a provider that fails before its first event gives an ordinary HTTP error', () => {
  for (const stream of [false, true]) {
    const kind = stream ? 'streamed' : 'whole'
    test.each([
      ['reset', 502],
      ['silent', 502],
      ['html', 502],
      ['refused', 502],
      ['broken', 502],
      ['wrong', 400],
      ['busy', 429],
    ])(`%s → %i (${kind})`, async (behaviour, status) => {
      const answer = await failure(behaviour, { stream })
      expect(answer.status).toBe(status)
      expect(answer.error).toMatchObject({ origin: 'provider', provider: 'openai', message: expect.any(String) })
    })
  }

  test('a reply without a finish reason is unreadable', async () => {
    expect(await failure('unfinished')).toMatchObject({ status: 502, error: { origin: 'provider' } })
  })

  test('an error in the first event is an HTTP error', async () => {
    expect(await failure('error first', { stream: true })).toMatchObject({
      status: 502,
      error: { message: 'overloaded' },
    })
  })

  test('a rejection of our credential is never reported as the fault of the caller, and the credential is never exposed', async () => {
    const { error } = await failure('refused')
    expect(error.message).toMatch(/credential of this router/)
    expect(JSON.stringify(error)).not.toContain('sk-upstream')
  })

  test('a busy provider reports when to retry', async () => {
    const { headers } = await failure('busy')
    expect(headers.get('retry-after')).toBe('7')
  })
})

describe('a stream that breaks ends with an error and without the sign of success', () => {
  test.each(['garbage', 'unterminated', 'cut', 'stalled', 'error inside'])('%s', async (behaviour) => {
    const response = await ask(behaviour, { stream: true, stream_options: { include_usage: true } })
    expect(response.status).toBe(200)
    const text = await within(5_000, behaviour, response.text())
    const frames = text.split('\n\n').filter(Boolean)
    expect(text).toContain(behaviour === 'garbage' ? 'w8 ' : 'half')
    expect(text).not.toContain('[DONE]')
    expect(text).not.toContain('"finish_reason":"stop"')
    const last = JSON.parse(frames.at(-1)?.replace(/^data: /, '') ?? '')
    expect(last.error).toMatchObject({ origin: 'provider', provider: 'openai' })
  })

  test('the SDK throws on it', async () => {
    const stream = await router.openai().chat.completions.create({
      model: 'openai/gpt-4o-mini',
      messages: [{ role: 'user', content: 'cut' }],
      stream: true,
    })
    const reading = (async () => {
      for await (const _ of stream);
    })()
    await expect(reading).rejects.toBeInstanceOf(OpenAI.APIError)
  })

  test('its error leads to an explanation through the SDKs of the three APIs', async () => {
    const model = 'openai/gpt-4o-mini'
    const messages = [{ role: 'user' as const, content: 'cut' }]
    const found: unknown[] = []
    const note = (thrown: unknown) => found.push((thrown as { error: { doc_url?: string } }).error)
    const openai = router.openai()
    const read = async (stream: Promise<AsyncIterable<unknown>>) => {
      for await (const event of await stream) {
        const { type, response } = event as { type?: string; response?: { error?: unknown } }
        if (type === 'response.failed') found.push(response?.error)
      }
    }
    await read(openai.chat.completions.create({ model, messages, stream: true })).catch(note)
    await read(openai.responses.create({ model, input: 'cut', stream: true }))
    const anthropic = new Anthropic({ baseURL: router.url, apiKey: testKey, maxRetries: 0 })
    await read(anthropic.messages.create({ model, messages, max_tokens: 9, stream: true })).catch((thrown) =>
      note(thrown.error),
    )
    const link = { doc_url: '/docs/errors.html#provider_cut' }
    expect(found).toEqual([expect.objectContaining(link), expect.objectContaining(link), expect.objectContaining(link)])
  })

  test('the next call works', async () => {
    await (await ask('cut', { stream: true })).text()
    expect((await ask('fine')).status).toBe(200)
  })
})

test('a stream that ends with its end marker but without a finish reason is complete', async () => {
  const body = {
    model: 'openai/gpt-4o-mini',
    max_tokens: 9,
    stream: true,
    messages: [{ role: 'user', content: 'done without a reason' }],
  }
  const translated = await (await router.call('/v1/messages', body)).text()
  expect(translated).toContain('"stop_reason":"end_turn"')
  expect(translated).toContain('event: message_stop')
  const native = await (await router.call('/v1/chat/completions', body)).text()
  expect(native).toContain('all of it')
  expect(native).toContain('[DONE]')
  expect(native).not.toContain('"error"')
})

test('a client that leaves stops the provider within a second', async () => {
  const client = new AbortController()
  const response = await fetch(`${router.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'openai/gpt-4o-mini',
      messages: [{ role: 'user', content: 'stalled' }],
      stream: true,
    }),
    signal: client.signal,
  })
  await response.body?.getReader().read()
  const received = provider.received.at(-1) as Received
  client.abort()
  await within(5_000, 'leaving', received.left)
})
