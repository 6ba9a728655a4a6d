import { afterAll, beforeAll, describe, expect } from 'vitest'
import { eventFaults, responseFaults } from '../../api/open-responses-schema.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { testEach } from '../../helpers/slow.ts'
import { pdf, pixel } from './sdk-conversations.ts'
import { wires } from './sdk-grid.ts'
import { fakeProvider } from './sdk-provider.ts'
import { counted, type FakeProvider, file, type Reply, source, type Wire } from './sdk-wire.ts'
import { responsesWire } from './sdk-wire-responses.ts'

// The published acceptance cases of Open Responses that go over HTTP, behind every format.

// biome-ignore lint/suspicious/noExplicitAny: responses of all shapes.
type Loose = any

const played = new Map<string, FakeProvider>()
let router: TestRouter

beforeAll(async () => {
  for (const wire of wires) played.set(wire.slug, await fakeProvider(wire))
  router = await testRouter({
    providers: Object.fromEntries([...played].map(([slug, { url }]) => [slug, { base_url: url }])),
    env: Object.assign({}, ...wires.map(({ env }) => env)),
  })
})

afterAll(async () => {
  await router.end()
  await Promise.all([...played.values()].map((server) => server.close()))
})

const said = (content: unknown, role = 'user') => ({ type: 'message', role, content })
const weather = {
  type: 'function',
  name: 'get_weather',
  description: 'The current weather at a place',
  parameters: { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] },
}
const called: Reply = { calls: [{ id: 'w1', name: 'get_weather', arguments: { location: 'San Francisco, CA' } }] }
const hello: Reply = { text: 'Hello to you' }
const typesOf = ({ output }: Loose): string[] => output.map(({ type }: Loose) => type)

async function create(body: object): Promise<Loose> {
  const answer = await router.call('/v1/responses', body)
  const response = (await answer.json()) as Loose
  expect([answer.status, response.error ?? null]).toEqual([200, null])
  expect(responseFaults(response)).toEqual([])
  expect(response.completed_at).toEqual(expect.any(Number))
  return response
}

/** The events of a streamed response, each as described, and the response in the last one. */
async function stream(body: object): Promise<{ events: Loose[]; response: Loose }> {
  const answer = await router.call('/v1/responses', { ...body, stream: true })
  const text = await answer.text()
  const events = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => JSON.parse(data))
  expect(events.flatMap(eventFaults)).toEqual([])
  expect(events[0].response).toMatchObject({ status: 'in_progress', usage: null, completed_at: null })
  return { events, response: events.at(-1).response }
}

let cases = 0

/** One case behind every format; the provider replies in these steps. The fast suite has each behind another format. */
function published(
  name: string,
  steps: Reply[],
  run: (wire: Wire, provider: FakeProvider) => Promise<void>,
  columns = wires,
): void {
  describe(name, () => {
    const fast = columns[cases++ % columns.length]
    testEach(
      columns.map((wire) => [wire.dialect, wire] as const),
      { slowIf: ([, wire]) => wire !== fast },
    )('%s', async (_, wire) => {
      const provider = played.get(wire.slug) as FakeProvider
      provider.play(...steps)
      await run(wire, provider)
      expect(provider.done()).toBe(true)
    })
  })
}

published('basic-response', [hello], async ({ models }) => {
  const response = await create({ model: models.plain, input: [said('Say hello in exactly 3 words.')] })
  expect([response.status, typesOf(response)]).toEqual(['completed', ['message']])
})

published('streaming-response', [{ text: '1, 2, 3, 4, 5' }], async ({ models }) => {
  const { events, response } = await stream({ model: models.plain, input: [said('Count from 1 to 5.')] })
  expect(events.filter(({ type }) => type === 'response.output_text.delta').length).toBeGreaterThan(1)
  expect(response).toMatchObject({ status: 'completed', output: [{ content: [{ text: '1, 2, 3, 4, 5' }] }] })
})

published('system-prompt', [hello], async ({ models }, provider) => {
  const input = [said('You are a pirate.', 'system'), said('Say hello.')]
  const response = await create({ model: models.plain, input })
  expect([response.status, typesOf(response)]).toEqual(['completed', ['message']])
  expect(provider.arrived(0).system).toContain('You are a pirate.')
})

const askWeather = { input: [said("What's the weather like in San Francisco?")], tools: [weather] }

published('tool-calling', [called], async ({ models }) => {
  const response = await create({ model: models.plain, ...askWeather })
  expect(typesOf(response)).toContain('function_call')
})

published('tool-calling-streaming', [called], async ({ models }) => {
  const { events, response } = await stream({ model: models.plain, ...askWeather })
  const named = (type: string) => events.filter((event) => event.type === `response.${type}`)
  for (const stage of ['added', 'done']) {
    expect(named(`output_item.${stage}`).some(({ item }) => item.type === 'function_call')).toBe(true)
  }
  expect(named('function_call_arguments.delta').length).toBeGreaterThan(0)
  expect(named('function_call_arguments.done')).toHaveLength(1)
  expect(typesOf(response)).toContain('function_call')
})

published('function-call-roundtrip', [called, hello], async ({ models }, provider) => {
  const tool_choice = { type: 'function', name: 'get_weather' }
  const first = await create({ model: models.plain, ...askWeather, tool_choice })
  const { call_id } = first.output.find(({ type }: Loose) => type === 'function_call')
  const input = [{ type: 'function_call_output', call_id, output: '64 degrees and clear' }]
  const second = await create({ model: models.plain, previous_response_id: first.id, input })
  expect([second.status, typesOf(second)]).toEqual(['completed', ['message']])
  expect(second.previous_response_id).toBe(first.id)
  expect(provider.arrived(1).turns.at(-1)?.results).toMatchObject([{ text: expect.stringContaining('64 degrees') }])
})

published('image-input', [hello], async ({ models }, provider) => {
  const image = { type: 'input_image', image_url: `data:image/png;base64,${pixel}` }
  const input = [said([{ type: 'input_text', text: 'What do you see?' }, image])]
  const response = await create({ model: models.seer ?? models.plain, input })
  expect([response.status, typesOf(response)]).toEqual(['completed', ['message']])
  expect(provider.arrived(0).turns.at(-1)?.images).toEqual([pixel])
})

published('file-input', [hello], async ({ models, lacks }, provider) => {
  const file = {
    type: 'input_file',
    filename: 'fixture.pdf',
    file_data: `data:application/pdf;base64,${pdf}`,
  }
  const response = await create({
    model: models.plain,
    input: [said([{ type: 'input_text', text: 'Its title?' }, file])],
  })
  expect([response.status, typesOf(response)]).toEqual(['completed', ['message']])
  expect(provider.arrived(0).turns.at(-1)?.files).toBe(lacks.file ? 0 : 1)
})

published('multi-turn', [hello], async ({ models }, provider) => {
  const input = [said('My name is Alice.'), said('Hello Alice!', 'assistant'), said('What is my name?')]
  const response = await create({ model: models.plain, input })
  expect([response.status, typesOf(response)]).toEqual(['completed', ['message']])
  expect(provider.arrived(0).turns.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
})

published('previous-response-id', [hello, hello], async ({ models }, provider) => {
  const first = await create({ model: models.plain, input: 'Remember this code word: papaya.' })
  const body = { model: models.plain, previous_response_id: first.id, input: 'Which code word?' }
  const second = await create(body)
  expect([second.status, typesOf(second)]).toEqual(['completed', ['message']])
  // Where the provider keeps its own responses, it is told the id of the first one.
  expect(JSON.stringify(provider.received[1]?.body)).toMatch(/papaya|"previous_response_id":"resp_/)
})

published(
  'offline-web-search',
  [{ search: 'OpenResponses', text: source.quote, cited: true }],
  async ({ models }) => {
    const response = await create({
      model: models.searcher,
      input: 'Find the most relevant cached result for OpenResponses.',
      tools: [{ type: 'web_search', external_web_access: false }],
      tool_choice: { type: 'web_search' },
      include: ['web_search_call.action.sources'],
    })
    expect(typesOf(response)).toContain('web_search_call')
  },
  wires.filter(({ lacks }) => !lacks.search),
)

const askFiles = {
  input: 'Search the configured vector store for relevant content and summarize one result.',
  tools: [{ type: 'file_search', vector_store_ids: ['vs_ruby'] }],
  tool_choice: { type: 'file_search' },
  include: ['file_search_call.results'],
}
const searched: Reply = { fileSearch: 'relevant content', text: file.text, cited: true }
const found = { type: 'file_search_call', status: 'completed', queries: ['relevant content'], results: [file] }

// Vector stores are kept by the provider of the Responses API alone.
const keepers = [responsesWire]

published(
  'file-search',
  [searched],
  async ({ models }, provider) => {
    const response = await create({ model: models.plain, ...askFiles })
    expect(typesOf(response)).toEqual(['file_search_call', 'message'])
    expect(response.output[0]).toMatchObject(found)
    expect(response.output[1].content[0].annotations).toMatchObject([{ type: 'file_citation', file_id: file.file_id }])
    expect(provider.received[0]?.body).toMatchObject(askFiles)
    // Each search has a price of its own.
    expect(response.usage.cost).toBeCloseTo((counted.input * 2 + counted.output * 8) / 1e6 + 0.0025, 9)
  },
  keepers,
)

published(
  'file-search in a stream',
  [searched],
  async ({ models }) => {
    const { events, response } = await stream({ model: models.plain, ...askFiles })
    for (const stage of ['in_progress', 'searching', 'completed']) {
      expect(events.filter(({ type }) => type === `response.file_search_call.${stage}`)).toHaveLength(1)
    }
    expect(response.output[0]).toMatchObject(found)
  },
  keepers,
)

published(
  'file-search where there are no vector stores',
  [],
  async ({ models }, provider) => {
    const refused = await router.call(
      '/v1/responses',
      { model: models.plain, ...askFiles },
      { 'x-router-strict': 'true' },
    )
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('tools.file_search')])
    expect(provider.received).toEqual([])
  },
  // Behind the ordinary prefix of OpenAI are its vector stores as well.
  wires.filter((wire) => !keepers.includes(wire) && wire.slug !== 'openai'),
)
