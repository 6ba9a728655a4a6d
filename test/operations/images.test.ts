import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { answerJson, beginStream } from '../helpers/provider.ts'
import { type ImageWorld, imageWorld, png } from './image-world.ts'

const gpt = 'openai/gpt-image-1.5'
const small = png().toString('base64')
const counted = {
  input_tokens: 50,
  input_tokens_details: { text_tokens: 10, image_tokens: 40 },
  output_tokens: 415,
  output_tokens_details: { image_tokens: 272, text_tokens: 143 },
  total_tokens: 465,
}
const reply = {
  created: 1_700_000_000,
  background: 'opaque',
  data: [{ b64_json: small }],
  output_format: 'png',
  quality: 'low',
  size: '1024x1024',
  usage: counted,
}

let world: ImageWorld
beforeAll(async () => {
  world = await imageWorld()
})
afterAll(() => world?.end())
beforeEach(() => says(reply))

const says = (body: object) => world.answer((_, response) => answerJson(response, body))
async function asked(fields: object) {
  const response = await world.router.call('/v1/images/generations', { prompt: 'A cat', ...fields })
  // biome-ignore lint/suspicious/noExplicitAny: a test knows the body it expects.
  return { status: response.status, body: (await response.json()) as any, headers: response.headers }
}

describe('the request', () => {
  test('12.1 goes on in its own words, with the model of the provider', async () => {
    const { status } = await asked({ model: gpt, n: 2, size: '1024x1024', quality: 'low', output_format: 'webp', x: 1 })
    expect(status).toBe(200)
    expect(world.provider.received.at(-1)?.path).toBe('/v1/images/generations')
    expect(world.last()).toEqual({
      model: 'gpt-image-1.5',
      prompt: 'A cat',
      n: 2,
      size: '1024x1024',
      quality: 'low',
      output_format: 'webp',
      x: 1,
    })
  })
  test('gpt-image models are not told what they refuse', async () => {
    await asked({ model: gpt, response_format: 'b64_json', partial_images: 2, seed: 3 })
    expect(world.last()).toEqual({ model: 'gpt-image-1.5', prompt: 'A cat' })
    await asked({ model: 'openai/dall-e-3', response_format: 'b64_json' })
    expect(world.last()).toMatchObject({ response_format: 'b64_json' })
  })
  test.each([
    ['prompt', undefined],
    ['prompt', ''],
    ['prompt', 7],
    ['prompt', 'long '.repeat(6_401)],
    ['n', 0],
    ['n', 11],
    ['n', 1.5],
    ['size', 'big'],
    ['size', '2048x2048'],
    ['quality', 'hd'],
    ['quality', 'superb'],
    ['style', 'plain'],
    ['background', 'red'],
    ['moderation', 'none'],
    ['output_format', 'gif'],
    ['output_compression', 101],
    ['partial_images', 4],
    ['response_format', 'bytes'],
    ['stream', 'yes'],
    ['seed', -1],
    ['aspect_ratio', 'wide'],
    ['user', 1],
  ])('19.1 a wrong %s is refused by its name (%#)', async (param, value) => {
    const before = world.provider.received.length
    const { status, body } = await asked({ model: gpt, [param]: value })
    expect([status, body.error?.origin, body.error?.param]).toEqual([400, 'router', param])
    expect(world.provider.received.length).toBe(before)
  })
  test('a model of another kind is refused', async () => {
    expect((await asked({ model: 'openai/gpt-4.1' })).status).toBe(400)
    expect((await asked({})).body.error.param).toBe('model')
  })
})

describe('the reply', () => {
  test('12.1 images with usage and cost by token', async () => {
    const { body } = await asked({ model: gpt })
    // 10 tokens of text at 5 USD per million, 40 of images at 8, 415 of both at 32.
    expect(body).toEqual({ ...reply, usage: { ...counted, cost: 0.01365 } })
    expect((await Array.fromAsync(world.store.ledger.each({}))).at(-1)).toMatchObject({
      api: 'images',
      model: 'gpt-image-1.5',
      outcome: 'complete',
      usage: { input: 10, input_image: 40, output: 143, output_image: 272, images: 1 },
      cost: { nanoUsd: 13_650_000 },
    })
  })
  test.each([
    ['hd', '1024x1024', 0.08],
    ['standard', '1024x1024', 0.04],
    ['hd', '1024x1792', 0.12],
  ])('cost by image of %s %s', async (quality, size, price) => {
    says({ created: 1, data: [{ url: 'https://example.com/a.png' }, { url: 'https://example.com/b.png' }] })
    const { body } = await asked({ model: 'openai/dall-e-3', n: 2, quality, size })
    expect(body.usage.cost).toBe(price * 2)
  })
  test('cost by megapixel, of what the picture says of itself', async () => {
    says({ created: 1, data: [{ b64_json: png(2000, 1000).toString('base64') }] })
    expect((await asked({ model: 'openai/by-megapixel' })).body.usage.cost).toBe(0.006)
    says({ created: 1, data: [{ url: 'https://example.com/a.png' }] })
    expect((await asked({ model: 'openai/by-megapixel', size: '1000x500' })).body.usage.cost).toBe(0.0015)
    // Nothing tells: a square of 1,024 is assumed.
    expect((await asked({ model: 'openai/by-megapixel' })).body.usage.cost).toBe(0.003145728)
    expect((await Array.fromAsync(world.store.ledger.each({}))).at(-1)).toMatchObject({ cost: { estimated: true } })
  })
  test('cost by image', async () => {
    says({ data: [{ b64_json: small }, { b64_json: small }] })
    const { body } = await asked({ model: 'openai/by-image', n: 2 })
    expect(body.usage.cost).toBe(0.04)
    expect(body.created).toBeGreaterThan(1_700_000_000)
  })
  test('an address becomes data, data becomes an address, as the client wants it', async () => {
    const picture = png(3, 2)
    world.answer((request, response) => {
      if (request.method === 'GET') {
        response.writeHead(200, { 'content-type': 'image/png' }).end(picture)
        return
      }
      answerJson(response, {
        created: 1,
        data: [{ url: `${world.provider.url}/a.png`, revised_prompt: 'A black cat' }],
      })
    })
    const asData = await asked({ model: 'openai/by-image', response_format: 'b64_json' })
    expect(asData.body.data).toEqual([{ b64_json: picture.toString('base64'), revised_prompt: 'A black cat' }])
    expect(asData.body.usage.cost).toBe(0.02)
    says(reply)
    const asAddress = await asked({ model: gpt, response_format: 'url' })
    expect(asAddress.body.data).toEqual([{ url: `data:image/png;base64,${small}` }])
  })
  test.each([
    ['a private host', () => 'http://127.0.0.1:9/a.png'],
    ['an answer that is no file', () => `${world.provider.url}/missing`],
  ])('what cannot be fetched is a 502, and paid: %s', async (_, url) => {
    world.answer((request, response) => {
      if (request.method === 'GET') response.writeHead(404).end()
      else answerJson(response, { created: 1, data: [{ url: url() }] })
    })
    const { status, body } = await asked({ model: 'openai/by-image', response_format: 'b64_json' })
    expect([status, body.error.code]).toEqual([502, 'provider_unreadable'])
    expect((await Array.fromAsync(world.store.ledger.each({}))).at(-1)).toMatchObject({ cost: { nanoUsd: 20_000_000 } })
  })
  test.each([[{ data: [] }], [{ data: [{}] }], [{}]])('without images is a 502: %j', async (body) => {
    says({ created: 1, ...body })
    expect((await asked({ model: 'openai/by-image' })).status).toBe(502)
  })
  type Failing = { status: number; answer: object | string; seen: object; row: object; wait?: string }
  test.each<[fact: string, failing: Failing]>([
    [
      '19.1 a request that the provider refuses',
      {
        ...{ status: 400, answer: { error: { message: 'No.', code: 'bad' } } },
        seen: { type: 'invalid_request_error', code: 'bad', message: 'No.' },
        row: { status: 400, error: 'invalid_request', providerCode: 'bad' },
      },
    ],
    [
      '19.6 a limit of the provider, without a time',
      {
        ...{ status: 429, answer: { error: { message: 'Later.' } }, wait: '1' },
        seen: { type: 'rate_limit_error', code: 'rate_limit_exceeded', message: 'Later.' },
        row: { status: 429, error: 'rate_limited' },
      },
    ],
    [
      '19.7 a key that the provider refuses',
      {
        ...{ status: 401, answer: { error: { message: 'Who?' } } },
        seen: { type: 'api_error', code: 'provider_refused' },
        row: { status: 502, error: 'provider_refused' },
      },
    ],
    [
      '19.7 a failure of the provider',
      {
        ...{ status: 500, answer: { error: { message: 'Broken.' } } },
        seen: { type: 'api_error', code: 'provider_failed', message: 'Broken.' },
        row: { status: 502, error: 'provider_failed' },
      },
    ],
    [
      '19.7 an answer that is none',
      {
        ...{ status: 200, answer: '<html>' },
        seen: { type: 'api_error', code: 'provider_unreadable' },
        row: { status: 502, error: 'provider_unreadable' },
      },
    ],
  ])('%s has its status, its error and its row, and costs nothing', async (_, { status, answer, seen, row, wait }) => {
    world.answer((_request, response) => {
      if (typeof answer === 'string') response.writeHead(status).end(answer)
      else answerJson(response, answer, status)
    })
    const came = await asked({ model: gpt })
    expect([came.status, came.headers.get('retry-after')]).toEqual([(row as { status: number }).status, wait ?? null])
    expect(came.body.error).toMatchObject({ origin: 'provider', provider: 'openai', ...seen })
    const written = (await Array.fromAsync(world.store.ledger.each({}))).at(-1)
    expect(written).toMatchObject({ outcome: 'failed', ...row, usage: {}, cost: { nanoUsd: 0 } })
  })
  test('19.6 a limit of the provider with a time: the client is told that one', async () => {
    world.answer((_, response) => answerJson(response, { error: { message: 'Later.' } }, 429, { 'retry-after': '7' }))
    const { status, headers } = await asked({ model: gpt })
    expect([status, headers.get('retry-after')]).toEqual([429, '7'])
  })
})

describe('events', () => {
  const eventsOf = (text: string) =>
    text
      .split('\n\n')
      .filter(Boolean)
      .map((block) => JSON.parse(block.replace(/^(?:event: .*\n)?data: /, '')))
  const streamed = async (fields: object) => {
    const response = await world.router.call('/v1/images/generations', { prompt: 'A cat', stream: true, ...fields })
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    return eventsOf(await response.text())
  }
  const facts = { created_at: 7, size: '1024x1024', quality: 'low', background: 'opaque', output_format: 'png' }
  const partial = { type: 'image_generation.partial_image', b64_json: small, partial_image_index: 0, ...facts }
  const completed = { type: 'image_generation.completed', b64_json: small, ...facts, usage: counted }
  const stream = (...events: { type: string }[]) =>
    world.answer((_, response) => {
      beginStream(response)
      for (const event of events) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
      response.end()
    })
  test('as they come, the last with usage and cost', async () => {
    stream(partial, completed)
    expect(await streamed({ model: gpt, partial_images: 1 })).toEqual([
      partial,
      { ...completed, usage: { ...counted, cost: 0.01365 } },
    ])
    expect(world.last()).toMatchObject({ stream: true, partial_images: 1 })
    expect((await Array.fromAsync(world.store.ledger.each({}))).at(-1)).toMatchObject({
      stream: true,
      usage: { images: 1 },
    })
  })
  test('several images', async () => {
    stream(partial, { ...completed, usage: undefined } as never, completed)
    const events = await streamed({ model: gpt, n: 2 })
    expect(events.map(({ type }) => type)).toEqual([partial.type, completed.type, completed.type])
    expect((await Array.fromAsync(world.store.ledger.each({}))).at(-1)).toMatchObject({ usage: { images: 2 } })
  })
  test('a whole reply becomes the completed events', async () => {
    says({ ...reply, data: [{ b64_json: small }, { b64_json: small }] })
    const events = await streamed({ model: gpt, n: 2 })
    const { usage: _, data: __, created, ...others } = reply
    expect(events).toEqual([
      { type: 'image_generation.completed', b64_json: small, created_at: created, ...others },
      {
        type: 'image_generation.completed',
        b64_json: small,
        created_at: created,
        ...others,
        usage: { ...counted, cost: 0.01365 },
      },
    ])
  })
  test('a stream that breaks off ends with an error', async () => {
    world.answer((_, response) => {
      beginStream(response)
      response.write(`data: ${JSON.stringify(partial)}\n\n`)
      setTimeout(() => response.destroy(), 20)
    })
    const events = await streamed({ model: gpt, quality: 'low', size: '1024x1024' })
    expect(events.at(-1)).toMatchObject({ error: { origin: 'provider' } })
    expect((await Array.fromAsync(world.store.ledger.each({}))).at(-1)).toMatchObject({
      outcome: 'partial',
      usage: { input: 2, output_image: 273 },
      cost: { estimated: true },
    })
  })
})

describe('the openai SDK', () => {
  test('1.3, 12.1 images.generate, at the simulator', async () => {
    const result = await world.router
      .openai()
      .images.generate({ model: 'demo/painter', prompt: 'A red cat', size: '256x256' as never })
    expect(Buffer.from(result.data?.[0]?.b64_json ?? '', 'base64').readUInt32BE(16)).toBe(256)
    // 3 tokens read at 0.1 USD per million, 64 drawn at 0.4.
    expect(result.usage).toMatchObject({ input_tokens: 3, output_tokens: 64, cost: 0.0000259 })
  })
  test('a stream', async () => {
    const events = []
    const stream = await world.router.openai().images.generate({ model: 'demo/painter', prompt: 'A cat', stream: true })
    for await (const event of stream) events.push(event)
    expect(events).toMatchObject([{ type: 'image_generation.completed', usage: { output_tokens: 1024 } }])
  })
})
