import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { answerJson } from '../helpers/provider.ts'
import { type Recording, recordings, recordingsMissing } from '../helpers/recordings.ts'
import { testEach } from '../helpers/slow.ts'
import { type JsonStage, jsonStage, jsonWorld } from './json-world.ts'

const priced = { api: 'embedding', pricing: [{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 0 }] }
const vectors = [
  [0.5, -1],
  [0.25, 2],
]

/** How a provider is asked for the vectors of two texts, and how it answers; `each`: it takes one text at a time. */
type Dialect = {
  slug: string
  model?: string
  path: string
  sends: object
  answer: (inputs: number, index: number) => object
  headers?: object
  prompt: number
  each?: boolean
}

const openaiAnswer = (usage: object) => (inputs: number) => ({
  object: 'list',
  data: vectors.slice(0, inputs).map((embedding, index) => ({ object: 'embedding', index, embedding })),
  model: 'm',
  usage,
})
const both = { prompt_tokens: 6, total_tokens: 6 }
const plain = { model: 'm', input: ['a', 'b'], encoding_format: 'base64' }
const unformatted = { model: 'm', input: ['a', 'b'] }

const dialects: Dialect[] = [
  ...['openai', 'azure', 'fireworks', 'openrouter', 'vllm', 'mistral'].map((slug) => ({
    slug,
    path: '/embeddings',
    sends: plain,
    answer: openaiAnswer(both),
    prompt: 6,
  })),
  ...['together', 'cloudflare'].map((slug) => ({
    slug,
    path: slug === 'cloudflare' ? '/v1/embeddings' : '/embeddings',
    sends: unformatted,
    answer: openaiAnswer(both),
    prompt: 6,
  })),
  { slug: 'voyage', path: '/embeddings', sends: plain, answer: openaiAnswer({ total_tokens: 6 }), prompt: 6 },
  { slug: 'jina', path: '/embeddings', sends: unformatted, answer: openaiAnswer({ total_tokens: 6 }), prompt: 6 },
  {
    slug: 'cohere',
    path: '/v2/embed',
    sends: { model: 'm', input_type: 'search_document', embedding_types: ['float'], texts: ['a', 'b'] },
    answer: (inputs) => ({
      id: 'e',
      embeddings: { float: vectors.slice(0, inputs) },
      meta: { billed_units: { input_tokens: 6 } },
    }),
    prompt: 6,
  },
  {
    slug: 'google',
    path: '/models/m:batchEmbedContents',
    sends: {
      requests: ['a', 'b'].map((text) => ({ model: 'models/m', content: { parts: [{ text }] } })),
    },
    answer: (inputs) => ({ embeddings: vectors.slice(0, inputs).map((values) => ({ values })) }),
    // It counts nothing: an estimate.
    prompt: 2,
  },
  {
    slug: 'ollama',
    path: '/api/embed',
    sends: unformatted,
    answer: (inputs) => ({ model: 'm', embeddings: vectors.slice(0, inputs), prompt_eval_count: 6 }),
    prompt: 6,
  },
  {
    slug: 'bedrock',
    model: 'amazon.titan-embed-text-v2:0',
    path: '/model/amazon.titan-embed-text-v2%3A0/invoke',
    sends: { inputText: 'b' },
    answer: (_, index) => ({ embedding: vectors[index], inputTextTokenCount: 3 }),
    prompt: 6,
    each: true,
  },
  {
    slug: 'bedrock',
    model: 'cohere.embed-v4:0',
    path: '/model/cohere.embed-v4%3A0/invoke',
    sends: { texts: ['a', 'b'], input_type: 'search_document', embedding_types: ['float'] },
    answer: (inputs) => ({ id: 'e', embeddings: { float: vectors.slice(0, inputs) } }),
    headers: { 'x-amzn-bedrock-input-token-count': '6' },
    prompt: 6,
  },
]

let stage: JsonStage
beforeAll(async () => {
  const providers: Record<string, { models: Record<string, object> }> = {}
  for (const { slug, model, each } of dialects) {
    const entry = { ...priced, ...(model && { max_inputs: each ? 1 : 96 }) }
    providers[slug] = { models: { ...providers[slug]?.models, [model ?? 'm']: entry } }
  }
  stage = await jsonStage({ providers })
})
afterAll(() => stage?.end())

describe.each(dialects.map((dialect) => [`${dialect.slug} ${dialect.model ?? ''}`, dialect] as const))(
  '%s',
  (_, dialect) => {
    let world: Awaited<ReturnType<JsonStage['begin']>>
    beforeAll(async () => {
      world = await stage.begin(({ body }, response) => {
        const inputs = [body.input ?? body.texts ?? body.requests ?? body.inputText].flat()
        answerJson(response, dialect.answer(inputs.length, inputs[0] === 'b' ? 1 : 0), 200, dialect.headers)
      })
    })

    const model = `${dialect.slug}/${dialect.model ?? 'm'}`
    const client = () => new OpenAI({ baseURL: `${world.router.url}/v1`, apiKey: world.secret, maxRetries: 0 })

    test('the SDK of OpenAI, which asks for base64 by itself', async () => {
      const reply = await client().embeddings.create({ model, input: ['a', 'b'] })
      expect(reply).toMatchObject({
        object: 'list',
        data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })),
        model,
        usage: { prompt_tokens: dialect.prompt, total_tokens: dialect.prompt, cost: dialect.prompt / 1e6 },
      })
      const sent = world.provider.received.at(-1)
      expect([sent?.path, sent?.body]).toEqual([dialect.path, dialect.sends])
      expect((await world.rows()).map(({ cost }) => cost.nanoUsd)).toEqual([dialect.prompt * 1_000])
    })

    test('numbers, of a given length', async () => {
      const reply = await client().embeddings.create({ model, input: 'a', encoding_format: 'float', dimensions: 256 })
      expect(reply.data[0]?.embedding).toEqual(vectors[0])
    })

    test('tokens reach those who read them, and are refused elsewhere', async () => {
      const takes = ['openai', 'azure', 'fireworks', 'openrouter', 'vllm'].includes(dialect.slug)
      const response = await world.ask('/v1/embeddings', { model, input: [[1, 2], [3]] })
      expect(response.status).toBe(takes ? 200 : 400)
      if (!takes) expect(await response.json()).toMatchObject({ error: { param: 'input' } })
    })
  },
)

type Replayed = { model: string; fields: object; sends: object }

/** A recorded call as a client of the OpenAI API makes it. */
function replayed({ case: name, provider, model, request }: Recording): Replayed {
  const body = request?.body
  if (provider === 'voyage') {
    const { input, encoding_format, input_type } = body
    // What is null on the wire is not said here.
    const sends = { model, input, encoding_format, input_type }
    return { model: `voyage/${model}`, fields: { input, encoding_format, input_type }, sends }
  }
  if (name.startsWith('cohere-embed')) {
    const { input_type, output_dimension: dimensions, texts, images } = body
    const contents = images?.map((url: string) => ({ content: [{ type: 'image_url', image_url: { url } }] }))
    const { max_tokens: _, truncate: __, output_dimension: ___, ...sends } = body
    const fields = { input: texts ?? contents, input_type, ...(dimensions && { dimensions }) }
    return {
      model: `cohere/${model}`,
      fields,
      sends: { ...sends, ...(dimensions && { output_dimension: dimensions }) },
    }
  }
  if (name.startsWith('gemini-embeddings')) {
    const requests = body.requests ?? [body]
    const input = requests.map(({ content }: { content: { parts: { text: string }[] } }) => content.parts[0]?.text)
    const { outputDimensionality: dimensions, taskType } = requests[0]
    const fields = { input, ...(dimensions && { dimensions }), ...(taskType && { input_type: taskType }) }
    return { model: `${provider}/${model}`, fields, sends: body }
  }
  const { model: _, ...fields } = body
  return { model: `${provider}/${model}`, fields, sends: body }
}

const cases = ['openai-embeddings', 'gemini-embeddings', 'cohere-embed'].flatMap(recordings)

describe.skipIf(recordingsMissing)('recorded exchanges', () => {
  test('are there', () => expect(cases).toHaveLength(14))

  const few = new Set(cases.filter((_, index) => index % 3 === 0))
  testEach(
    cases.map((one) => [one.case, one] as const),
    { slowIf: ([, one]) => !few.has(one) },
  )('%s', async (_, recording) => {
    const { response, request } = recording
    const { model, fields, sends } = replayed(recording)
    const [slug = '', ...name] = model.split('/')
    const isListed = response.status === 200 && slug !== 'azure'
    const world = await jsonWorld(
      (__, answer) => answerJson(answer, response.body, response.status, response.headers),
      { providers: { [slug]: { models: isListed ? {} : { [name.join('/')]: priced } } } },
    )
    const answer = await world.ask('/v1/embeddings', { model, ...fields })
    const reply = (await answer.json()) as { data: { embedding: number[] | string }[]; error: { origin: string } }
    const sent = world.provider.received.at(-1)
    await world.end()
    expect(sent?.body).toEqual(sends)
    expect(sent?.path.split('/').at(-1)).toBe(request?.path.split('?')[0]?.split('/').at(-1))
    if (response.status !== 200) {
      // The credential is the router's own; a model that a provider has not is a mistake of the request.
      const status = { 401: 502, 404: 404 }[response.status] ?? 400
      expect([answer.status, reply.error.origin]).toEqual([status, 'provider'])
      return
    }
    expect(answer.status).toBe(200)
    const { data, embeddings, embedding } = response.body
    const recorded: unknown[] = data
      ? data.map((one: { embedding: unknown }) => one.embedding)
      : (embeddings?.float ?? embeddings?.map((one: { values: unknown }) => one.values) ?? [embedding.values])
    expect(reply.data.map((one) => one.embedding)).toEqual(recorded)
    const length = 'dimensions' in fields ? fields.dimensions : lengths[model]
    const [first] = reply.data
    const numbers =
      typeof first?.embedding === 'string' ? Buffer.from(first.embedding, 'base64').length / 4 : first?.embedding.length
    if (length !== undefined) expect(numbers).toBe(length)
  })
})

/** 5.5: how long vectors are by default. */
const lengths: { [model: string]: number } = { 'openai/text-embedding-3-small': 1536, 'voyage/voyage-3.5': 1024 }

test('5.5 the catalog knows how long the vectors of OpenAI are', async () => {
  const { router, secret } = await stage.begin(() => {})
  const response = await fetch(`${router.url}/v1/models/embedding`, { headers: { authorization: `Bearer ${secret}` } })
  const { data } = (await response.json()) as { data: { id: string; dimensions: number }[] }
  const own = data
    .filter(({ id }) => id.startsWith('openai/') && id !== 'openai/m')
    .map(({ id, dimensions }) => [id, dimensions])
  expect(Object.fromEntries(own)).toEqual({
    'openai/text-embedding-3-small': 1536,
    'openai/text-embedding-3-large': 3072,
    'openai/text-embedding-ada-002': 1536,
  })
})
