import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { answerJson } from '../helpers/provider.ts'
import { testInRuns } from '../helpers/slow.ts'
import { type JsonStage, type JsonWorld, jsonStage, jsonWorld, testMoney } from './json-world.ts'

const pricing = [{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 0 }]
const entry = { api: 'embedding', pricing }

/** The vector of a text: what it says, as 32-bit floats. */
function vectorOf(input: unknown): number[] {
  return [...Buffer.from(JSON.stringify(input))].map((byte) => Math.fround(byte / 7))
}

let world: JsonWorld

beforeAll(async () => {
  world = await jsonWorld(
    ({ body }, response) => {
      const isTokens = typeof body.input?.[0] === 'number'
      const inputs: unknown[] = isTokens || !Array.isArray(body.input) ? [body.input] : body.input
      const data = inputs.map((input, index) => ({ object: 'embedding', index, embedding: vectorOf(input) }))
      answerJson(response, {
        object: 'list',
        // Their order is said by their index.
        data: data.reverse(),
        model: body.model,
        usage: { prompt_tokens: inputs.length, total_tokens: inputs.length },
      })
    },
    {
      providers: {
        openai: {
          models: {
            small: entry,
            short: { ...entry, max_inputs: 7 },
            fixed: { ...entry, dimensions: 4, dimensions_free: false },
            some: { ...entry, dimensions: 8, dimensions_free: [2, 4, 8] },
            any: { ...entry, dimensions: 8, max_dimensions: 16, dimensions_free: true },
            none: { api: 'embedding', pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0 }] },
          },
        },
      },
    },
  )
})

afterAll(() => world?.end())

const embed = (fields: object) => world.ask('/v1/embeddings', { model: 'openai/small', ...fields })

describe('POST /v1/embeddings', () => {
  test('1.2, 5.1, 5.2, 5.3, 5.4, 11.9 one text, and the reply', async () => {
    const response = await embed({ input: 'hello' })
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({
      object: 'list',
      data: [{ object: 'embedding', index: 0, embedding: vectorOf('hello') }],
      model: 'openai/small',
      usage: { prompt_tokens: 1, total_tokens: 1, cost: 1e-6 },
    })
    expect(world.provider.received.at(-1)?.body).toEqual({ model: 'small', input: 'hello' })
  })

  test.each([
    ['11.1 a string', 'hello'],
    ['11.2 strings', ['a', 'b', 'c']],
    ['11.3 tokens', [1, 2, 3]],
    ['11.4 lists of tokens', [[1, 2], [3]]],
    ['11.4 one list of tokens', [[1, 2]]],
  ])('%s', async (_, input) => {
    const response = await embed({ input, user: 'me', dimensions: 3 })
    const { data } = (await response.json()) as { data: { embedding: number[] }[] }
    const inputs = typeof input === 'string' || typeof input[0] === 'number' ? [input] : input
    expect(data.map(({ embedding }) => embedding)).toEqual(inputs.map(vectorOf))
    expect(world.provider.received.at(-1)?.body).toEqual({ model: 'small', input, user: 'me', dimensions: 3 })
  })

  test.each([
    ['nothing', {}, 'input'],
    ['an empty text', { input: '' }, 'input'],
    ['an empty list', { input: [] }, 'input'],
    ['an empty text in a list', { input: ['a', ''] }, 'input[1]'],
    ['no tokens in a list', { input: [[1], []] }, 'input[1]'],
    ['a fraction', { input: [[1], [1.5]] }, 'input[1]'],
    ['a number', { input: 3 }, 'input'],
    ['5,000 texts', { input: Array(5_000).fill('a') }, 'input'],
    ['no dimensions', { input: 'a', dimensions: 0 }, 'dimensions'],
    ['half a dimension', { input: 'a', dimensions: 1.5 }, 'dimensions'],
    ['another format', { input: 'a', encoding_format: 'hex' }, 'encoding_format'],
    ['a user that is no text', { input: 'a', user: 3 }, 'user'],
    ['a content of nothing', { input: [{ content: [] }] }, 'input[0].content'],
    ['an image', { input: [{ content: [{ type: 'image_url', image_url: { url: 'https://example.com' } }] }] }, 'input'],
    ['more numbers than one has', { model: 'openai/fixed', input: 'a', dimensions: 5 }, 'dimensions'],
    ['fewer, where that cannot be', { model: 'openai/fixed', input: 'a', dimensions: 3 }, 'dimensions'],
    ['another length than those', { model: 'openai/some', input: 'a', dimensions: 3 }, 'dimensions'],
    ['more than the most', { model: 'openai/any', input: 'a', dimensions: 17 }, 'dimensions'],
  ])('11.6 %s is a 400 before anything is sent', async (_, fields, param) => {
    const before = world.provider.received.length
    const response = await embed(fields)
    expect([response.status, await response.json()]).toMatchObject([400, { error: { param } }])
    expect(world.provider.received.length).toBe(before)
  })

  test.each([
    ['fixed', 4],
    ['some', 2],
    ['some', 8],
    ['any', 1],
    ['any', 16],
  ])('11.6 %s takes %i dimensions', async (model, dimensions) => {
    const response = await embed({ model: `openai/${model}`, input: 'a', dimensions })
    expect(response.status).toBe(200)
    expect(world.provider.received.at(-1)?.body.dimensions).toBe(dimensions)
  })

  test('a free model costs nothing', async () => {
    const { usage } = (await (await embed({ model: 'openai/none', input: 'a' })).json()) as { usage: object }
    expect(usage).toEqual({ prompt_tokens: 1, total_tokens: 1, cost: 0 })
  })

  test('a model of another kind names where it is called', async () => {
    const messages = [{ role: 'user', content: 'x' }]
    const asked = await world.ask('/v1/chat/completions', { model: 'openai/small', messages })
    expect([asked.status, await asked.text()]).toEqual([400, expect.stringContaining('/v1/embeddings')])
    expect((await embed({ model: 'openai/gpt-4.1', input: 'x' })).status).toBe(400)
  })
})

describe('forms of vectors', () => {
  const floats = fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 1, maxLength: 40 })
  const base64Of = (numbers: readonly number[]) => Buffer.from(Float32Array.from(numbers).buffer).toString('base64')
  let stage: JsonStage
  beforeAll(async () => {
    stage = await jsonStage({ providers: { openai: { models: { small: entry } } } })
  })
  afterAll(() => stage?.end())
  const given = async (embedding: unknown, format: string) => {
    const forms = await stage.begin((_, response) =>
      answerJson(response, { data: [{ index: 0, embedding }], usage: { prompt_tokens: 1 } }),
    )
    const response = await forms.ask('/v1/embeddings', { model: 'openai/small', input: 'a', encoding_format: format })
    const body = (await response.json()) as { data: { embedding: unknown }[] }
    return response.status === 200 ? body.data[0]?.embedding : body
  }

  testInRuns('11.7 either form becomes the other, to the bit', { fast: 8, slow: 40 }, async (numRuns) => {
    let embedding: unknown
    const forms = await stage.begin((_, response) =>
      answerJson(response, { data: [{ index: 0, embedding }], usage: { prompt_tokens: 1 } }),
    )
    const inForm = async (sent: unknown, format: string) => {
      embedding = sent
      const body = { model: 'openai/small', input: 'a', encoding_format: format }
      const reply = (await (await forms.ask('/v1/embeddings', body)).json()) as { data: { embedding: unknown }[] }
      return reply.data[0]?.embedding
    }
    await fc.assert(
      fc.asyncProperty(floats, async (numbers) => {
        const base64 = base64Of(numbers)
        // JSON has no sign of zero.
        const plain = numbers.map((one) => (Object.is(one, -0) ? 0 : one))
        expect(await inForm(base64, 'base64')).toBe(base64)
        expect(await inForm(base64, 'float')).toEqual(plain)
        expect(await inForm(plain, 'base64')).toBe(base64Of(plain))
        expect(await inForm(plain, 'float')).toEqual(plain)
      }),
      { numRuns },
    )
  })

  test.each([
    ['no vector', null],
    ['an empty one', []],
    ['words', ['a']],
    ['base64 that is cut', 'AAAA'],
    ['no base64', ''],
  ])('%s is a 502', async (_, embedding) => {
    expect(await given(embedding, 'float')).toMatchObject({ error: { code: 'provider_unreadable' } })
    expect(await given(embedding, 'base64')).toMatchObject({ error: { code: 'provider_unreadable' } })
  })

  test.each([
    ['too few', [0]],
    ['too many', [0, 1, 2]],
    ['one twice', [0, 0]],
    ['an unknown one', [0, 2]],
  ])('%s vectors for two texts are a 502', async (_, indices) => {
    const data = indices.map((index) => ({ index, embedding: [1] }))
    const forms = await stage.begin((__, response) => answerJson(response, { data, usage: { prompt_tokens: 1 } }))
    expect((await forms.ask('/v1/embeddings', { model: 'openai/small', input: ['a', 'b'] })).status).toBe(502)
  })
})

describe('more texts than a provider takes at once', () => {
  test('are sent in pieces, and joined in order: one row, one cost', async () => {
    const before = world.provider.received.length
    const rows = (await world.rows()).length
    const input = Array.from({ length: 2_048 }, (_, index) => `text ${index}`)
    const response = await embed({ model: 'openai/short', input, encoding_format: 'base64' })
    const { data, usage } = (await response.json()) as { data: object[]; usage: object }
    expect(data).toEqual(
      input.map((text, index) => {
        const embedding = Buffer.from(Float32Array.from(vectorOf(text)).buffer).toString('base64')
        return { object: 'embedding', index, embedding }
      }),
    )
    expect(usage).toEqual({ prompt_tokens: 2_048, total_tokens: 2_048, cost: 0.002048 })
    const sent = world.provider.received.slice(before).map(({ body }) => body.input.length)
    expect(sent).toHaveLength(Math.ceil(2_048 / 7))
    expect(Math.max(...sent)).toBe(7)
    expect(await world.rows()).toHaveLength(rows + 1)
  })

  testInRuns('of any number', { fast: 6, slow: 25 }, async (numRuns) => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 60 }), async (length) => {
        const before = world.provider.received.length
        const input = Array.from({ length }, (_, index) => `text ${index}`)
        const reply = await (await embed({ model: 'openai/short', input })).json()
        const { data } = reply as { data: { embedding: number[]; index: number }[] }
        expect(data.map(({ embedding }) => embedding)).toEqual(input.map(vectorOf))
        expect(data.map(({ index }) => index)).toEqual(input.map((_, index) => index))
        expect(world.provider.received.length - before).toBe(Math.ceil(length / 7))
      }),
      { numRuns },
    )
  })

  test('a piece that fails fails all; what was counted is paid', async () => {
    let calls = 0
    const failing = await jsonWorld(
      ({ body }, response) => {
        if (++calls > 2) return answerJson(response, { error: { message: 'no' } }, 500)
        const data = body.input.map((_: string, index: number) => ({ index, embedding: [1] }))
        answerJson(response, { data, usage: { prompt_tokens: 10 } })
      },
      { providers: { openai: { models: { short: { ...entry, max_inputs: 1 } } } } },
    )
    const input = Array(40).fill('0123456789')
    const response = await failing.ask('/v1/embeddings', { model: 'openai/short', input })
    expect(response.status).toBe(502)
    expect((await failing.rows()).map(({ cost, outcome }) => [outcome, cost.nanoUsd])).toEqual([['failed', 20_000]])
    expect(calls).toBeLessThan(10)
    await failing.end()
  })
})

describe('money', () => {
  testMoney({
    api: 'embeddings',
    path: '/v1/embeddings',
    body: { input: 'ab' },
    entry,
    // The most tokens that two letters can be.
    answer: { data: [{ index: 0, embedding: [1] }], usage: { prompt_tokens: 10, total_tokens: 10 } },
    nano: 10_000n,
  })
})
