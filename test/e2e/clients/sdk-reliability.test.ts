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
} from '../../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../../helpers/router.ts'
import { testEach } from '../../helpers/slow.ts'
import { callBySdk, type Got } from '../../wall/reliability/sdk.ts'
import { VirtualTime } from '../../wall/reliability/virtual-time.ts'

// The official SDKs, which try again by themselves, at a provider that fails: without the router, and through it.

type Mode = 'whole' | 'streamed'
type Sdk = 'openai' | 'anthropic'

/** What a provider writes, in the format of each SDK; a stream in pieces. */
const formats: Record<Sdk, { whole: object; stream: string[] }> = {
  openai: {
    whole: {
      ...{ id: 'c1', object: 'chat.completion', created: 1, model: 'm' },
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
    },
    stream: [
      ...[{ role: 'assistant', content: '' }, { content: 'Hello' }].map((delta) => chunk([{ index: 0, delta }])),
      `${chunk([{ index: 0, delta: {}, finish_reason: 'stop' }])}data: [DONE]\n\n`,
    ],
  },
  anthropic: {
    whole: {
      ...{ id: 'm1', type: 'message', role: 'assistant', model: 'm', stop_reason: 'end_turn', stop_sequence: null },
      ...{ content: [{ type: 'text', text: 'Hello' }], usage: { input_tokens: 3, output_tokens: 1 } },
    },
    stream: [
      event('message_start', {
        message: {
          ...{ id: 'm1', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null },
          usage: { input_tokens: 3, output_tokens: 1 },
        },
      }),
      event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }) +
        event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Hello' } }),
      event('content_block_stop', { index: 0 }) +
        event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } }) +
        event('message_stop', {}),
    ],
  },
}

function chunk(choices: object[]): string {
  return `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices })}\n\n`
}

function event(type: string, data: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
}

type Answer = { response: ServerResponse; sdk: Sdk; stream: boolean }

const fails =
  (status: number, headers = {}) =>
  ({ response }: Answer) =>
    answerJson(response, { type: 'error', error: { type: 'api_error', message: 'No.' } }, status, headers)

const faults = {
  500: fails(500),
  503: fails(503),
  529: fails(529),
  429: fails(429),
  '429 with Retry-After': fails(429, { 'retry-after': '1' }),
  reset: ({ response }: Answer) => response.socket?.resetAndDestroy(),
  timeout: () => {},
  cut({ response, sdk, stream }: Answer) {
    const { whole, stream: pieces } = formats[sdk]
    if (stream) beginStream(response)
    else response.writeHead(200, { 'content-type': 'application/json' })
    const text = stream ? pieces.slice(0, 2).join('') : JSON.stringify(whole).slice(0, 90)
    response.write(text, () => setTimeout(() => response.destroy(), 20))
  },
}
type Fault = keyof typeof faults
const all = Object.keys(faults) as Fault[]

/** A time limit in which a silent provider is given up, by the router and by SDKs without it. Milliseconds. */
const silenceMs = 400

/** Fails the first requests of a model as its name says: `<fault>/<number>/<case>`. */
function answer({ path, body }: Received, response: ServerResponse, number: number): void {
  const [fault = '', times] = decodeURIComponent(body.model).split('/')
  const sdk = path.endsWith('/messages') ? 'anthropic' : 'openai'
  const stream = body.stream === true
  if (number <= Number(times)) {
    faults[fault as Fault]({ response, sdk, stream })
  } else if (stream) {
    beginStream(response)
    response.end(formats[sdk].stream.join(''))
  } else {
    answerJson(response, formats[sdk].whole)
  }
}

let providers: LoopbackProvider[] = []
let router: TestRouter

const manifest = (url: string, dialect: string, slug: string) => `slug: ${slug}
name: ${slug}
base_url: ${url}/v1
auth: { scheme: none }
dialect: ${dialect}
unknown_models: pass
timeouts: { first_event: ${silenceMs}ms, whole: ${silenceMs}ms }
models:
  "*": { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000002 }] }
`

beforeAll(async () => {
  const start = () => {
    const counts = new Map<string, number>()
    return loopbackProvider((request, response) => {
      const count = (counts.get(request.body.model) ?? 0) + 1
      counts.set(request.body.model, count)
      answer(request, response, count)
    })
  }
  providers = await Promise.all([start(), start()])
  const files = providers.flatMap(({ url }, index) => [
    [`providers/openai-${index}.yaml`, manifest(url, 'openai-chat', `openai-${index}`)],
    [`providers/anthropic-${index}.yaml`, manifest(url, 'anthropic-messages', `anthropic-${index}`)],
  ])
  router = await testRouter({ files: Object.fromEntries(files), settings: { routing: {}, health: {} }, threads: 1 })
})

afterAll(async () => {
  await router?.end()
  await Promise.all(providers.map((provider) => provider.close()))
})

type Asking = { sdk: Sdk; mode: Mode; model: string; url: string; models?: string[]; maxRetries?: number }

/** Makes one call with an official SDK, reads all of its answer, and returns whether that is there. */
async function succeeds({ sdk, mode, model, url, models, maxRetries = 2 }: Asking): Promise<boolean> {
  const own = url === router.url ? {} : { timeout: silenceMs }
  const options = { apiKey: testKey, maxRetries, ...own }
  const messages = [{ role: 'user' as const, content: 'Hi' }]
  const body = { model, messages, max_tokens: 10, stream: mode === 'streamed', ...(models && { models }) }
  try {
    const answered =
      sdk === 'openai'
        ? await new OpenAI({ ...options, baseURL: `${url}/v1` }).chat.completions.create(body)
        : await new Anthropic({ ...options, baseURL: url }).messages.create(body)
    if (!(Symbol.asyncIterator in answered)) return JSON.stringify(answered).includes('Hello')
    let text = ''
    for await (const event of answered) text += JSON.stringify(event)
    return text.includes('Hello')
  } catch {
    return false
  }
}

const [one = 0, two = 1] = [0, 1]
const urlOf = (place: number) => providers[place]?.url ?? ''
const requestsFor = (model: string) =>
  providers.flatMap(({ received }) => received).filter(({ body }) => body.model === model)

/** SDKs wait before they try again: the fast suite has three faults. */
const slowIf = (fault: (typeof all)[number]) => !['503', 'reset', 'cut'].includes(String(fault))

describe.each(['openai', 'anthropic'] as const)('the SDK of %s', (sdk) => {
  describe.each(['whole', 'streamed'] as const)('%s', (mode) => {
    testEach(all, { slowIf })('%s twice: what succeeds without the router does so through it', async (fault) => {
      const model = (way: string) => `${fault}/2/${way}-${sdk}-${mode}`
      const [direct, alone, both] = await Promise.all([
        succeeds({ sdk, mode, model: model('direct'), url: urlOf(one) }),
        succeeds({ sdk, mode, model: `${sdk}-${one}/${model('one')}`, url: router.url }),
        succeeds({
          ...{ sdk, mode, url: router.url },
          model: `${sdk}-${one}/${model('two')}`,
          models: [`${sdk}-${two}/${model('two')}`],
        }),
      ])
      // SDKs do not ask again for an answer that has begun.
      expect(direct).toBe(fault !== 'cut')
      const isLost = fault === 'cut' && mode === 'streamed'
      expect([alone, both]).toEqual([!isLost, !isLost])
    })

    test('three 529s are survived by a client that tries four times', async () => {
      const model = (way: string) => `529/3/${way}-${sdk}-${mode}`
      const asking = { sdk, mode, maxRetries: 3 }
      expect(await succeeds({ ...asking, model: model('direct'), url: urlOf(one) })).toBe(true)
      expect(await succeeds({ ...asking, model: `${sdk}-${one}/${model('one')}`, url: router.url })).toBe(true)
    })
  })

  testEach(all, { slowIf })('%s: it tries as often as the table of the wall supposes', async (fault) => {
    const time = new VirtualTime()
    const got: Got =
      fault === 'cut'
        ? { kind: 'broken answer' }
        : Number.parseInt(String(fault), 10) > 0
          ? { kind: 'error', status: Number.parseInt(String(fault), 10), headers: {} }
          : { kind: 'broken connection' }
    const { tries } = await time.run(callBySdk(sdk, async () => got, { time, random: () => 0.5 }))
    for (const mode of ['whole', 'streamed'] as const) {
      const model = `${fault}/9/model-${sdk}-${mode}`
      expect(await succeeds({ sdk, mode, model, url: urlOf(one) })).toBe(false)
      expect(requestsFor(model)).toHaveLength(tries)
    }
  })

  test('each of its tries reaches a provider that is down', async () => {
    const model = `503/99/down-${sdk}`
    expect(await succeeds({ sdk, mode: 'whole', model: `${sdk}-${one}/${model}`, url: router.url })).toBe(false)
    // The router asks once more in the first two, until it knows.
    expect(requestsFor(model)).toHaveLength(5)
  })
})

test('what lets a provider act is not asked for again once it may have begun, and after a refusal it is', async () => {
  const client = new OpenAI({ baseURL: `${router.url}/v1`, apiKey: testKey })
  const failure = (model: string) =>
    client.responses
      .create({
        model: `openai-${one}/${model}`,
        input: 'Hi',
        tools: [{ type: 'code_interpreter', container: { type: 'auto' } }],
      })
      .then(
        () => undefined,
        (thrown: InstanceType<typeof OpenAI.APIError>) => thrown,
      )
  for (const fault of ['500', 'reset', 'timeout', 'cut'] as const) {
    const model = `${fault}/9/acting`
    const error = await failure(model)
    expect([fault, error?.status, error?.headers?.get('x-should-retry')]).toEqual([fault, 502, 'false'])
    expect([fault, requestsFor(model).length]).toEqual([fault, 1])
  }
  expect(await failure('429/2/acting')).toBeUndefined()
  expect(requestsFor('429/2/acting')).toHaveLength(3)
})
