import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Json, JsonObject } from '../../src/core/json.ts'
import { type Operation, operations } from '../../src/core/operation.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import type { Example } from '../../src/manifest/read/layer.ts'
import { servedBy } from '../../src/manifest/target.ts'
import { priceOf } from '../../src/money/price.ts'
import { counted } from '../e2e/clients/sdk-wire.ts'
import { shippedFiles } from '../helpers/shipped.ts'
import { slow } from '../helpers/slow.ts'
import { chatAddresses, operationAddresses } from './addresses.ts'
import { type ContractWorld, contractWorld, plainModels, type Shipped, wireOf } from './contract-world.ts'

// Every shipped manifest through the whole router: what is sent, and what comes back.

let world: ContractWorld
/** Providers as their manifests have them: here they have the address of the server. */
const originals = new Map<string, Provider>()

beforeAll(async () => {
  world = await contractWorld()
  for (const { provider } of (await shippedFiles()).providers) originals.set(provider.slug, provider)
})

afterAll(async () => {
  await world?.end()
})

const weather = {
  type: 'function',
  function: { name: 'weather', description: 'Tells it.', parameters: { type: 'object', properties: {} } },
}

/** A conversation with each thing that all providers can do, and a tool. */
const conversation = {
  messages: [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Hi' },
  ],
  max_completion_tokens: 64,
  tools: [weather],
}

/** They search before they answer, and know no tools. */
const withoutTools = new Set(['perplexity'])

function shippedAs(slug: string): Shipped {
  const found = world.shipped.find((one) => one.slug === slug)
  if (!found) throw new Error(`there is no provider ${slug}`)
  return found
}

/** A model that the manifest itself serves: with tools and a price where there is one. */
function modelFor(shipped: Shipped) {
  const listed = plainModels(shipped).filter(({ entry }) => entry.api === 'chat')
  const able = listed.filter(({ entry }) => entry.supports_tool_calling === true && entry.pricing?.[0]?.input_price)
  // A model that is the one which answers.
  const { plain } = wireOf(shipped.provider).models
  const chosen = listed.find(({ model }) => plain.endsWith(`/${model}`)) ?? able[0] ?? listed[0]
  return chosen ?? { model: 'any-model', entry: shipped.provider.models['*'] ?? { api: 'chat' } }
}

function addressOf({ slug }: Shipped, model: string): string | undefined {
  const path = world.received()[0]?.path.replace(`/${slug}`, '')
  const names = [model, encodeURIComponent(model), model.split('/').map(encodeURIComponent).join('/')]
  const name = names.find((one) => path?.includes(one))
  const original = originals.get(slug)
  const base = original && servedBy(original, model).baseUrl
  return `${base}${name === undefined ? path : path?.replace(name, '{model}')}`
}

/** What the headers of a request have: the key, a token that was made of it, or neither for servers of one's own. */
function credentialOf({ slug, provider }: Shipped): RegExp {
  if (provider.auth.scheme === 'google-service-account') return /"authorization":"Bearer \S+"/
  return originals.get(slug)?.missing.length
    ? /":"(Bearer |AWS4[^"]*)?value-of-[a-z0-9-]+/
    : /^(?!.*"authorization":"(?!Bearer value-of))/
}

const ask = (path: string, body: object) => world.router.call(path, body)

test('the tables have all providers and all operations', () => {
  // Conversations that are jobs have a test of their own.
  const talking = world.shipped.filter(({ provider }) => provider.chat && !provider.chat.job)
  expect(Object.keys(chatAddresses).sort()).toEqual(talking.map(({ slug }) => slug).sort())
  expect(talking.length).toBeGreaterThan(55)
})

/** One provider of each format: the fast suite has streams and failures of these alone. */
const exemplars = new Set(['openai', 'openai-responses', 'anthropic', 'google', 'bedrock', 'cohere', 'ollama'])

describe.each(Object.keys(chatAddresses))('%s', (slug) => {
  const speed = exemplars.has(slug) ? {} : slow

  test('is asked at its address, and answers with a text, a call and what they cost', async () => {
    const shipped = shippedAs(slug)
    const { model, entry } = modelFor(shipped)
    world.play({ reply: { text: 'Hello.', calls: [{ id: 'a1', name: 'weather', arguments: { city: 'Graz' } }] } })
    const response = await ask('/v1/chat/completions', { model: `${slug}/${model}`, ...conversation })
    const answer = (await response.json()) as JsonObject
    expect([response.status, answer.error]).toEqual([200, undefined])
    expect(world.received()).toHaveLength(1)
    const [request] = world.received()
    expect(addressOf(shipped, model)).toBe(chatAddresses[slug])
    expect(JSON.stringify(request?.headers)).toMatch(credentialOf(shipped))
    const arrived = wireOf(shipped.provider).read(request?.body)
    expect([arrived.turns.map(({ text }) => text), arrived.system, arrived.limit]).toEqual([['Hi'], 'Be brief.', 64])
    const hasTools = entry.supports_tool_calling !== false && !withoutTools.has(slug)
    expect(arrived.tools).toEqual(hasTools ? ['weather'] : [])
    expect(answer).toMatchObject({
      choices: [
        {
          message: { content: 'Hello.', tool_calls: [{ function: { name: 'weather' } }] },
          finish_reason: 'tool_calls',
        },
      ],
      usage: { prompt_tokens: counted.input, completion_tokens: counted.output },
    })
    if (entry.pricing && !entry.other_prices?.per_request_low) {
      const { nanoUsd } = priceOf({ ...counted }, entry, Date.now())
      expect((answer.usage as JsonObject).cost).toBe(nanoUsd / 1e9)
    }
  })

  test('streams', speed, async () => {
    const { model } = modelFor(shippedAs(slug))
    world.play({ reply: { text: 'Hello to all of you.' } })
    const asked = { model: `${slug}/${model}`, ...conversation, stream: true, stream_options: { include_usage: true } }
    const text = await (await ask('/v1/chat/completions', asked)).text()
    const events = [...text.matchAll(/^data: (\{.*)$/gm)].map((match) => JSON.parse(match[1] ?? ''))
    const said = events.map(({ choices }) => choices?.[0]?.delta?.content ?? '').join('')
    expect([said, text.trimEnd().endsWith('data: [DONE]')]).toEqual(['Hello to all of you.', true])
    const last = events.at(-1)?.usage
    expect([last?.prompt_tokens, last?.completion_tokens]).toEqual([counted.input, counted.output])
  })

  test.each([
    [401, 502],
    [429, 429],
    [500, 502],
  ])('fails: %d is %d', speed, async (status, expected) => {
    const { model } = modelFor(shippedAs(slug))
    world.play({ status })
    const response = await ask('/v1/chat/completions', { model: `${slug}/${model}`, ...conversation })
    const { error } = (await response.json()) as { error: JsonObject }
    expect([response.status, error.provider]).toEqual([expected, slug])
    expect(world.received()).toHaveLength(1)
  })
})

const paths: { readonly [operation in Operation]?: string } = {
  embed: '/v1/embeddings',
  image: '/v1/images/generations',
  speech: '/v1/audio/speech',
  decide: '/v1/decisions',
  complete: '/v1/completions',
  rerank: '/v1/rerank',
  moderate: '/v1/moderations',
}

/** A request, and an answer in the form of `openai-chat`, for providers that have no example of their own. */
const usual: { readonly [operation in Operation]?: { request: JsonObject; answers: JsonObject } } = {
  embed: {
    request: { input: ['a'] },
    answers: { data: [{ index: 0, embedding: [0.5] }], usage: { prompt_tokens: 3, total_tokens: 3 } },
  },
  image: { request: { prompt: 'A cat' }, answers: { data: [{ url: 'https://example.com/a.png' }] } },
  complete: {
    request: { prompt: 'a' },
    answers: { choices: [{ text: 'b', index: 0 }], usage: { prompt_tokens: 3, completion_tokens: 1 } },
  },
  rerank: {
    request: { query: 'q', documents: ['a'] },
    answers: { results: [{ index: 0, relevance_score: 0.5 }], usage: { total_tokens: 3 } },
  },
  moderate: {
    request: { input: 'a' },
    answers: { results: [{ flagged: false, categories: {}, category_scores: {} }] },
  },
}

describe.each(Object.keys(operationAddresses))('%s', (name) => {
  const [slug = '', operation = ''] = name.split(' ') as [string, Operation]

  test('is asked and answers', async () => {
    const shipped = shippedAs(slug)
    const { request, answers, sends } = caseOf(shipped, operation as Operation)
    world.play({ json: answers as Json })
    const model = String(request.model)
    const response = await ask(paths[operation as Operation] ?? '', { ...request, model: `${slug}/${model}` })
    const type = response.headers.get('content-type') ?? ''
    const answer = type.includes('json') ? await response.json() : await response.text()
    expect([response.status, (answer as JsonObject).error]).toEqual([200, undefined])
    expect(addressOf(shipped, model)).toBe(operationAddresses[name])
    if (sends && !Array.isArray(world.received()[0]?.body)) expect(world.received()[0]?.body).toEqual(sends)
  })

  test('fails', exemplars.has(slug) ? {} : slow, async () => {
    const shipped = shippedAs(slug)
    const { request } = caseOf(shipped, operation as Operation)
    world.play({ status: 429 })
    const asked = { ...request, model: `${slug}/${request.model}` }
    expect((await ask(paths[operation as Operation] ?? '', asked)).status).toBe(429)
  })
})

/** The example of a manifest that says what is sent and answered, else what is usual. */
function caseOf({ models, examples, provider }: Shipped, operation: Operation): CaseOf {
  const listed = new Set(models.map(({ model }) => model))
  const example = examples.find((one) => one.operation === operation && one.answers && one.sends && isListed(one))
  if (example) return example as unknown as CaseOf
  const { request, answers } = usual[operation] ?? {}
  const kinds: readonly string[] = operations[operation].models
  const model = models.find(({ entry }) => kinds.includes(entry.api))?.model ?? (provider.models['*'] && 'any-model')
  if (!request || !answers || model === undefined) throw new Error(`${provider.slug} has no example of ${operation}`)
  return { request: { ...request, model }, answers }

  function isListed({ request }: Example): boolean {
    return listed.has(String(request?.model))
  }
}

type CaseOf = { request: JsonObject; answers: JsonObject; sends?: JsonObject }
