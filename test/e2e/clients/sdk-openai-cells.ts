import OpenAI from 'openai'
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

type Body = OpenAI.Responses.ResponseCreateParamsNonStreaming
type Item = OpenAI.Responses.ResponseInputItem

const tools = offered.map(
  ({ name, description }): OpenAI.Responses.FunctionTool => ({
    type: 'function',
    name,
    description,
    parameters: citySchema,
    strict: true,
  }),
)

/** `openai` SDK, Responses. */
export function openaiRows(wayTo: (wire: Wire) => Way): void {
  const clientOf = ({ router, fetch }: Way) =>
    new OpenAI({ baseURL: `${router.url}/v1`, apiKey: testKey, maxRetries: 0, fetch })
  const create = (way: Way, body: Omit<Body, 'model'>, model = way.wire.models.plain) =>
    clientOf(way).responses.create({ model, ...body })
  const stream = async (way: Way, body: Omit<Body, 'model'>, model = way.wire.models.plain) => {
    const { stream: _whole, ...rest } = body
    return (await clientOf(way)
      .responses.stream({ model, ...rest })
      .finalResponse()) as OpenAI.Responses.Response
  }
  const both = { create, stream }
  const hello = { instructions: 'Be brief.', input: 'Hello there' }

  row('openai responses.create', conversations.hello, wayTo, async (way) => {
    const response = await create(way, hello)
    expect(response).toMatchObject({ object: 'response', status: 'completed', model: way.wire.models.plain })
    expect(response.output_text).toBe(greeting)
    expectUsage(response.usage)
    expectGreeted(way)
  })

  row('openai responses.create, stream: true', conversations.hello, wayTo, async (way) => {
    const events: OpenAI.Responses.ResponseStreamEvent[] = []
    const body = { model: way.wire.models.plain, ...hello, stream: true as const }
    for await (const event of await clientOf(way).responses.create(body)) events.push(event)
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))
    const words = events.flatMap((event) => (event.type === 'response.output_text.delta' ? event.delta : []))
    expect(words.length).toBeGreaterThanOrEqual(3)
    expect(words.join('')).toBe(greeting)
    const last = events.at(-1)
    if (last?.type !== 'response.completed') throw new Error(`ended with ${last?.type}`)
    expect(last.response.model).toBe(way.wire.models.plain)
    expectUsage(last.response.usage)
    expectGreeted(way)
  })

  row('openai responses.stream = create', [...conversations.search, ...conversations.search], wayTo, async (way) => {
    const body = { input: 'Hello there' }
    const [whole, streamed] = [await create(way, body), await stream(way, body)]
    expect(steady(streamed.output)).toEqual(steady(whole.output))
    expect(streamed.usage).toEqual(whole.usage)
    expect(streamed.status).toBe(whole.status)
  })

  row('openai responses.parse', conversations.json, wayTo, async (way) => {
    const format = { type: 'json_schema' as const, name: 'place', strict: true, schema: placeSchema }
    const body = { model: way.wire.models.plain, input: 'Where?', text: { format } }
    const response = await clientOf(way).responses.parse(body)
    expect(response.output_parsed).toEqual({ city: 'Paris', sunny: true })
    expect(way.provider.arrived(0).hasSchema).toBe(true)
  })

  for (const [how, ask] of Object.entries(both)) {
    row(`openai responses.${how}: tools loop`, conversations.loop, wayTo, async (way) => {
      const input: Item[] = [{ role: 'user', content: 'Weather and time?' }]
      const last = await loop((items) => ask(way, { input: items, tools }), input)
      expect(last.output_text).toBe('Sunny at 12:00.')
      expectLooped(way)
    })

    row(`openai responses.${how}: thoughts go back`, conversations.thinking, wayTo, async (way) => {
      const body = {
        tools,
        store: false,
        include: ['reasoning.encrypted_content' as const],
        reasoning: { effort: 'medium' as const, summary: 'auto' as const },
      }
      const model = way.wire.models.thinker
      const input: Item[] = [{ role: 'user', content: 'Weather?' }]
      const last = await loop((items) => ask(way, { ...body, input: items }, model), input)
      expect(last.output_text).toBe('It is sunny.')
      const thoughts = last.output.flatMap((item) =>
        item.type === 'reasoning' ? item.summary.map(({ text }) => text) : [],
      )
      expect(thoughts).toEqual(['That is enough.'])
      input.push(...(last.output as Item[]), { role: 'user', content: 'Thanks' })
      await ask(way, { ...body, input }, model)
      expectThoughtSent(way)
    })

    row(`openai responses.${how}: web search, citations`, conversations.search, wayTo, async (way) => {
      const body = { input: 'Which Ruby?', tools: [{ type: 'web_search' as const }] }
      const response = await ask(way, body, way.wire.models.searcher)
      expect(response.output_text).toBe(source.quote)
      const searched = carriedOrReported(way, 'search', way.provider.arrived(0).searches, /web_search/)
      const notes = response.output.flatMap((item) => {
        return item.type === 'message'
          ? item.content.flatMap((part) => ('annotations' in part ? part.annotations : []))
          : []
      })
      if (!way.wire.lacks.citations) {
        expect(notes).toMatchObject([
          { type: 'url_citation', url: source.url, start_index: 0, end_index: source.quote.length },
        ])
      }
      // What was looked for comes before what was found.
      const order = response.output.map(({ type }) => type).filter((type) => type !== 'reasoning')
      if (!searched) expect(order).toEqual(['web_search_call', 'message'])
      return searched
    })
  }

  row('openai responses: images', conversations.hello, wayTo, async (way) => {
    const image_url = `data:image/png;base64,${pixel}`
    const content: OpenAI.Responses.ResponseInputContent[] = [
      { type: 'input_text', text: 'What is this?' },
      { type: 'input_image', image_url, detail: 'auto' },
    ]
    await create(way, { input: [{ role: 'user', content }] }, way.wire.models.seer)
    expect(way.provider.arrived(0).turns).toMatchObject([{ role: 'user', text: 'What is this?', images: [pixel] }])
  })

  row('openai responses: file input', conversations.hello, wayTo, async (way) => {
    const file_data = `data:application/pdf;base64,${pdf}`
    const content: OpenAI.Responses.ResponseInputContent[] = [
      { type: 'input_text', text: 'Sum it up.' },
      { type: 'input_file', filename: 'a.pdf', file_data },
    ]
    await create(way, { input: [{ role: 'user', content }] })
    const [requested] = way.provider.arrived(0).turns
    expect(requested?.text).toContain('Sum it up.')
    return carriedOrReported(way, 'file', requested?.files === 1, /input_file$/)
  })

  row('openai responses: multi-turn by items', [...conversations.hello, ...conversations.hello], wayTo, async (way) => {
    const input: Item[] = [{ role: 'user', content: 'Hello there' }]
    const first = await stream(way, { input })
    input.push(...(first.output as Item[]), { role: 'user', content: 'Again' })
    await create(way, { input })
    expect(way.provider.arrived(1).turns).toMatchObject([
      { role: 'user', text: 'Hello there' },
      { role: 'assistant', text: greeting },
      { role: 'user', text: 'Again' },
    ])
  })

  stateRows(create, stream, wayTo)

  row('openai responses: begun with another maker', [{ text: greeting }], wayTo, async (way) => {
    const first = wayTo(elsewhere(way.wire))
    first.provider.play(...conversations.thinking.slice(0, 1))
    const body = { tools, store: false, include: ['reasoning.encrypted_content' as const] }
    const input: Item[] = [{ role: 'user', content: 'Weather?' }]
    const { output } = await stream(first, { ...body, input }, first.wire.models.thinker)
    const call = output.find((item) => item.type === 'function_call')
    input.push(...(output as Item[]), { type: 'function_call_output', call_id: call?.call_id ?? '', output: 'sunny' })
    await stream(way, { ...body, input }, way.wire.models.thinker)
    expectTakenOver(way)
  })

  row('openai responses: custom tool', conversations.hello, wayTo, async (way) => {
    const patch = {
      type: 'custom' as const,
      name: 'apply_patch',
      description: 'Changes files',
      format: { type: 'text' as const },
    }
    const reply: Item[] = [
      { role: 'user', content: 'Change it.' },
      { type: 'custom_tool_call', call_id: 'call_abc123456', name: 'apply_patch', input: '*** Begin Patch' },
      { type: 'custom_tool_call_output', call_id: 'call_abc123456', output: 'done' },
    ]
    await create(way, { input: reply, tools: [patch] })
    const body = JSON.stringify(way.provider.received[0]?.body)
    expect(body).toContain('*** Begin Patch')
    expect(body).toContain('done')
    // Where there are no custom tools it is a function.
    expect(body).toContain('apply_patch')
    expect(way.lost.filter((name) => name.startsWith('tools'))).toEqual([])
  })

  row('openai responses: abort', [], wayTo, async (way) => {
    way.provider.play('stay')
    const leaving = new AbortController()
    const body = { model: way.wire.models.plain, input: 'Tell me', stream: true as const }
    const events = await clientOf(way).responses.create(body, { signal: leaving.signal })
    for await (const event of events) if (event.type === 'response.created') leaving.abort()
    await within(5_000, 'leaving the provider', way.provider.received[0]?.left ?? pause(0))
  })
}

type Ask = (way: Way, body: Omit<Body, 'model'>, model?: string) => Promise<OpenAI.Responses.Response>

/** Conversations that go on by the id of a response, on models whose providers know nothing of it. */
function stateRows(create: Ask, stream: Ask, wayTo: (wire: Wire) => Way): void {
  row('openai responses: previous_response_id', conversations.loop, wayTo, async (way) => {
    let [last, next] = [await stream(way, { input: 'Weather and time?', tools }), create]
    while (last.output.some(({ type }) => type === 'function_call')) {
      const calls = last.output.filter((item) => item.type === 'function_call')
      const input: Item[] = calls.map(({ call_id, name }) => {
        return { type: 'function_call_output', call_id, output: resultOf(name) }
      })
      const previous_response_id = last.id
      last = await next(way, { previous_response_id, input, tools })
      expect(last.previous_response_id).toBe(previous_response_id)
      next = stream
    }
    expect(last.output_text).toBe('Sunny at 12:00.')
    expectLooped(way)
  })

  row('openai responses: thoughts by previous_response_id', conversations.thinking, wayTo, async (way) => {
    const model = way.wire.models.thinker
    const body = { tools, reasoning: { effort: 'medium' as const, summary: 'auto' as const } }
    const first = await stream(way, { ...body, input: 'Weather?' }, model)
    const call = first.output.find((item) => item.type === 'function_call')
    const result: Item = { type: 'function_call_output', call_id: call?.call_id ?? '', output: 'sunny' }
    const second = await create(way, { ...body, previous_response_id: first.id, input: [result] }, model)
    await create(way, { ...body, previous_response_id: second.id, input: 'Thanks' }, model)
    expectThoughtSent(way)
  })
}

/** Runs the tools until the model has none to call; the input grows by its replies. */
async function loop(
  ask: (input: Item[]) => Promise<OpenAI.Responses.Response>,
  input: Item[],
): Promise<OpenAI.Responses.Response> {
  for (let turn = 0; turn < 5; turn++) {
    const response = await ask(input)
    const calls = response.output.filter((item) => item.type === 'function_call')
    if (calls.length === 0) return response
    input.push(...(response.output as Item[]))
    for (const { call_id, name, arguments: args } of calls) {
      expect(JSON.parse(args)).toHaveProperty('city')
      input.push({ type: 'function_call_output', call_id, output: resultOf(name) })
    }
  }
  throw new Error('the model never stopped calling')
}

function expectUsage(usage: OpenAI.Responses.ResponseUsage | undefined): void {
  expect(usage).toMatchObject({ input_tokens: counted.input, output_tokens: counted.output, total_tokens: 52 })
  expect(typeof (usage as { cost?: number }).cost).toBe('number')
}

/** Items without members that are new for each response, or were parsed by the SDK. */
function steady(output: OpenAI.Responses.ResponseOutputItem[]): unknown {
  return JSON.parse(
    JSON.stringify(output, (name, value) => (['id', 'parsed', 'parsed_arguments'].includes(name) ? undefined : value)),
  )
}
