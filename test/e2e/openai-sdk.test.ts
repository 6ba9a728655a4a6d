import OpenAI, { type APIError } from 'openai'
import { ContentFilterFinishReasonError, LengthFinishReasonError } from 'openai/core/error'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fileHost, type LoopbackProvider, pause, within } from '../helpers/provider.ts'
import { type TestRouter, testRouter } from '../helpers/router.ts'
import { type Answer, type Played, playProvider, type Wire } from './openai-sdk-provider.ts'
import {
  citySchema,
  counted,
  hello,
  offered,
  pictures,
  pixel,
  placeSchema,
  type Talk,
  talks,
  tools,
} from './openai-sdk-talks.ts'
import { anthropicWire } from './openai-sdk-wire-anthropic.ts'
import { googleWire } from './openai-sdk-wire-google.ts'
import { openaiWire } from './openai-sdk-wire-openai.ts'

const wires = [openaiWire, anthropicWire, googleWire]
const ways = ['demo', ...wires.map(({ slug }) => slug)]
const played = new Map<string, Played>()
let files: Awaited<ReturnType<typeof fileHost>>
let router: TestRouter
let client: OpenAI

beforeAll(async () => {
  for (const wire of wires) played.set(wire.slug, await playProvider(wire))
  const overrides = [...played].map(([slug, { url }]) => [slug, { base_url: url, secret }])
  files = await fileHost(pixel)
  const { media } = files
  router = await testRouter({ providers: Object.fromEntries(overrides), media, env: { PLAYED_KEY: 'sk-played' } })
  client = router.openai()
})

afterAll(async () => {
  await router.end()
  await Promise.all([files, ...played.values()].map((server: LoopbackProvider) => server.close()))
  console.info(grid())
})

const secret = '${PLAYED_KEY}'

/** One way through the router: the simulator, which cannot be told what to say, or a played provider, which can. */
type Way = { name: string; plain: string; thinker: string; trouble: string; wire?: Wire; provider?: Played }

function wayTo(name: string): Way {
  const wire = wires.find(({ slug }) => slug === name)
  const provider = played.get(name)
  if (!wire || !provider) return { name, plain: `${name}/echo`, thinker: `${name}/thinker`, trouble: `${name}/trouble` }
  const [plain, thinker] = [`${name}/${wire.models.plain}`, `${name}/${wire.models.thinker}`]
  return { name, plain, thinker, trouble: plain, wire, provider }
}

/** Cells that fail for a known reason; one that begins to pass must leave this list. */
const pending: Record<string, string> = {}

const results = new Map<string, Map<string, string>>()

/** One cell; it answers '-' where a way has no such thing. */
type Cell = (way: Way) => Promise<unknown>

/** A row of the table: one feature, every way. After a talk the provider must have been asked exactly what it expects. */
function feature(name: string, talk: Talk | undefined, run: Cell, options = {}): void {
  describe(name, options, () => {
    for (const column of ways) {
      const failing = pending[`${name}, ${column}`] !== undefined
      const check = failing ? test.fails : test
      check(column, async () => {
        const row = results.get(name) ?? new Map<string, string>()
        results.set(name, row.set(column, failing ? 'pending' : 'FAILED'))
        const way = wayTo(column)
        if (talk) way.provider?.play(talk)
        const result = await within(5_000, `${name} by ${column}`, run(way))
        way.provider?.check()
        row.set(column, result === '-' ? '-' : 'ok')
      })
    }
  })
}

/** A row whose cells wait: all ways at the same time. */
function atOnce(name: string, talk: Talk | undefined, run: Cell): void {
  feature(name, talk, run, { concurrent: true })
}

function grid(): string {
  const width = Math.max(...[...results.keys()].map((name) => name.length))
  const line = (name: string, cells: string[]) =>
    [name.padEnd(width), ...cells.map((cell) => cell.padEnd(9))].join('  ')
  const rows = [...results].map(([name, row]) =>
    line(
      name,
      ways.map((way) => row.get(way) ?? '-'),
    ),
  )
  return ['', line('', ways), ...rows, ''].join('\n')
}

const asked = (way: Way) => ({ model: way.plain, messages: hello, max_completion_tokens: 100, stop: ['END'] })
const greeting = 'You said: Hello there'
const user = (content: OpenAI.ChatCompletionUserMessageParam['content']) => ({ role: 'user' as const, content })

type Metered = OpenAI.CompletionUsage & { cost?: number }

/** What the provider counted in its own words, in this API's words, with its price. */
function expectUsage(usage: Metered | null | undefined, { wire }: Way): void {
  if (!wire) {
    expect(usage?.prompt_tokens).toBeGreaterThan(0)
    expect(usage?.cost).toBeCloseTo((usage?.prompt_tokens ?? 0) * 1e-7 + (usage?.completion_tokens ?? 0) * 4e-7, 12)
    return
  }
  expect(usage).toMatchObject({
    prompt_tokens: counted.input,
    completion_tokens: counted.output,
    total_tokens: counted.input + counted.output,
    prompt_tokens_details: { cached_tokens: counted.cached },
    completion_tokens_details: { reasoning_tokens: wire.reasoningTokens },
  })
  expect(usage?.cost).toBeCloseTo(wire.cost, 9)
}

feature('create', 'create', async (way) => {
  const completion = await client.chat.completions.create(asked(way))
  expect(completion).toMatchObject({
    object: 'chat.completion',
    model: way.plain,
    choices: [{ index: 0, message: { role: 'assistant', content: greeting, refusal: null }, finish_reason: 'stop' }],
  })
  expect(completion.id).toMatch(/^\w/)
  expect(completion._request_id).toMatch(/^\S{8,}$/)
  expectUsage(completion.usage, way)
})

feature('create, stream: true', 'stream', async (way) => {
  const stream = await client.chat.completions.create({
    ...asked(way),
    stream: true,
    stream_options: { include_usage: true },
  })
  const chunks: OpenAI.ChatCompletionChunk[] = []
  for await (const chunk of stream) chunks.push(chunk)
  const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta))
  expect(deltas[0]?.role).toBe('assistant')
  expect(deltas.filter(({ content }) => content).length).toBeGreaterThanOrEqual(3)
  expect(deltas.map(({ content }) => content ?? '').join('')).toBe(greeting)
  expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
  expect(new Set(chunks.map(({ model }) => model))).toEqual(new Set([way.plain]))
  const last = chunks.at(-1)
  expect(last?.choices).toEqual([])
  expectUsage(last?.usage, way)
  expect(chunks.slice(0, -1).every(({ usage }) => !usage)).toBe(true)
})

feature('.stream() and its events', 'helper', async (way) => {
  const stream = client.chat.completions.stream({ ...asked(way), stream_options: { include_usage: true } })
  const told: string[] = []
  let words = ''
  stream.on('connect', () => told.push('connect'))
  stream.on('content', (delta, snapshot) => {
    words += delta
    expect(snapshot).toBe(words)
  })
  stream.on('message', () => told.push('message'))
  stream.on('finalContent', (content) => told.push(content))
  stream.on('end', () => told.push('end'))
  const completion = await stream.finalChatCompletion()
  await stream.done()
  expect(words).toBe(greeting)
  expect(told).toEqual(['connect', 'message', greeting, 'end'])
  expect(completion).toMatchObject({
    object: 'chat.completion',
    model: way.plain,
    choices: [{ message: { role: 'assistant', content: greeting }, finish_reason: 'stop' }],
  })
  expectUsage(completion.usage, way)
})

feature('half a character, which providers refuse as broken JSON', undefined, async (way) => {
  way.provider?.answer(...(way.provider ? [way.provider.greeting.whole] : []))
  const cut = 'back\\ud83d slash, half a smile \ud83d'
  const choice = onlyChoice(await client.chat.completions.create({ model: way.plain, messages: [user(cut)] }))
  const arrived = way.provider ? JSON.stringify(way.provider.received[0]?.body) : (choice.message.content ?? '')
  expect(arrived).toContain('half a smile \ufffd')
  expect(JSON.stringify(arrived)).toContain('ud83d slash')
})

const place = (way: Way) => ({
  model: way.plain,
  messages: [user('Where?')],
  response_format: {
    type: 'json_schema' as const,
    json_schema: { name: 'place', strict: true, schema: placeSchema },
  },
})

feature('.parse() with a JSON schema', 'schema', async (way) => {
  const { choices } = await client.chat.completions.parse(place(way))
  expect(choices[0]?.message.parsed).toEqual({ city: 'Paris', sunny: true })
})

feature('.stream() with a JSON schema', 'schema streamed', async (way) => {
  const stream = client.chat.completions.stream({ ...place(way), stream_options: { include_usage: true } })
  expect(await stream.finalMessage()).toHaveProperty('parsed', { city: 'Paris', sunny: true })
})

feature('an answer cut by its limit: LengthFinishReasonError', undefined, async (way) => {
  way.provider?.answer(
    { body: way.wire?.whole({ text: '{"city":"Pa', ended: 'length' }) ?? {} },
    { frames: way.wire?.frames({ text: '{"city":"Pa', ended: 'length' }) ?? [] },
  )
  const body = { ...place(way), max_completion_tokens: 2 }
  await expect(client.chat.completions.parse(body)).rejects.toBeInstanceOf(LengthFinishReasonError)
  const stream = client.chat.completions.stream(body)
  await expect(stream.finalChatCompletion()).rejects.toBeInstanceOf(LengthFinishReasonError)
})

feature('an answer that was blocked: ContentFilterFinishReasonError', undefined, async (way) => {
  // The simulator blocks nothing.
  if (!way.wire) return '-'
  way.provider?.answer({ body: way.wire.whole({ ended: 'filter' }) }, { frames: way.wire.frames({ ended: 'filter' }) })
  await expect(client.chat.completions.parse(place(way))).rejects.toBeInstanceOf(ContentFilterFinishReasonError)
  const stream = client.chat.completions.stream(place(way))
  await expect(stream.finalChatCompletion()).rejects.toBeInstanceOf(ContentFilterFinishReasonError)
})

type Turn = (body: OpenAI.ChatCompletionCreateParamsNonStreaming) => Promise<OpenAI.ChatCompletion.Choice>

const whole: Turn = async (body) => onlyChoice(await client.chat.completions.create(body))

const gathered: Turn = async (body) => {
  const stream = client.chat.completions.stream({ ...body, stream: true, stream_options: { include_usage: true } })
  return onlyChoice(await stream.finalChatCompletion())
}

/** A second question; the answer to the first goes back as it came. */
async function secondTurn({ plain: model }: Way, turn: Turn): Promise<void> {
  const first = await turn({ model, messages: hello })
  const second = await turn({ model, messages: [...hello, first.message, user('Hello there')] })
  expect([first, second].map(({ message }) => message.content)).toEqual([greeting, greeting])
}

feature('a second turn', 'again', (way) => secondTurn(way, whole))
feature('a second turn, streamed', 'again streamed', (way) => secondTurn(way, gathered))

/** A call, the result, a demanded call, the result, the answer; every message of the model goes back as it came. */
async function toolLoop(way: Way, turn: Turn): Promise<void> {
  const messages: OpenAI.ChatCompletionMessageParam[] = [user('Weather and time in Paris?')]
  const facts = { model: way.thinker, messages, tools, reasoning_effort: 'medium' as const }
  const ids: string[] = []
  for (const [name, content] of [
    ['get_weather', 'sunny, now ask local_time'],
    ['local_time', '12:00'],
  ] as const) {
    const forced = ids.length > 0 && { tool_choice: 'required' as const }
    const { message, finish_reason } = await turn({ ...facts, ...forced })
    expect(finish_reason).toBe('tool_calls')
    expect(message.tool_calls).toMatchObject([{ type: 'function', function: { name } }])
    const [call] = message.tool_calls ?? []
    if (call?.type !== 'function') throw new Error('no function was called')
    expect(JSON.parse(call.function.arguments)).toEqual({ city: 'Paris' })
    ids.push(call.id)
    messages.push(message, { role: 'tool', tool_call_id: call.id, content })
  }
  const { message, finish_reason } = await turn(facts)
  expect(finish_reason).toBe('stop')
  expect(message.content).toBe('The tool said: 12:00')
  expect(new Set(ids).size).toBe(2)
}

feature('tools, two rounds', 'loop', (way) => toolLoop(way, whole))
feature('tools, two rounds, streamed', 'loop streamed', (way) => toolLoop(way, gathered))

function onlyChoice({ choices }: OpenAI.ChatCompletion): OpenAI.ChatCompletion.Choice {
  const [choice] = choices
  if (!choice || choices.length > 1) throw new Error(`${choices.length} choices instead of one`)
  return choice
}

/** Two calls in one answer; the results come back in another order. */
async function parallelTools(way: Way, turn: Turn): Promise<void> {
  const messages: OpenAI.ChatCompletionMessageParam[] = [user('Use all tools.')]
  const { message } = await turn({ model: way.plain, messages, tools })
  const calls = message.tool_calls ?? []
  expect(calls.map((call) => call.type === 'function' && call.function.name)).toEqual(offered.map(({ name }) => name))
  expect(new Set(calls.map(({ id }) => id)).size).toBe(2)
  const answers = calls.map(({ id }, index) => ({
    role: 'tool' as const,
    tool_call_id: id,
    content: offered[index]?.result ?? '',
  }))
  messages.push(message, ...answers.toReversed())
  const last = await turn({ model: way.plain, messages, tools })
  expect(last.message.content).toBe('The tools said: 12:00; sunny')
  if (way.name === googleWire.slug) expectInventedIds(way, calls)
}

feature('parallel tools', 'parallel', (way) => parallelTools(way, whole))

feature('parallel tools, streamed', 'parallel streamed', async (way) => {
  const done: unknown[] = []
  await parallelTools(way, async (body) => {
    const stream = client.chat.completions.stream({ ...body, stream: true, stream_options: { include_usage: true } })
    stream.on('tool_calls.function.arguments.done', ({ index, name, parsed_arguments }) => {
      done.push([index, name, parsed_arguments])
    })
    return onlyChoice(await stream.finalChatCompletion())
  })
  expect(done).toEqual(offered.map(({ name }, index) => [index, name, { city: 'Paris' }]))
})

/** Ids that the provider left out are the same for the client, in the call and in its result. */
function expectInventedIds({ provider }: Way, calls: { id: string }[]): void {
  const [, said, results] = provider?.received[1]?.body.contents ?? []
  const known = calls.map(({ id }) => id)
  expect(said.parts.map((part: { functionCall: { id: string } }) => part.functionCall.id)).toEqual(known)
  expect(results.parts.map((part: { functionResponse: { id: string } }) => part.functionResponse.id)).toEqual(known)
}

feature('a conversation that began elsewhere', undefined, async (way) => {
  const elsewhere = wayTo(way.name === googleWire.slug ? anthropicWire.slug : googleWire.slug)
  const [asking, , answering] = talks.loop
  elsewhere.provider?.answer({ body: elsewhere.wire?.whole(asking?.said ?? {}) ?? {} })
  const messages: OpenAI.ChatCompletionMessageParam[] = [user('Weather, please')]
  const { message } = onlyChoice(await client.chat.completions.create({ model: elsewhere.plain, messages, tools }))
  const [call] = message.tool_calls ?? []
  messages.push(message, { role: 'tool', tool_call_id: call?.id ?? '', content: '12:00' })
  way.provider?.answer({ body: way.wire?.whole(answering?.said ?? {}) ?? {} })
  const last = onlyChoice(await client.chat.completions.create({ model: way.plain, messages, tools }))
  expect(last.message.content).toBe('The tool said: 12:00')
  const arrived = JSON.stringify(way.provider?.received[0]?.body ?? {})
  // Seals are for their maker only, and nobody else knows the members that carry them.
  expect(arrived).not.toMatch(/EqQBC|c2VhbCBv|reasoning_(content|details)|extra_content|replay_parts/)
})

const runnable = (given: unknown[]) => ({
  type: 'function' as const,
  function: {
    ...tools[0]?.function,
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

feature('.runTools()', 'run', async (way) => {
  const given: unknown[] = []
  const messages = [user('Weather, please')]
  const runner = client.chat.completions.runTools({ model: way.plain, messages, tools: [runnable(given)] })
  expect(await runner.finalContent()).toBe('The tool said: sunny')
  expect(given).toEqual([{ city: 'Paris' }])
  expect(runner.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant'])
  const { prompt_tokens, total_tokens } = await runner.totalUsage()
  if (way.wire) expect({ prompt_tokens, total_tokens }).toEqual({ prompt_tokens: 80, total_tokens: 104 })
})

feature('.runTools({stream: true})', 'run streamed', async (way) => {
  const given: unknown[] = []
  const runner = client.chat.completions.runTools({
    model: way.plain,
    messages: [user('Weather, please')],
    tools: [runnable(given)],
    stream: true,
    stream_options: { include_usage: true },
  })
  expect(await runner.finalContent()).toBe('The tool said: sunny')
  expect(given).toEqual([{ city: 'Paris' }])
})

for (const [where, url] of Object.entries(pictures)) {
  feature(`a picture ${where}`, `picture ${where}` as Talk, async (way) => {
    const isFetched = where === 'elsewhere' && way.wire?.wantsData
    const content = [
      { type: 'text' as const, text: 'What is this?' },
      { type: 'image_url' as const, image_url: { url: isFetched ? `${files.url}/cat.png` : url } },
    ]
    const choice = onlyChoice(await client.chat.completions.create({ model: way.plain, messages: [user(content)] }))
    expect(choice.message.content).toMatch(/^You said: What is this\? I see an image /)
  })
}

/** The class of the SDK and the status by which a client learns of a provider's refusal. */
const refusals: [number, string, new (...args: never[]) => unknown, number][] = [
  [400, 'BadRequestError', OpenAI.BadRequestError, 400],
  [401, 'InternalServerError', OpenAI.InternalServerError, 502],
  [403, 'InternalServerError', OpenAI.InternalServerError, 502],
  [404, 'BadRequestError', OpenAI.BadRequestError, 400],
  [413, 'APIError', OpenAI.APIError, 413],
  [429, 'RateLimitError', OpenAI.RateLimitError, 429],
  [500, 'InternalServerError', OpenAI.InternalServerError, 502],
  [503, 'InternalServerError', OpenAI.InternalServerError, 502],
]

/** A call that a provider refuses, or the simulator when it is asked to. */
function refusedCall(way: Way, status: number): OpenAI.ChatCompletionCreateParamsNonStreaming {
  return { model: way.trouble, messages: [user(`fail ${status}`)] }
}

for (const [status, name, Kind, told] of refusals) {
  feature(`provider says ${status}: ${name} ${told}`, undefined, async (way) => {
    way.provider?.answer(way.wire?.refusal(status) ?? 'nothing')
    const error = await failureOf(client.chat.completions.create(refusedCall(way, status)))
    expect(error).toBeInstanceOf(Kind)
    expect(error).toMatchObject({ status: told, error: { origin: 'provider', provider: way.name } })
    expect(error.message).toContain(way.wire ? `Played ${status}` : `Failing with ${status}`)
    expect(error.requestID).toMatch(/^\S{8,}$/)
    if (status === 429) expect(error.headers?.get('retry-after')).toBe(way.wire ? '7' : '1')
  })
}

async function failureOf(promise: PromiseLike<unknown>): Promise<APIError> {
  const thrown = await Promise.resolve(promise).then(
    () => undefined,
    (error: unknown) => error,
  )
  if (thrown instanceof OpenAI.APIError) return thrown
  throw new Error(`expected an APIError, got ${thrown}`, { cause: thrown })
}

/** Streams that begin well; the simulator does it when asked. */
function beginning(way: Way, then: 'stay' | 'break' | 'error'): Answer {
  const frames = way.provider?.greeting.frames.slice(0, 4) ?? []
  if (then === 'error') return { frames: [...frames, way.wire?.failure ?? ''] }
  return { frames, then }
}

const breaks = { 'breaks off': ['break', 'cut'], 'reports an error': ['error', 'garble'] } as const

for (const [what, [then, word]] of Object.entries(breaks)) {
  feature(`a stream ${what}: APIError`, undefined, async (way) => {
    const body = { model: way.trouble, messages: [user(`please ${word} it`)] }
    way.provider?.answer(beginning(way, then), beginning(way, then))
    let words = ''
    const stream = await client.chat.completions.create({ ...body, stream: true })
    const reading = (async () => {
      for await (const { choices } of stream) words += choices[0]?.delta.content ?? ''
    })()
    const error = await failureOf(reading)
    expect(error).toMatchObject({ type: 'api_error', error: { origin: 'provider', provider: way.name } })
    expect(words).not.toBe('')
    await failureOf(client.chat.completions.stream(body).finalChatCompletion())
  })
}

/** The calls after a failure or an abort are as good as any. */
async function expectNextCallWorks(way: Way): Promise<void> {
  if (way.provider) way.provider.answer(way.provider.greeting.whole)
  expect(onlyChoice(await client.chat.completions.create(asked(way))).message.content).toBe(greeting)
}

feature('abort while waiting: APIUserAbortError', undefined, async (way) => {
  way.provider?.answer('nothing')
  const leaving = new AbortController()
  const body = { model: way.trouble, messages: [user('please stall')] }
  const failing = failureOf(client.chat.completions.create(body, { signal: leaving.signal }))
  await arrival(way)
  leaving.abort()
  expect(await within(5_000, 'the abort', failing)).toBeInstanceOf(OpenAI.APIUserAbortError)
  await within(5_000, 'leaving the provider', way.provider?.received[0]?.left ?? Promise.resolve())
  await expectNextCallWorks(way)
})

/** Resolves when the request has reached the provider; the simulator gets some time instead. */
async function arrival({ provider }: Way): Promise<void> {
  if (!provider) return await pause(100)
  while (provider.received.length === 0) await pause(5)
}

atOnce('timeout of the SDK: APIConnectionTimeoutError', undefined, async (way) => {
  way.provider?.answer('nothing')
  const body = { model: way.trouble, messages: [user('please stall')] }
  const error = await failureOf(client.chat.completions.create(body, { timeout: 200 }))
  expect(error).toBeInstanceOf(OpenAI.APIConnectionTimeoutError)
  await within(5_000, 'leaving the provider', way.provider?.received[0]?.left ?? Promise.resolve())
  await expectNextCallWorks(way)
})

feature('abort in a stream: APIUserAbortError', undefined, async (way) => {
  way.provider?.answer(beginning(way, 'stay'))
  const stream = client.chat.completions.stream({ model: way.trouble, messages: [user('please stall')] })
  const failing = failureOf(stream.finalChatCompletion())
  await stream.emitted('content')
  stream.abort()
  expect(await within(5_000, 'the abort', failing)).toBeInstanceOf(OpenAI.APIUserAbortError)
  await within(5_000, 'leaving the provider', way.provider?.received[0]?.left ?? Promise.resolve())
  await expectNextCallWorks(way)
})

feature('leaving a stream by break', undefined, async (way) => {
  way.provider?.answer(beginning(way, 'stay'))
  const body = { model: way.trouble, messages: [user('please stall')], stream: true as const }
  for await (const { choices } of await client.chat.completions.create(body)) {
    if (choices[0]?.delta.content) break
  }
  await within(5_000, 'leaving the provider', way.provider?.received[0]?.left ?? Promise.resolve())
  await expectNextCallWorks(way)
})

atOnce('maxRetries: once after 503, never after 400', undefined, async (way) => {
  const [busy, wrong] = [503, 400].map((status) => way.wire?.refusal(status) ?? 'nothing')
  const patient = client.withOptions({ maxRetries: 1 })
  if (way.provider) {
    way.provider.answer(busy as Answer, way.provider.greeting.whole)
    expect(onlyChoice(await patient.chat.completions.create(asked(way))).message.content).toBe(greeting)
    way.provider.check()
  } else {
    const error = await failureOf(patient.chat.completions.create(refusedCall(way, 503)))
    expect(error).toBeInstanceOf(OpenAI.InternalServerError)
  }
  way.provider?.answer(wrong as Answer)
  expect(await failureOf(patient.chat.completions.create(refusedCall(way, 400)))).toBeInstanceOf(OpenAI.BadRequestError)
})

test('after 429 the SDK waits as long as it is told', async () => {
  const way = wayTo(openaiWire.slug)
  const busy = { status: 429, headers: { 'retry-after': '1' }, body: { error: { message: 'slow down' } } }
  if (way.provider) way.provider.answer(busy, way.provider.greeting.whole)
  const begun = performance.now()
  const patient = client.withOptions({ maxRetries: 1 })
  expect(onlyChoice(await patient.chat.completions.create(asked(way))).message.content).toBe(greeting)
  expect(performance.now() - begun).toBeGreaterThan(950)
})

feature('models.list()', undefined, async (way) => {
  way.provider?.answer()
  const ids: string[] = []
  for await (const { id } of client.models.list()) ids.push(id)
  expect(ids).toContain(way.plain)
  expect(ids).toContain(way.thinker)
})

feature('a wrong field: BadRequestError with its name', undefined, async (way) => {
  way.provider?.answer()
  const error = await failureOf(client.chat.completions.create({ ...asked(way), temperature: 'warm' as never }))
  expect(error).toBeInstanceOf(OpenAI.BadRequestError)
  expect(error).toMatchObject({ status: 400, param: 'temperature', error: { origin: 'router' } })
  expect(error.message).toContain('temperature')
})

feature('unknown model: NotFoundError', undefined, async (way) => {
  way.provider?.answer()
  const error = await failureOf(client.chat.completions.create({ ...asked(way), model: `${way.name}/nobody` }))
  expect(error).toBeInstanceOf(OpenAI.NotFoundError)
  expect(error).toMatchObject({ status: 404, param: 'model', error: { origin: 'router' } })
  expect(error.message).toMatch(new RegExp(`'${way.name}' .* 'nobody'`))
})

feature('no key: AuthenticationError', undefined, async (way) => {
  way.provider?.answer()
  const bare = client.withOptions({ defaultHeaders: { authorization: null } })
  const error = await failureOf(bare.chat.completions.create(asked(way)))
  expect(error).toBeInstanceOf(OpenAI.AuthenticationError)
  expect(error.status).toBe(401)
})

feature('wrong key: PermissionDeniedError', undefined, async (way) => {
  way.provider?.answer()
  const stranger = client.withOptions({ apiKey: 'ir-unknown' })
  const error = await failureOf(stranger.chat.completions.create(asked(way)))
  expect(error).toBeInstanceOf(OpenAI.PermissionDeniedError)
  expect(error.status).toBe(403)
})

test('a body over the limit: APIError 413, and the next call works', async () => {
  const body = { ...asked(wayTo('demo')), messages: [user('x'.repeat(51 * 1024 * 1024))] }
  const error = await within(5_000, 'the refusal', failureOf(client.chat.completions.create(body)))
  expect(error).toMatchObject({ status: 413, type: 'request_too_large' })
  await expectNextCallWorks(wayTo('demo'))
})
