import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chat as chatApi } from '../../../src/api/chat/api.ts'
import { schemaOf } from '../../helpers/openapi.ts'
import { type TestRouter, testKey, testRouter } from '../../helpers/router.ts'
import { sentTo } from '../../helpers/sent.ts'
import { shippedFiles } from '../../helpers/shipped.ts'
import { testEach } from '../../helpers/slow.ts'
import type { Body } from '../clients/sdk-wire.ts'
import { specificationWorld, type World } from './specification-world.ts'

// The contract of model entries and model lists, statement by statement.

/** Every provider has its secret, so every model of the catalog is listed. */
const secrets = [
  ...['ANTHROPIC', 'AZURE', 'COHERE', 'DEEPSEEK', 'FIREWORKS', 'GEMINI', 'GROQ', 'MISTRAL', 'OPENAI', 'OPENROUTER'],
  ...['PERPLEXITY', 'TOGETHER', 'XAI'],
].map((name) => [`${name}_API_KEY`, 'set'])
const env = {
  ...Object.fromEntries(secrets),
  AZURE_RESOURCE_NAME: 'r',
  CLOUDFLARE_ACCOUNT_ID: 'a',
  CLOUDFLARE_API_TOKEN: 'set',
  AWS_ACCESS_KEY_ID: 'AKIASET',
  AWS_SECRET_ACCESS_KEY: 'set',
}

const tier = (prompt_tokens_threshold: number, input_price: number) => ({
  ...{ prompt_tokens_threshold, input_price, output_price: 0 },
})
const facts = { pricing: [tier(0, 1e-6)], context_window: 1_000, data_retention: false, data_retention_days: 0 }
const kinds = ['decision', 'embedding', 'image', 'transcription', 'speech']
const modalities = ['chat', ...kinds, 'rerank', 'moderation', 'completion']
const models = {
  ...Object.fromEntries(kinds.map((api) => [`a-${api}`, { api, pricing: [tier(0, 1e-6)] }])),
  'b-decision': { api: 'decision', pricing: { input: 2e-6 } },
  strict: { api: 'chat', geolocation: 'eu', supports_vision: true, ...facts, context_window: 900 },
  loose: {
    ...{ api: 'chat', geolocation: 'us', supports_vision: false, ...facts, pricing: [tier(0, 2e-6)] },
    ...{ data_retention: true, data_retention_days: 30 },
  },
  tiered: { api: 'chat', pricing: [tier(0, 1e-6), tier(20, 3e-6)] },
}
const policies = {
  both: { targets: ['openai/strict', 'openai/loose'] },
  'both@eu': { targets: ['openai/loose', 'openai/strict'] },
  unset: { targets: ['vertex/gemini-3.5-flash'] },
}

let world: World
let chat: Body[]
let all: Body[]
let priced: Body[]
beforeAll(async () => {
  world = await specificationWorld({ models, env, settings: { policies } })
  await world.router.call('/v1/manage/alias', { name: 'quick', target: 'openai/loose' })
  await world.router.call('/v1/manage/alias', { name: 'judge', target: 'openai/a-decision' })
  await world.router.call('/v1/manage/policy', { id: 'mine', targets: ['openai/loose', 'openai/strict'] })
  chat = (await list('chat')).data
  all = (await list('all')).data
  priced = chat.filter(({ pricing }) => pricing.length > 0)
})
afterAll(() => world.end())

async function list(path: string, headers: object = { 'x-api-key': testKey }): Promise<Body> {
  const answer = await fetch(`${world.router.url}/v1/models${path && `/${path}`}`, { headers: { ...headers } })
  expect(answer.status).toBe(200)
  return await answer.json()
}
const ids = (entries: Body[]): string[] => entries.map(({ id }) => id)
/** The ids of the entries that are not as stated. */
const unlike = (entries: Body[], holds: (entry: Body) => boolean) => ids(entries.filter((entry) => !holds(entry)))
const isPrice = (value: unknown) => typeof value === 'number' && value >= 0
const isWhole = (value: unknown) => Number.isSafeInteger(value)
const isText = (value: unknown) => typeof value === 'string' && value !== ''

describe('Model entry', () => {
  const flags = Object.keys((schemaOf('ModelEntry') as Body).properties).filter((name) => name.startsWith('supports_'))
  const always: [statement: string, holds: (entry: Body) => boolean][] = [
    ['2.1, 2.7: api is a modality', ({ api }) => modalities.includes(api)],
    ['2.2: id is the value to pass as model', ({ id }) => isText(id)],
    ['2.3: object is always model', ({ object }) => object === 'model'],
    ['2.4: created is a Unix timestamp', ({ created }) => isWhole(created)],
    ['2.5: updated is a Unix timestamp', ({ updated }) => isWhole(updated)],
    ['2.6: owned_by is system', ({ owned_by }) => owned_by === 'system'],
    ['2.14, 20.5: max_output_tokens is an integer', ({ max_output_tokens = 1 }) => isWhole(max_output_tokens)],
    ['2.15, 20.5: context_window is an integer', ({ context_window = 1 }) => isWhole(context_window)],
    ['2.26: description is a string', ({ description }) => isText(description)],
    ['2.27: data_retention is a boolean', ({ data_retention }) => typeof data_retention === 'boolean'],
    ['2.28: data_retention_days is an integer', ({ data_retention_days }) => isWhole(data_retention_days)],
    ['2.29: data_used_for_training is a boolean', (entry) => typeof entry.data_used_for_training === 'boolean'],
    ['2.30: privacy_comments is a string', ({ privacy_comments }) => isText(privacy_comments)],
    [
      '2.31: geolocation is a string: global, us, eu or another place',
      ({ geolocation }) => /^[a-z]{2,6}$/.test(geolocation),
    ],
  ]
  const statements: Record<string, string> = {
    ...{ supports_caching: '2.16', supports_vision: '2.17', supports_computer_use: '2.18', supports_reasoning: '2.19' },
    ...{ supports_image_generation: '2.20', supports_tool_calling: '2.21', supports_role_developer: '2.22' },
    ...{ supports_web_search: '2.23', supports_output_json_object: '2.24', supports_output_json_schema: '2.25' },
  }
  test.each(flags.map((name) => [statements[name], name] as const))('%s: %s is a boolean', (id, name) => {
    expect(id).toBeDefined()
    expect(unlike(all, (entry) => typeof (entry[name] ?? true) === 'boolean')).toEqual([])
    expect(all.some((entry) => entry[name] === true)).toBe(true)
  })
  test.each(always)('%s', (_, holds) => {
    expect(all.length).toBeGreaterThan(800)
    expect(unlike(all, holds)).toEqual([])
    expect(unlike(chat, holds)).toEqual([])
  })

  const ofChat: [statement: string, holds: (entry: Body) => boolean][] = [
    ['2.32: open_weights is a boolean of chat entries', ({ open_weights }) => typeof open_weights === 'boolean'],
    ['2.32: model_lab is a string of chat entries', ({ model_lab }) => isText(model_lab)],
    ['2.32: model_canonical_name is a string of chat entries', ({ model_canonical_name: name }) => isText(name)],
    ['2.12: pricing of chat entries is an array of tiers', ({ pricing }) => Array.isArray(pricing)],
    ['2.8, 2.9, 2.10, 2.11: flat prices are not on the list of chat models', (entry) => !('input_price' in entry)],
  ]
  test.each(ofChat)('%s', (_, holds) => expect(unlike(chat, holds)).toEqual([]))

  test.each([
    ['2.8', 'input_price'],
    ['2.9', 'caching_price'],
    ['2.10', 'cached_price'],
    ['2.11', 'output_price'],
  ])('%s: the flat %s is a number on the all-modalities and managed-policy lists', async (_, name) => {
    expect(unlike(all, (entry) => isPrice(entry[name]))).toEqual([])
    expect(unlike((await list('managed', {})).data, (entry) => isPrice(entry[name]))).toEqual([])
  })
  test('2.13: pricing of decision entries is an object {input, output}', async () => {
    const { data } = await list('decision')
    expect(data).toContainEqual(expect.objectContaining({ api: 'decision', pricing: { input: 1e-6, output: 0 } }))
    const written = data.find(({ id }: Body) => id === 'openai/b-decision')
    expect(written).toMatchObject({ pricing: { input: 2e-6, output: 0 } })
    const shipped = data.find(({ id }: Body) => id === 'cloudflare/@cf/cloudflare/clef')
    expect(shipped).toMatchObject({ api: 'decision', pricing: { input: 0.24e-6, output: 0 }, context_window: 65_536 })
  })

  const prices = [
    ['2.34', 'input_price'],
    ['2.35', 'caching_price'],
    ['2.36', 'caching_5m_price'],
    ['2.37', 'caching_1h_price'],
    ['2.38', 'cached_price'],
    ['2.39', 'output_price'],
  ] as const
  test.each(prices)('%s: in a tier %s is a number', (_, name) => {
    expect(unlike(chat, ({ pricing }) => pricing.every((one: Body) => isPrice(one[name])))).toEqual([])
  })
  test('2.33, 2.40: prompt_tokens_threshold is an integer, ascending, and 0 in the first tier', () => {
    const holds = ({ pricing }: Body) =>
      pricing[0]?.prompt_tokens_threshold === 0 &&
      pricing.every(({ prompt_tokens_threshold: at }: Body, index: number) => {
        return isWhole(at) && (index === 0 || at > pricing[index - 1].prompt_tokens_threshold)
      })
    expect(unlike(priced, holds)).toEqual([])
  })
  test('2.12: pricing is empty only where no price is known', () => {
    // What these cost is known when a model has been chosen.
    const automatic = ['-messages', '-responses', ''].map((ending) => `openrouter${ending}/openrouter/auto`)
    expect(unlike(chat, (entry) => priced.includes(entry)).toSorted()).toEqual(automatic)
  })
  test('2.40: a prompt has the price of the tier that it reaches', async () => {
    const { body } = await ask('openai/tiered')
    expect(body.usage.cost).toBeCloseTo(40 * 3e-6, 12)
  })
})

const ask = (model: string, more: object = {}, headers: Record<string, string> = {}) =>
  world.ask('/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hi' }], ...more }, { headers })

describe('The entry of a model', () => {
  const flags = [
    ...[
      'supports_caching',
      'supports_vision',
      'supports_computer_use',
      'supports_reasoning',
      'supports_image_generation',
    ],
    ...['supports_tool_calling', 'supports_role_developer', 'supports_web_search', 'supports_output_json_object'],
    'supports_output_json_schema',
  ]
  const all = (value: boolean) => Object.fromEntries(flags.map((name) => [name, value]))
  const stated = {
    ...{ api: 'chat', created: 1_700_000_000, updated: 1_750_000_000, max_output_tokens: 123, context_window: 4_567 },
    ...{ description: 'It is stated.', data_retention: true, data_retention_days: 7, data_used_for_training: false },
    ...{ privacy_comments: 'Seven days.', geolocation: 'us', open_weights: true, model_lab: 'A lab' },
    ...{ model_canonical_name: 'the-model', ...all(true) },
  }
  const denied = {
    ...{ api: 'chat', created: 5, open_weights: false, data_retention: false, data_used_for_training: true },
    ...all(false),
  }
  const pricing = [
    {
      ...{ prompt_tokens_threshold: 0, input_price: 1e-6, caching_price: 1.25e-6, caching_5m_price: 1.5e-6 },
      ...{ caching_1h_price: 2e-6, cached_price: 1e-7, output_price: 4e-6 },
    },
    { prompt_tokens_threshold: 1_000, input_price: 2e-6, output_price: 8e-6 },
  ]
  const models = { stated: { ...stated, pricing }, denied, silent: { api: 'chat' } }
  const provider = { slug: 'one', name: 'One', base_url: 'http://127.0.0.1:9', auth: { scheme: 'none' }, models }

  let own: TestRouter
  let entries: { [id: string]: Body }
  let flat: { [id: string]: Body }
  beforeAll(async () => {
    own = await testRouter({ files: { 'providers/one.yaml': JSON.stringify({ ...provider, dialect: 'openai-chat' }) } })
    const read = async (path: string) => {
      const { data } = (await (await own.call(path)).json()) as { data: Body[] }
      return Object.fromEntries(data.map((entry) => [entry.id, entry]))
    }
    entries = await read('/v1/models')
    flat = await read('/v1/models/all')
  })
  afterAll(() => own.end())

  test('2.2 to 2.6, 2.14, 2.15, 2.26 to 2.32: has what is stated of it', () => {
    const { pricing: _, ...entry } = entries['one/stated']
    expect(entry).toEqual({ id: 'one/stated', object: 'model', owned_by: 'system', ...stated })
    expect(entries['one/denied']).toMatchObject({ ...denied, updated: 5 })
  })
  test.each(flags)('2.16 to 2.25: %s is true, false or missing, as it is stated', (flag) => {
    expect(['stated', 'denied', 'silent'].map((name) => entries[`one/${name}`][flag])).toEqual([true, false, undefined])
  })
  test('2.4, 2.5, 2.27 to 2.32: has what a careful reader assumes where nothing is stated', () => {
    expect(entries['one/silent']).toEqual({
      ...{ api: 'chat', id: 'one/silent', object: 'model', created: 0, updated: 0, owned_by: 'system', pricing: [] },
      ...{ description: 'one/silent', data_retention: true, data_retention_days: 0, data_used_for_training: true },
      ...{ privacy_comments: 'Not stated.', geolocation: 'global', open_weights: false, model_lab: 'unknown' },
      model_canonical_name: 'silent',
    })
  })
  test('2.8 to 2.12, 2.33 to 2.40: has its prices, those of the lowest tier as flat ones; gaps are billed as input or output', () => {
    const second = { caching_price: 2e-6, caching_5m_price: 2e-6, caching_1h_price: 2e-6, cached_price: 2e-6 }
    expect(entries['one/stated'].pricing).toEqual([pricing[0], { ...pricing[1], ...second }])
    const { input_price, caching_price, cached_price, output_price } = flat['one/stated']
    expect([input_price, caching_price, cached_price, output_price]).toEqual([1e-6, 1.25e-6, 1e-7, 4e-6])
    expect(flat['one/silent']).toMatchObject({ input_price: 0, caching_price: 0, cached_price: 0, output_price: 0 })
  })
})

describe('Flags', () => {
  const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  const url = `data:image/png;base64,${pixel}`
  const uses: [id: string, flag: string, body: object][] = [
    ['2.17', 'supports_vision', { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] }],
    [
      '2.21',
      'supports_tool_calling',
      { tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }] },
    ],
    ['2.19', 'supports_reasoning', { reasoning_effort: 'high' }],
    ['2.23', 'supports_web_search', { tools: [{ type: 'web_search' }] }],
  ]
  // Every so many-th model is enough for the fast suite.
  const cases = [15, 1].flatMap((step) => uses.map(([id, flag, body]) => [id, flag, step, body] as const))
  testEach(cases, { slowIf: ([, , step]) => step === 1 })(
    '%s, 1.21: %s says what a request may use (step %d)',
    async (_, flag, step, body) => {
      const wrong: string[] = []
      const played = chat.filter(
        // This model thinks as much as it likes.
        ({ id, [flag]: value }) =>
          /^(openai|openai-responses|anthropic|google)\//.test(id) &&
          value !== undefined &&
          !id.endsWith('/chat-latest'),
      )
      for (const { id, [flag]: promised } of played.filter((_, index) => index % step === 0)) {
        const { status } = await ask(id, body, { 'x-router-strict': 'true' })
        if ((status === 200) !== promised) wrong.push(`${id}: ${status}`)
      }
      expect(wrong).toEqual([])
    },
  )
})

test("1.19, 1.20, 2.23: every model that is listed with supports_web_search gets the search in its provider's format", async () => {
  const { catalog } = await shippedFiles()
  const searching = catalog.list().filter(({ entry }) => entry.api === 'chat' && entry.supports_web_search)
  expect(new Set(searching.map(({ provider }) => provider)).size).toBeGreaterThan(5)
  const tools = [{ type: 'web_search' }]
  const lost: string[] = []
  for (const { provider, model } of searching) {
    const id = `${provider}/${model}`
    const { names } = await sentTo(id, chatApi, { messages: [{ role: 'user', content: 'Hi' }], tools })
    if (await names.includes('tools.web_search')) lost.push(id)
  }
  expect(lost).toEqual([])
})

describe('Lists', () => {
  const paths = ['', 'chat', 'all', 'managed', ...kinds]
  test.each(paths)('2.41: the envelope of /v1/models/%s is {object: list, data: [model entry]}', async (path) => {
    const answer = await list(path)
    expect(Object.keys(answer)).toEqual(['object', 'data'])
    expect([answer.object, answer.data.length > 0]).toEqual(['list', true])
  })
  test.each(paths)('15.15: /v1/models/%s is GET, with no request body', async (path) => {
    expect((await world.router.call(`/v1/models${path && `/${path}`}`, {})).status).toBe(405)
  })
  test('15.1: /v1/models is an alias of /v1/models/chat', async () => {
    // Of one moment: what some models cost changes with the time of day.
    await expect
      .poll(async () =>
        isDeepStrictEqual(...((await Promise.all(['', 'chat'].map((path) => list(path)))) as [Body, Body])),
      )
      .toBe(true)
  })
  test("15.2: /v1/models/chat has chat models, including the organization's aliases and routing policies", async () => {
    expect(new Set(chat.map(({ api }) => api))).toEqual(new Set(['chat']))
    expect(ids(chat)).toEqual(expect.arrayContaining(['quick', 'mine', 'both', 'openai/strict']))
    const anonymous = ids((await list('chat', {})).data)
    expect(anonymous.filter((id) => ['quick', 'mine', 'both'].includes(id))).toEqual([])
    expect(anonymous).toContain('openai/strict')
  })
  test('15.3, 2.7: /v1/models/all has models of every modality, each identified by api', () => {
    const apis = new Set(all.map(({ api }) => api))
    expect([...apis].toSorted()).toEqual(modalities.toSorted())
  })
  test('15.4, 15.5: aliases and routing policies never appear in /v1/models/decision', async () => {
    const listed = ids((await list('decision')).data)
    expect(listed).toEqual(expect.arrayContaining(['openai/a-decision']))
    expect(listed).not.toContain('judge')
  })
  test.each(kinds)('15.4, 15.11, 15.12, 15.13, 15.14: /v1/models/%s has the models of that modality', async (api) => {
    const { data } = await list(api)
    expect(data.map((entry: Body) => entry.api)).toEqual(data.map(() => api))
    expect(ids(data)).toContain(`openai/a-${api}`)
  })
  const shown: [path: string, id: string, facts: Body][] = [
    [
      'embedding',
      'openai/text-embedding-3-small',
      { ...{ dimensions: 1_536, dimensions_free: true, max_inputs: 2_048 }, input_price: 0.02e-6, output_price: 0 },
    ],
    ['image', 'openai/gpt-image-1.5', { qualities: ['low', 'medium', 'high', 'auto'], input_price: 5e-6 }],
    ['image', 'google/imagen-4.0-generate-001', { other_prices: { per_image: 0.04 }, pricing: [] }],
    ['image', 'xai/grok-imagine-image-2.0', { image_prices: { 'low 1k': 0.04 }, sizes: ['1k', '2k'] }],
    [
      'transcription',
      'openai/whisper-1',
      {
        granularities: ['word', 'segment'],
        granularities_at_once: 2,
        other_prices: { per_second: 0.0001 },
        pricing: [],
      },
    ],
    ['speech', 'openai/tts-1', { other_prices: { per_character: 15e-6 }, max_characters: 4_096, pricing: [] }],
    ['rerank', 'cohere/rerank-v3.5', { other_prices: { per_query: 0.002 }, max_inputs: 1_000 }],
    ['moderation', 'openai/omni-moderation-latest', { input_price: 0, output_price: 0 }],
  ]
  test.each(shown)('1.21: /v1/models/%s shows what matters of %s', async (path, id, facts) => {
    const entry = (await list(path)).data.find((one: Body) => one.id === id)
    expect(entry).toMatchObject(facts)
    // Flat prices are those of tokens: where none are billed there are none.
    expect('input_price' in entry).toBe(entry.pricing.length > 0)
    expect(all.find((one) => one.id === id)).toMatchObject({ ...facts, api: path })
  })
  test('1.21: chat entries have no prices of other units', () => {
    expect(unlike(chat, (entry) => !('other_prices' in entry) && !('voices' in entry))).toEqual([])
  })
  test('15.7, 15.8: /v1/models/managed is not scoped to the organization: policies whose models it has not approved are included', async () => {
    const approve = (approved_models: string[] | null) =>
      fetch(`${world.router.manageUrl}/v1/manage/org/models`, {
        method: 'PUT',
        headers: { 'x-api-key': testKey, 'content-type': 'application/json' },
        body: JSON.stringify({ approved_models }),
      })
    await approve(['google/gemini-3.5-flash'])
    expect(ids((await list('managed')).data)).toEqual(['both', 'both@eu'])
    expect(ids((await list('')).data)).not.toContain('both')
    await approve(null)
  })
  test('15.10: a managed policy none of whose providers has a secret cannot be called and is not listed', async () => {
    expect(ids((await list('managed')).data)).toEqual(['both', 'both@eu'])
    expect((await ask('unset')).status).toBe(404)
  })
  test('15.9: ids suffixed @eu route only through EU-hosted providers', async () => {
    expect((await ask('both@eu')).headers.get('x-router-model')).toBe('openai/strict')
    expect(chat.find(({ id }) => id === 'both@eu')).toMatchObject({ geolocation: 'eu' })
  })
  test('15.9: an @eu policy without an EU-hosted target cannot be made', async () => {
    const answer = await world.router.call('/v1/manage/policy', { id: 'none@eu', targets: ['openai/loose'] })
    expect(answer.status).toBe(400)
  })
  test.each(['both', 'mine'])('2.43: the entry of a policy (%s) says what holds whichever target serves', (name) => {
    expect(chat.find(({ id }) => id === name)).toMatchObject({
      ...{ data_retention: true, data_retention_days: 30, geolocation: 'global' },
      ...{ context_window: 900, supports_vision: false, pricing: [{ input_price: 2e-6 }] },
    })
  })
  test('2.43: the entry of an alias says what holds of its target', () => {
    const { id: _, ...target } = chat.find(({ id }) => id === 'openai/loose')
    expect(chat.find(({ id }) => id === 'quick')).toMatchObject({
      ...target,
      description: expect.any(String),
      model_canonical_name: expect.any(String),
    })
  })
  test.each(kinds)('15.17: a model of the modality %s is not called as a chat model', async (api) => {
    const model = `openai/a-${api}`
    for (const path of ['/v1/chat/completions', '/v1/responses', '/v1/messages']) {
      const { status, body, sent } = await world.ask(path, {
        model,
        input: 'Hi',
        max_tokens: 9,
        messages: [{ role: 'user', content: 'Hi' }],
      })
      expect([status, body.error.param, sent]).toEqual([400, 'model', undefined])
    }
  })
})
