import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider, type Received } from '../helpers/provider.ts'
import { type TestRouter, testRouter } from '../helpers/router.ts'

// How each provider is asked to search, how it replies, and the price of its searches.

/** USD per search in this test, so that every provider has a price of its own to be found in the bill. */
const perSearch = 0.25
const url = 'https://example.com/ruby'
const place = { city: 'Oslo', country: 'NO' }
const chunk = (delta: object, finish_reason: string | null = null) => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason }],
})
const annotation = { type: 'url_citation', url_citation: { url, title: 'Ruby', start_index: 0, end_index: 4 } }
const completion = (model: string, usage: object, message: object = { annotations: [annotation] }) => ({
  id: 'c1',
  object: 'chat.completion',
  created: 1,
  model,
  choices: [{ index: 0, message: { role: 'assistant', content: 'Ruby is old.', ...message }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, ...usage },
})
const chunks = (model: string, usage: object, extra: object = { annotations: [annotation] }) => [
  { ...chunk({ role: 'assistant', content: 'Ruby is old.' }), model },
  { ...chunk(extra), model },
  { ...chunk({}, 'stop'), model },
  { ...chunk({}), model, choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, ...usage } },
]

/** Messages: a search, its results, and a cited text. */
const searchBlocks = [
  { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'ruby' } },
  {
    type: 'web_search_tool_result',
    tool_use_id: 'srvtoolu_1',
    content: [{ type: 'web_search_result', url, title: 'Ruby', encrypted_content: 'eA==' }],
  },
]
const citation = { type: 'web_search_result_location', url, title: 'Ruby', cited_text: 'Ruby', encrypted_index: 'eA==' }
const messageUsage = { input_tokens: 10, output_tokens: 5, server_tool_use: { web_search_requests: 2 } }
const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-haiku-4-5' }

/** Gemini: one chunk has the whole result. */
const grounded = (modelVersion: string) => ({
  candidates: [
    {
      content: { role: 'model', parts: [{ text: 'Ruby is old.' }] },
      finishReason: 'STOP',
      groundingMetadata: {
        webSearchQueries: ['ruby', 'ruby age'],
        groundingChunks: [{ web: { uri: url, title: 'Ruby' } }],
        groundingSupports: [{ segment: { endIndex: 4, text: 'Ruby' }, groundingChunkIndices: [0] }],
      },
    },
  ],
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
  modelVersion,
  responseId: 'r1',
})

/** Responses: a search, and a message whose text is annotated. */
const searchItem = {
  id: 'ws_1',
  type: 'web_search_call',
  status: 'completed',
  action: { type: 'search', query: 'ruby' },
}
const flat = { type: 'url_citation', url, title: 'Ruby', start_index: 0, end_index: 4 }
const messageItem = {
  id: 'item_1',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'Ruby is old.', annotations: [flat] }],
}
const response = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  model: 'gpt-5.2',
  status: 'completed',
  output: [searchItem, messageItem],
  usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
}

type Row = {
  model: string
  /** The client's fields, beside the model and one message. */
  asks: JsonObject
  /** Of the body that the provider gets; a missing member must be missing. */
  sends: { [member: string]: unknown }
  dropped: string[]
  whole: object
  events: object[]
  searches: number
}

const tool = (options: JsonObject): JsonObject => ({ tools: [{ type: 'web_search', ...options }] })
const everything = { max_uses: 3, allowed_domains: ['example.com'], user_location: place, search_context_size: 'low' }
const nested = { type: 'approximate', approximate: place }
const perplexed = { search_results: [{ url, title: 'Ruby' }] }

const rows: { [provider: string]: Row } = {
  'openai by its option': {
    model: 'openai/gpt-4o-search-preview',
    asks: { web_search_options: { search_context_size: 'low', user_location: nested } },
    sends: { web_search_options: { search_context_size: 'low', user_location: nested }, tools: undefined },
    dropped: [],
    whole: completion('gpt-4o-search-preview', {}),
    events: chunks('gpt-4o-search-preview', {}),
    searches: 1,
  },
  'openai by the tool': {
    model: 'openai/gpt-4o-search-preview',
    asks: tool(everything),
    sends: { web_search_options: { search_context_size: 'low', user_location: nested }, tools: undefined },
    dropped: ['tools.web_search.max_uses', 'tools.web_search.allowed_domains'],
    whole: completion('gpt-4o-search-preview', {}),
    events: chunks('gpt-4o-search-preview', {}),
    searches: 1,
  },
  'openai-responses': {
    model: 'openai-responses/gpt-5.2',
    asks: tool(everything),
    sends: {
      tools: [
        {
          type: 'web_search',
          search_context_size: 'low',
          user_location: { type: 'approximate', ...place },
          filters: { allowed_domains: ['example.com'] },
        },
      ],
      max_tool_calls: 3,
    },
    dropped: [],
    whole: response,
    events: [
      { type: 'response.created', response: { ...response, status: 'in_progress', output: [], usage: null } },
      { type: 'response.output_item.added', output_index: 0, item: { ...searchItem, status: 'in_progress' } },
      { type: 'response.output_item.done', output_index: 0, item: searchItem },
      { type: 'response.output_item.added', output_index: 1, item: { ...messageItem, content: [] } },
      {
        type: 'response.output_text.delta',
        output_index: 1,
        content_index: 0,
        item_id: 'item_1',
        delta: 'Ruby is old.',
      },
      {
        type: 'response.output_text.annotation.added',
        output_index: 1,
        content_index: 0,
        annotation_index: 0,
        item_id: 'item_1',
        annotation: flat,
      },
      { type: 'response.output_item.done', output_index: 1, item: messageItem },
      { type: 'response.completed', response },
    ],
    searches: 1,
  },
  anthropic: {
    model: 'anthropic/claude-haiku-4-5',
    asks: tool({ ...everything, allowed_domains: ['https://example.com'] }),
    sends: {
      tools: [
        {
          type: 'web_search_20250305',
          name: 'web_search',
          max_uses: 3,
          allowed_domains: ['example.com'],
          user_location: { type: 'approximate', ...place },
        },
      ],
    },
    dropped: ['tools.web_search.search_context_size'],
    whole: {
      ...message,
      content: [...searchBlocks, { type: 'text', text: 'Ruby is old.', citations: [citation] }],
      stop_reason: 'end_turn',
      usage: messageUsage,
    },
    events: [
      { type: 'message_start', message: { ...message, content: [], usage: { input_tokens: 10, output_tokens: 1 } } },
      ...searchBlocks.flatMap((content_block, index) => [
        { type: 'content_block_start', index, content_block },
        { type: 'content_block_stop', index },
      ]),
      { type: 'content_block_start', index: 2, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 2, delta: { type: 'citations_delta', citation } },
      { type: 'content_block_delta', index: 2, delta: { type: 'text_delta', text: 'Ruby is old.' } },
      { type: 'content_block_stop', index: 2 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: messageUsage },
      { type: 'message_stop' },
    ],
    searches: 2,
  },
  'google, billed by the query': {
    model: 'google/gemini-3.5-flash',
    asks: tool(everything),
    sends: { tools: [{ googleSearch: {} }] },
    dropped: [
      'tools.web_search.max_uses',
      'tools.web_search.allowed_domains',
      'tools.web_search.user_location',
      'tools.web_search.search_context_size',
    ],
    whole: grounded('gemini-3.5-flash'),
    events: [grounded('gemini-3.5-flash')],
    searches: 2,
  },
  'google, billed by the prompt': {
    model: 'google/gemini-2.5-flash',
    asks: tool({}),
    sends: { tools: [{ googleSearch: {} }] },
    dropped: [],
    whole: grounded('gemini-2.5-flash'),
    events: [grounded('gemini-2.5-flash')],
    searches: 1,
  },
  perplexity: {
    model: 'perplexity/sonar',
    asks: { web_search_options: { search_context_size: 'low', user_location: nested } },
    sends: { web_search_options: { search_context_size: 'low', user_location: place } },
    dropped: [],
    whole: { ...completion('sonar', {}, { content: 'Ruby[1] is old.' }), ...perplexed },
    events: chunks('sonar', {}, {})
      .slice(1)
      .map((one, index) => ({ ...one, ...perplexed, ...(index === 0 && chunk({ content: 'Ruby[1] is old.' })) })),
    searches: 1,
  },
  openrouter: {
    model: 'openrouter/openai/gpt-4o',
    asks: { web_search_options: { user_location: nested } },
    sends: {
      plugins: [{ id: 'web', user_location: { type: 'approximate', ...place } }],
      web_search_options: undefined,
    },
    dropped: [],
    whole: completion('openai/gpt-4o', { server_tool_use_details: { web_search_requests: 2 } }),
    events: chunks('openai/gpt-4o', { server_tool_use_details: { web_search_requests: 2 } }),
    searches: 2,
  },
}

/** Providers that cannot search, with a model of each. */
const unable = {
  mistral: 'mistral-large-latest',
  groq: 'openai/gpt-oss-120b',
  deepseek: 'deepseek-chat',
  together: 'm',
  fireworks: 'm',
  cohere: 'command-a-03-2025',
  ollama: 'm',
}

let provider: LoopbackProvider
let router: TestRouter
let requested: Row | undefined
beforeAll(async () => {
  provider = await loopbackProvider((request, answer) => speak(request, answer))
  const models = Object.values(rows).map(({ model }) => model)
  const slugs = new Set([...models.map((model) => model.slice(0, model.indexOf('/'))), ...Object.keys(unable)])
  const priced = (slug: string) =>
    models
      .filter((model) => model.startsWith(`${slug}/`))
      .map((model) => [
        model.slice(slug.length + 1),
        {
          api: 'chat',
          // Models that were recorded may be shut down meanwhile.
          shutdown: '9999-12-31',
          pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0 }],
          other_prices: { web_search_per_call: perSearch },
        },
      ])
  router = await testRouter({
    providers: Object.fromEntries(
      [...slugs].map((slug) => [
        slug,
        {
          base_url: provider.url,
          ...(slug !== 'ollama' && { secret: '${UPSTREAM_KEY}' }),
          unknown_models: 'pass',
          models: Object.fromEntries(priced(slug)),
        },
      ]),
    ),
    env: { UPSTREAM_KEY: 'k' },
  })
})
afterAll(async () => {
  await router.end()
  await provider.close()
})

function speak(request: Received, answer: ServerResponse): void {
  const isStream = request.body.stream === true || request.path.includes('stream')
  if (!requested) answerJson(answer, plain[request.path] ?? completion('m', {}))
  else if (!isStream) answerJson(answer, requested.whole)
  else streamEvents(requested.events, answer)
}

function streamEvents(events: object[], answer: ServerResponse): void {
  beginStream(answer)
  for (const event of events) {
    const name = 'type' in event ? `event: ${event.type}\n` : ''
    answer.write(`${name}data: ${JSON.stringify(event)}\n\n`)
  }
  answer.end('choices' in (events[0] ?? {}) ? 'data: [DONE]\n\n' : '')
}

/** The shortest answers of formats that are not Chat Completions, by path. */
const plain: { [path: string]: object } = {
  '/v2/chat': {
    id: 'c1',
    finish_reason: 'COMPLETE',
    message: { role: 'assistant', content: [{ type: 'text', text: 'No.' }] },
  },
  '/api/chat': { model: 'm', message: { role: 'assistant', content: 'No.' }, done: true, done_reason: 'stop' },
}

const messages = [{ role: 'user', content: 'How old is Ruby?' }]

describe.each(Object.entries(rows))('a search by %s', (_, row) => {
  test('is requested in its own form; unsupported options are reported', async () => {
    requested = row
    const { status, headers } = await router.call('/v1/chat/completions', { model: row.model, messages, ...row.asks })
    expect(status).toBe(200)
    const dropped = headers.get('x-router-dropped')?.split(/,\s*/) ?? []
    expect(dropped.sort()).toEqual(row.dropped.toSorted())
    const { body } = provider.received.at(-1) as Received
    for (const [member, value] of Object.entries(row.sends)) expect(body[member], member).toEqual(value)
  })

  test('is answered with citations, counted and priced', async () => {
    requested = row
    const called = await router.call('/v1/chat/completions', { model: row.model, messages, ...row.asks })
    const { choices, usage } = (await called.json()) as ReturnType<typeof completion> & { usage: { cost: number } }
    const answer = choices[0]?.message as { annotations?: (typeof annotation)[] } | undefined
    expect(cited(answer?.annotations)).toEqual([url])
    expect(usage.cost).toBeCloseTo(row.searches * perSearch, 9)
  })

  test('is answered with citations, counted and priced when streamed', async () => {
    requested = row
    const stream = await router.openai().chat.completions.create({
      model: row.model,
      messages: [{ role: 'user', content: 'How old is Ruby?' }],
      ...(row.asks as object),
      stream: true,
      stream_options: { include_usage: true },
    })
    const urls: string[] = []
    let cost: unknown
    for await (const { choices, usage } of stream) {
      const delta = choices[0]?.delta as { annotations?: (typeof annotation)[] } | undefined
      urls.push(...cited(delta?.annotations))
      if (usage) cost = (usage as unknown as { cost: unknown }).cost
    }
    expect(urls).toEqual([url])
    expect(cost).toBeCloseTo(row.searches * perSearch, 9)
  })
})

describe.each(Object.entries(unable))('%s, which cannot search,', (slug, model) => {
  const body = { model: `${slug}/${model}`, messages, ...tool({ max_uses: 2 }) }

  test('reports the loss, and calls without it', async () => {
    requested = undefined
    const { headers } = await router.call('/v1/chat/completions', body)
    expect(headers.get('x-router-dropped')).toContain('tools.web_search')
    expect(JSON.stringify(provider.received.at(-1)?.body)).not.toContain('web_search')
  })

  test('is not called at all in strict mode', async () => {
    const before = provider.received.length
    const refused = await router.call('/v1/chat/completions', body, { 'x-router-strict': 'true' })
    expect(refused.status).toBe(400)
    expect(await refused.text()).toContain('web_search')
    expect(provider.received.length).toBe(before)
  })
})

function cited(annotations: (typeof annotation)[] | undefined): string[] {
  return (annotations ?? []).map((one) => one.url_citation.url)
}
