import Anthropic from '@anthropic-ai/sdk'
import { expect } from 'vitest'
import { pause, within } from '../../helpers/provider.ts'
import { testKey } from '../../helpers/router.ts'
import {
  citySchema,
  conversations,
  expectGreeted,
  expectLooped,
  expectTakenOver,
  expectThoughtSent,
  greeting,
  offered,
  pdf,
  pixel,
  placeSchema,
  resultOf,
} from './sdk-conversations.ts'
import { carriedOrReported, elsewhere, row, type Way } from './sdk-grid.ts'
import { counted, source, type Wire } from './sdk-wire.ts'

type Body = Omit<Anthropic.MessageCreateParamsNonStreaming, 'model'>

const tools = offered.map(({ name, description }): Anthropic.Tool => ({ name, description, input_schema: citySchema }))
const max_tokens = 2_000
const hello: Body = { max_tokens, system: 'Be brief.', messages: [{ role: 'user', content: 'Hello there' }] }

const clientOf = ({ router, fetch }: Way) =>
  new Anthropic({ baseURL: router.url, apiKey: testKey, maxRetries: 0, fetch })
const create = (way: Way, body: Body, model = way.wire.models.plain) =>
  clientOf(way).messages.create({ model, ...body })
const stream = (way: Way, body: Body, model = way.wire.models.plain) => {
  const { stream: _whole, ...rest } = body
  return clientOf(way)
    .messages.stream({ model, ...rest })
    .finalMessage()
}

/** `@anthropic-ai/sdk`, Messages. */
export function anthropicRows(wayTo: (wire: Wire) => Way): void {
  row('anthropic messages.create', conversations.hello, wayTo, async (way) => {
    const message = await create(way, hello)
    expect(message).toMatchObject({ type: 'message', role: 'assistant', model: way.wire.models.plain })
    expect(message).toMatchObject({ stop_reason: 'end_turn', content: [{ type: 'text', text: greeting }] })
    expect(message.usage).toMatchObject({ input_tokens: counted.input, output_tokens: counted.output })
    expectGreeted(way)
  })

  row('anthropic messages.stream and its events', conversations.hello, wayTo, async (way) => {
    const deltas: string[] = []
    const costs: unknown[] = []
    const running = clientOf(way).messages.stream({ model: way.wire.models.plain, ...hello })
    running.on('text', (delta) => deltas.push(delta))
    running.on('streamEvent', (event) => {
      if (event.type === 'message_delta') costs.push((event.usage as { cost?: number }).cost)
    })
    const message = await running.finalMessage()
    expect(deltas.length).toBeGreaterThanOrEqual(3)
    expect(deltas.join('')).toBe(greeting)
    // Local models have no price.
    expect(costs).toEqual([expect.any(Number)])
    expect(message).toMatchObject({ stop_reason: 'end_turn', content: [{ type: 'text', text: greeting }] })
    expect(message.usage).toMatchObject({ input_tokens: counted.input, output_tokens: counted.output })
    expectGreeted(way)
  })

  for (const [name, [reply]] of Object.entries(conversations)) {
    if (!reply) continue
    row(`anthropic messages.stream = create: ${name}`, [reply, reply], wayTo, async (way) => {
      const body = { max_tokens, messages: hello.messages, tools }
      const [whole, streamed] = [await create(way, body), await stream(way, body)]
      // Gemini tells what it searched for when its answer is written: then the query stands after it.
      const late = name === 'search' && way.wire.dialect === 'gemini'
      expect(steady(late ? searchesFirst(streamed) : streamed)).toEqual(steady(whole))
    })
  }

  row('anthropic messages: JSON schema', conversations.json, wayTo, async (way) => {
    const format = { type: 'json_schema' as const, schema: placeSchema }
    const body = { max_tokens, messages: hello.messages, output_config: { format } }
    const message = await clientOf(way).messages.parse({ model: way.wire.models.plain, ...body })
    expect(message.content).toMatchObject([{ type: 'text', text: '{"city":"Paris","sunny":true}' }])
    expect(way.provider.arrived(0).hasSchema).toBe(true)
  })

  for (const [how, ask] of Object.entries({ create, stream })) conversationRows(how, ask, wayTo)
  mediaRows(wayTo)

  row('anthropic messages: begun with another maker', [{ text: greeting }], wayTo, async (way) => {
    const first = wayTo(elsewhere(way.wire))
    first.provider.play(...conversations.thinking.slice(0, 1))
    const thinking = { type: 'enabled' as const, budget_tokens: 1_024 }
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'Weather?' }]
    const { content } = await stream(first, { max_tokens, messages, tools, thinking }, first.wire.models.thinker)
    const id = content.flatMap((block) => (block.type === 'tool_use' ? block.id : []))[0] ?? ''
    const result = { type: 'tool_result' as const, tool_use_id: id, content: 'sunny' }
    messages.push({ role: 'assistant', content }, { role: 'user', content: [result] })
    await stream(way, { max_tokens, messages, tools, thinking }, way.wire.models.thinker)
    expectTakenOver(way)
  })

  row('anthropic messages.countTokens', [], wayTo, async (way) => {
    const body = { model: way.wire.models.plain, system: 'Be brief.', messages: hello.messages, tools }
    const count = await clientOf(way).messages.countTokens(body)
    expect(count.input_tokens).toBeGreaterThan(10)
    const callsNoProvider = way.provider.received.length === 0
    expect('estimated' in count).toBe(callsNoProvider)
    return callsNoProvider ? 'ok (estimate)' : 'ok'
  })

  row('anthropic messages: abort', [], wayTo, async (way) => {
    way.provider.play('stay')
    const running = clientOf(way).messages.stream({ model: way.wire.models.plain, ...hello })
    await running.emitted('text')
    running.abort()
    await expect(running.finalMessage()).rejects.toBeInstanceOf(Anthropic.APIUserAbortError)
    await within(5_000, 'leaving the provider', way.provider.received[0]?.left ?? pause(0))
  })
}

function conversationRows(how: string, ask: typeof create | typeof stream, wayTo: (wire: Wire) => Way): void {
  row(`anthropic messages.${how}: tools loop`, conversations.loop, wayTo, async (way) => {
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'Weather and time?' }]
    const last = await loop(messages, () => ask(way, { max_tokens, messages, tools }))
    expect(last.content).toMatchObject([{ type: 'text', text: 'Sunny at 12:00.' }])
    expectLooped(way)
  })

  row(`anthropic messages.${how}: thinking goes back`, conversations.thinking, wayTo, async (way) => {
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'Weather?' }]
    const thinking = { type: 'enabled' as const, budget_tokens: 1_024 }
    const model = way.wire.models.thinker
    const next = () => ask(way, { max_tokens, messages, tools, thinking }, model)
    const last = await loop(messages, next)
    const thoughts = last.content.flatMap((block) => (block.type === 'thinking' ? block.thinking : []))
    expect(thoughts).toEqual(['That is enough.'])
    messages.push({ role: 'assistant', content: last.content }, { role: 'user', content: 'Thanks' })
    await next()
    expectThoughtSent(way)
  })

  row(`anthropic messages.${how}: web search, citations`, conversations.search, wayTo, async (way) => {
    const search = { type: 'web_search_20250305' as const, name: 'web_search' as const }
    const body = { max_tokens, messages: hello.messages, tools: [search] }
    const { content } = await ask(way, body, way.wire.models.searcher)
    const texts = content.flatMap((block) => (block.type === 'text' ? block : []))
    expect(texts.map(({ text }) => text).join('')).toBe(source.quote)
    const citations = texts.flatMap((text) => text.citations ?? [])
    if (!way.wire.lacks.citations) {
      expect(citations).toMatchObject([{ type: 'web_search_result_location', url: source.url }])
    }
    const searched = carriedOrReported(way, 'search', way.provider.arrived(0).searches, /web_search/)
    if (!searched) expect(content.map(({ type }) => type)).toContain('web_search_tool_result')
    return searched
  })
}

function mediaRows(wayTo: (wire: Wire) => Way): void {
  row('anthropic messages: images', conversations.hello, wayTo, async (way) => {
    const image = { type: 'base64' as const, media_type: 'image/png' as const, data: pixel }
    const content: Anthropic.ContentBlockParam[] = [
      { type: 'text', text: 'What is this?' },
      { type: 'image', source: image },
    ]
    await create(way, { max_tokens, messages: [{ role: 'user', content }] }, way.wire.models.seer)
    expect(way.provider.arrived(0).turns).toMatchObject([{ role: 'user', text: 'What is this?', images: [pixel] }])
  })

  row('anthropic messages: documents', conversations.hello, wayTo, async (way) => {
    const document = { type: 'base64' as const, media_type: 'application/pdf' as const, data: pdf }
    const content: Anthropic.ContentBlockParam[] = [
      { type: 'document', source: document },
      { type: 'text', text: 'Sum it up.' },
    ]
    await create(way, { max_tokens, messages: [{ role: 'user', content }] })
    const [requested] = way.provider.arrived(0).turns
    expect(requested?.text).toContain('Sum it up.')
    return carriedOrReported(way, 'file', requested?.files === 1, /document$/)
  })

  row('anthropic messages: an error of a tool', [{ text: greeting }], wayTo, async (way) => {
    const messages: Anthropic.MessageParam[] = [
      { role: 'user', content: 'Weather?' },
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: 'toolu_abcdefg01', name: 'get_weather', input: { city: 'Paris' } }],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'toolu_abcdefg01', content: 'no connection', is_error: true },
          { type: 'text', text: 'Go on.' },
        ],
      },
    ]
    await create(way, { max_tokens, messages, tools })
    const { turns } = way.provider.arrived(0)
    expect(turns.flatMap(({ results }) => results)).toMatchObject([{ text: expect.stringContaining('no connection') }])
    expect(turns.map(({ text }) => text).join('')).toContain('Go on.')
  })
}

/** Runs the tools until the model has none to call; the messages grow by its replies. */
async function loop(messages: Anthropic.MessageParam[], next: () => Promise<Anthropic.Message>) {
  for (let turn = 0; turn < 5; turn++) {
    const message = await next()
    const calls = message.content.filter((block) => block.type === 'tool_use')
    expect(message.stop_reason).toBe(calls.length > 0 ? 'tool_use' : 'end_turn')
    if (calls.length === 0) return message
    messages.push({ role: 'assistant', content: message.content })
    const results = calls.map(({ id, name, input }): Anthropic.ToolResultBlockParam => {
      expect(input).toHaveProperty('city')
      return { type: 'tool_result', tool_use_id: id, content: resultOf(name) }
    })
    messages.push({ role: 'user', content: results })
  }
  throw new Error('the model never stopped calling')
}

function searchesFirst({ content, ...message }: Anthropic.Message): Anthropic.Message {
  const isText = ({ type }: Anthropic.ContentBlock) => type === 'text'
  return { ...message, content: [...content.filter((block) => !isText(block)), ...content.filter(isText)] }
}

/**
 * A message without its id and those of signed items, which are new for each, without members that the SDK adds, and
 * without the cost: of the last counts of a stream the SDK keeps only those it knows.
 */
function steady(message: Anthropic.Message): unknown {
  const own = ['parsed_output', 'cost']
  const text = JSON.stringify({ ...message, id: '' }, (name, value) => (own.includes(name) ? undefined : value))
  const opened = text.replace(/router1\.([\w-]+)/g, (_, signature) => {
    const words = Buffer.from(signature, 'base64url').toString()
    return JSON.stringify(words.replace(/(rs|ws)_\d+/, '$1')).slice(1, -1)
  })
  return JSON.parse(opened)
}
