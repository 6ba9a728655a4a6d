import OpenAI from 'openai'
import { ContentFilterFinishReasonError, LengthFinishReasonError } from 'openai/core/error'
import { describe, expect } from 'vitest'
import { type TestRouter, testKey } from '../../helpers/router.ts'
import {
  citySchema,
  conversations,
  expectGreeted,
  expectTwoRounds,
  greeting,
  offered,
  pixel,
  placeSchema,
  simulatorConversations,
} from './sdk-conversations.ts'
import { cellOf, elsewhere, expectPaired, row, simulator, type Way, wires } from './sdk-grid.ts'
import { counted, type Reply, type Step, signatureOf, type Wire } from './sdk-wire.ts'

/** The context of the rows of Chat Completions; the router and the files are there when a cell runs. */
export type Grid = { wayTo(wire: Wire): Way; router(): TestRouter; filesUrl(): string }

/** One column at work: a format with its fake provider, or the simulator. */
export type Column = { name: string; client: OpenAI; plain: string; thinker: string; faulty: string; way?: Way }

type Cell = (column: Column) => Promise<unknown>

/** A row of all formats and the simulator. */
export function chatRow({ wayTo, router }: Grid, name: string, steps: Step[], cell: Cell, columns = wires): void {
  const title = `openai chat.completions: ${name}`
  row(title, steps, wayTo, (way) => cell(columnOf(way)), columns)
  describe(title, () => cellOf(title, simulator, () => cell(simulatorOf(router()))))
}

/** The column of a format. */
export function columnOf(way: Way): Column {
  const { plain, thinker } = way.wire.models
  const name = way.wire.slug
  return { name, client: clientOf(way.router), plain, thinker, faulty: plain, way }
}

/** The simulator's column. */
export function simulatorOf(router: TestRouter): Column {
  const [plain = '', thinker = '', faulty = ''] = ['echo', 'thinker', 'trouble'].map((model) => `${simulator}/${model}`)
  return { name: simulator, client: clientOf(router), plain, thinker, faulty }
}

const clientOf = ({ url }: TestRouter) => new OpenAI({ baseURL: `${url}/v1`, apiKey: testKey, maxRetries: 0 })

/** A message of the user. */
export const user = (content: OpenAI.ChatCompletionUserMessageParam['content']) => ({ role: 'user' as const, content })

/** The greeting as a request. */
export const hello = ({ plain }: Column) => ({
  model: plain,
  messages: [{ role: 'system' as const, content: 'Be brief.' }, user('Hello there')],
  max_completion_tokens: 100,
  stop: ['END'],
})

/** The choice of a completion that has one. */
export function onlyChoice({ choices }: OpenAI.ChatCompletion): OpenAI.ChatCompletion.Choice {
  const [choice] = choices
  if (!choice || choices.length > 1) throw new Error(`${choices.length} choices instead of one`)
  return choice
}

const tools = offered.map(
  ({ name, description }): OpenAI.ChatCompletionFunctionTool => ({
    type: 'function',
    function: { name, description, parameters: citySchema, strict: true },
  }),
)

type Ask = (
  column: Column,
  body: OpenAI.ChatCompletionCreateParamsNonStreaming,
) => Promise<OpenAI.ChatCompletion.Choice>

const whole: Ask = async ({ client }, body) => onlyChoice(await client.chat.completions.create(body))
const streamed: Ask = async ({ client }, body) => {
  const stream = client.chat.completions.stream({ ...body, stream: true, stream_options: { include_usage: true } })
  return onlyChoice(await stream.finalChatCompletion())
}

/** `openai` SDK, Chat Completions: successful calls. */
export function chatRows(grid: Grid): void {
  greetingRows(grid)
  schemaRows(grid)
  for (const [how, ask] of Object.entries({ create: whole, stream: streamed })) toolRows(grid, how, ask)
  runnerRows(grid)
  contentRows(grid)
}

function greetingRows(grid: Grid): void {
  chatRow(grid, 'create', simulatorConversations.greeting, async (column) => {
    const completion = await column.client.chat.completions.create(hello(column))
    expect(completion).toMatchObject({
      object: 'chat.completion',
      model: column.plain,
      choices: [{ index: 0, message: { role: 'assistant', content: greeting, refusal: null }, finish_reason: 'stop' }],
    })
    expect(completion.id).toMatch(/^\w/)
    expect(completion._request_id).toMatch(/^\S{8,}$/)
    expectUsage(completion.usage, column)
    if (column.way) expectBounded(column.way)
  })

  chatRow(grid, 'create, stream: true', simulatorConversations.greeting, async (column) => {
    const body = { ...hello(column), stream: true as const, stream_options: { include_usage: true } }
    const chunks: OpenAI.ChatCompletionChunk[] = []
    for await (const chunk of await column.client.chat.completions.create(body)) chunks.push(chunk)
    const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta))
    expect(deltas[0]?.role).toBe('assistant')
    expect(deltas.filter(({ content }) => content).length).toBeGreaterThanOrEqual(3)
    expect(deltas.map(({ content }) => content ?? '').join('')).toBe(greeting)
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
    expect(new Set(chunks.map(({ model }) => model))).toEqual(new Set([column.plain]))
    const last = chunks.at(-1)
    expect(last?.choices).toEqual([])
    expectUsage(last?.usage, column)
    expect(chunks.slice(0, -1).every(({ usage }) => !usage)).toBe(true)
    if (column.way) expectBounded(column.way)
  })

  chatRow(grid, '.stream() and its events', simulatorConversations.greeting, async (column) => {
    const body = { ...hello(column), stream_options: { include_usage: true } }
    const stream = column.client.chat.completions.stream(body)
    const events: string[] = []
    let words = ''
    stream.on('connect', () => events.push('connect'))
    stream.on('content', (delta, snapshot) => {
      words += delta
      expect(snapshot).toBe(words)
    })
    stream.on('message', () => events.push('message'))
    stream.on('finalContent', (content) => events.push(content))
    stream.on('end', () => events.push('end'))
    const completion = await stream.finalChatCompletion()
    await stream.done()
    expect(words).toBe(greeting)
    expect(events).toEqual(['connect', 'message', greeting, 'end'])
    expect(completion).toMatchObject({ object: 'chat.completion', model: column.plain })
    expect(onlyChoice(completion)).toMatchObject({ message: { content: greeting }, finish_reason: 'stop' })
    expectUsage(completion.usage, column)
  })

  for (const [how, ask] of Object.entries({ create: whole, stream: streamed })) {
    chatRow(grid, `${how}: a second turn`, simulatorConversations.secondTurn, async (column) => {
      const { messages, model } = hello(column)
      const first = await ask(column, { model, messages })
      const second = await ask(column, { model, messages: [...messages, first.message, user('Hello there')] })
      expect([first, second].map(({ message }) => message.content)).toEqual([greeting, greeting])
      expect(column.way?.provider.arrived(1).turns ?? secondTurn).toMatchObject(secondTurn)
    })
  }
}

const secondTurn = [
  { role: 'user', text: 'Hello there' },
  { role: 'assistant', text: greeting },
  { role: 'user', text: 'Hello there' },
]

/** The greeting arrived, with its bounds: Responses has no texts that end a reply. */
function expectBounded(way: Way): void {
  expectGreeted(way)
  const stops = way.wire.slug === 'openai-responses' ? undefined : ['END']
  expect(way.provider.arrived(0)).toMatchObject({ limit: 100, ...(stops && { stops }) })
}

type Metered = OpenAI.CompletionUsage & { cost?: number }

/** The provider's counts in the form of this API, with their price. */
function expectUsage(usage: Metered | null | undefined, { way }: Column): void {
  if (!way) {
    expect(usage?.prompt_tokens).toBeGreaterThan(0)
    expect(usage?.cost).toBeCloseTo((usage?.prompt_tokens ?? 0) * 1e-7 + (usage?.completion_tokens ?? 0) * 4e-7, 12)
    return
  }
  const total_tokens = counted.input + counted.output
  expect(usage).toMatchObject({ prompt_tokens: counted.input, completion_tokens: counted.output, total_tokens })
  if (way.wire.cost === undefined) return
  expect(usage?.prompt_tokens_details).toMatchObject({ cached_tokens: 10 })
  expect(usage?.cost).toBeCloseTo(way.wire.cost, 9)
}

const place = ({ plain }: Column) => ({
  model: plain,
  messages: [user('Where?')],
  response_format: {
    type: 'json_schema' as const,
    json_schema: { name: 'place', strict: true, schema: placeSchema },
  },
})

function schemaRows(grid: Grid): void {
  chatRow(
    grid,
    '.parse() and .stream() with a JSON schema',
    [...conversations.json, ...conversations.json],
    async (column) => {
      const { choices } = await column.client.chat.completions.parse(place(column))
      const message = await column.client.chat.completions.stream(place(column)).finalMessage()
      for (const one of [choices[0]?.message, message]) {
        expect(one).toHaveProperty('parsed', { city: 'Paris', sunny: true })
      }
      for (const index of [0, 1]) expect(column.way?.provider.arrived(index).hasSchema ?? true).toBe(true)
    },
  )

  const cut: Reply = { text: '{"city":"Pa', ended: 'length' }
  chatRow(grid, 'a reply cut by its limit: LengthFinishReasonError', [cut, cut], async (column) => {
    const body = { ...place(column), max_completion_tokens: 2 }
    await expect(column.client.chat.completions.parse(body)).rejects.toBeInstanceOf(LengthFinishReasonError)
    const stream = column.client.chat.completions.stream(body)
    await expect(stream.finalChatCompletion()).rejects.toBeInstanceOf(LengthFinishReasonError)
  })

  // Cohere, Ollama and the simulator block nothing.
  const blocking = wires.filter(({ ends }) => ends.filter !== undefined)
  const blocked = 'openai chat.completions: a blocked reply: ContentFilterFinishReasonError'
  const cell = async (way: Way) => {
    const column = columnOf(way)
    const parsing = column.client.chat.completions.parse(place(column))
    await expect(parsing).rejects.toBeInstanceOf(ContentFilterFinishReasonError)
    const stream = column.client.chat.completions.stream(place(column))
    await expect(stream.finalChatCompletion()).rejects.toBeInstanceOf(ContentFilterFinishReasonError)
  }
  row(blocked, [{ ended: 'filter' }, { ended: 'filter' }], grid.wayTo, cell, blocking)
}

function toolRows(grid: Grid, how: string, ask: Ask): void {
  chatRow(grid, `${how}: tools, two rounds`, simulatorConversations.rounds, async (column) => {
    const messages: OpenAI.ChatCompletionMessageParam[] = [user('Weather and time in Paris?')]
    const body = { model: column.thinker, messages, tools, reasoning_effort: 'medium' as const }
    const ids: string[] = []
    for (const [name, content] of [
      ['get_weather', 'sunny, now ask local_time'],
      ['local_time', '12:00'],
    ] as const) {
      const { message, finish_reason } = await ask(column, {
        ...body,
        ...(ids.length > 0 && { tool_choice: 'required' as const }),
      })
      expect(finish_reason).toBe('tool_calls')
      const [call] = message.tool_calls ?? []
      if (call?.type !== 'function') throw new Error('no function was called')
      expect(call.function.name).toBe(name)
      expect(JSON.parse(call.function.arguments)).toEqual({ city: 'Paris' })
      ids.push(call.id)
      messages.push(message, { role: 'tool', tool_call_id: call.id, content })
    }
    const { message, finish_reason } = await ask(column, body)
    expect([finish_reason, message.content]).toEqual(['stop', 'The tool said: 12:00'])
    expect(new Set(ids).size).toBe(2)
    // Of a stream in its own format the SDK does not gather the members that it does not know.
    const thought = how === 'create' || !['openai', 'mistral'].includes(column.name)
    if (column.way) expectTwoRounds(column.way, { thought })
  })

  chatRow(grid, `${how}: parallel tools`, simulatorConversations.parallel, async (column) => {
    const messages: OpenAI.ChatCompletionMessageParam[] = [user('Use all tools.')]
    const { message } = await ask(column, { model: column.plain, messages, tools })
    const calls = message.tool_calls ?? []
    const ids = calls.map(({ id }) => id)
    expect(calls).toMatchObject(offered.map(({ name }) => ({ function: { name, arguments: '{"city":"Paris"}' } })))
    expect(new Set(ids).size).toBe(2)
    // The results come back in another order.
    const results = offered.map(({ result: content }, at) => ({
      role: 'tool' as const,
      tool_call_id: ids[at] ?? '',
      content,
    }))
    messages.push(message, ...results.toReversed())
    const last = await ask(column, { model: column.plain, messages, tools })
    expect(last.message.content).toBe('The tools said: 12:00; sunny')
    if (!column.way) return
    const arrived = column.way.provider.arrived(1)
    expectPaired(arrived)
    // Ids that the provider left out are the same for the client and, later, for the provider.
    if (column.way.wire.slug === 'google') expect(arrived.turns[1]?.calls.map(({ id }) => id)).toEqual(ids)
  })
}

const runnable = (given: unknown[]) => ({
  type: 'function' as const,
  function: {
    name: 'get_weather',
    description: offered[0].description,
    parameters: citySchema as object,
    strict: true,
    parse: JSON.parse as (input: string) => object,
    function: (args: object) => {
      given.push(args)
      return 'sunny'
    },
  },
})

function runnerRows(grid: Grid): void {
  chatRow(grid, '.runTools()', simulatorConversations.run, async ({ client, plain, way }) => {
    const given: unknown[] = []
    const messages = [user('Weather, please')]
    const runner = client.chat.completions.runTools({ model: plain, messages, tools: [runnable(given)] })
    expect(await runner.finalContent()).toBe('The tool said: sunny')
    expect(given).toEqual([{ city: 'Paris' }])
    expect(runner.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant'])
    const { prompt_tokens, total_tokens } = await runner.totalUsage()
    if (way) expect({ prompt_tokens, total_tokens }).toEqual({ prompt_tokens: 80, total_tokens: 104 })
  })

  chatRow(grid, '.runTools({stream: true})', simulatorConversations.run, async ({ client, plain, way }) => {
    const given: unknown[] = []
    const [messages, tools] = [[user('Weather, please')], [runnable(given)]]
    const options = { stream: true as const, stream_options: { include_usage: true } }
    const runner = client.chat.completions.runTools({ model: plain, messages, tools, ...options })
    expect(await runner.finalContent()).toBe('The tool said: sunny')
    expect(given).toEqual([{ city: 'Paris' }])
    if (way) expectPaired(way.provider.arrived(1))
  })
}

function contentRows(grid: Grid): void {
  const inside = () => `data:image/png;base64,${pixel}`
  const byUrl = () => `${grid.filesUrl()}/cat.png`
  for (const [where, urlOf] of Object.entries({ inside, elsewhere: byUrl })) {
    chatRow(grid, `a picture ${where}`, simulatorConversations.picture, async (column) => {
      const url = urlOf()
      const content = [
        { type: 'text' as const, text: 'What is this?' },
        { type: 'image_url' as const, image_url: { url } },
      ]
      const model = column.way?.wire.models.seer ?? column.plain
      const choice = await whole(column, { model, messages: [user(content)] })
      expect(choice.message.content).toMatch(/^You said: What is this\? I see an image /)
      const [requested] = column.way?.provider.arrived(0).turns ?? []
      // Providers that accept no URLs are sent the file.
      if (column.way) expect([[pixel], [url]]).toContainEqual(requested?.images)
    })
  }

  chatRow(grid, 'half a character, which providers refuse as broken JSON', conversations.hello, async (column) => {
    const cut = 'back\\ud83d slash, half a smile \ud83d'
    const { message } = await whole(column, { model: column.plain, messages: [user(cut)] })
    const arrived = column.way ? JSON.stringify(column.way.provider.received[0]?.body) : (message.content ?? '')
    expect(arrived).toContain('half a smile \ufffd')
    expect(JSON.stringify(arrived)).toContain('ud83d slash')
  })

  chatRow(grid, 'a conversation that began elsewhere', [{ text: 'The tool said: 12:00' }], async (column) => {
    const first = columnOf(grid.wayTo(column.way ? elsewhere(column.way.wire) : (wires[3] as Wire)))
    first.way?.provider.play(...simulatorConversations.rounds.slice(0, 1))
    const messages: OpenAI.ChatCompletionMessageParam[] = [user('Weather, please')]
    const { message } = await whole(first, { model: first.thinker, messages, tools })
    const [call] = message.tool_calls ?? []
    messages.push(message, { role: 'tool', tool_call_id: call?.id ?? '', content: '12:00' })
    const last = await whole(column, { model: column.plain, messages, tools })
    expect(last.message.content).toBe('The tool said: 12:00')
    if (!column.way) return
    expectPaired(column.way.provider.arrived(0))
    // Signatures are for their provider only, and no other one knows their members.
    const body = JSON.stringify(column.way.provider.received[0]?.body)
    expect(body).not.toContain(signatureOf('First the weather.'))
    expect(body).not.toMatch(/router1\.|reasoning_details|extra_content|replay_parts/)
  })
}
