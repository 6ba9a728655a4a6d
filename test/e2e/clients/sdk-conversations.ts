import { expect } from 'vitest'
import { expectPaired, type Way } from './sdk-grid.ts'
import { type Reply, type ReplyCall, signatureOf, source } from './sdk-wire.ts'

// The conversations of the grid, and the contents that must have reached the provider, for every client.

export const greeting = 'You said: Hello there'

const place = { type: 'string', enum: ['Paris', 'Rome'] }
export const citySchema = {
  type: 'object' as const,
  properties: { city: place },
  required: ['city'],
  additionalProperties: false,
}
export const placeSchema = {
  type: 'object' as const,
  properties: { city: place, sunny: { type: 'boolean' } },
  required: ['city', 'sunny'],
  additionalProperties: false,
}

/** The tools that are offered everywhere, and their results. */
export const offered = [
  { name: 'get_weather', description: 'The weather of a city', result: 'sunny' },
  { name: 'local_time', description: 'The time in a city', result: '12:00' },
] as const
export const resultOf = (name: string): string => offered.find((one) => one.name === name)?.result ?? 'no such tool'

const weather = { id: 'w1', name: 'get_weather', arguments: { city: 'Paris' } }
const time = { id: 't1', name: 'local_time', arguments: { city: 'Rome' } }

const hello: Reply[] = [{ text: greeting }]
const loop: Reply[] = [
  { text: 'I look it up.', calls: [weather, time] },
  { calls: [{ ...weather, id: 'w2', arguments: { city: 'Rome' } }] },
  { text: 'Sunny at 12:00.' },
]
const thinking: Reply[] = [
  { thought: 'First the weather.', calls: [weather] },
  { thought: 'That is enough.', text: 'It is sunny.' },
  { text: 'You are welcome.' },
]

const call = (id: string, name: string): ReplyCall => ({ id, name, arguments: { city: 'Paris' } })

/** In the simulator's format, so that it can be a column as well. */
export const simulatorConversations = {
  greeting: [{ text: greeting, cached: 10 }],
  secondTurn: [{ text: greeting }, { text: greeting }],
  rounds: [
    { thought: 'First the weather.', calls: [call('w1', 'get_weather')] },
    { thought: 'Then the time.', calls: [call('t1', 'local_time')] },
    { text: 'The tool said: 12:00' },
  ],
  parallel: [
    {
      calls: [
        { ...call('w1', 'get_weather'), nameless: true as const },
        { ...call('w2', 'local_time'), nameless: true as const },
      ],
    },
    { text: 'The tools said: 12:00; sunny' },
  ],
  run: [{ calls: [call('w1', 'get_weather')] }, { text: 'The tool said: sunny' }],
  picture: [{ text: 'You said: What is this? I see an image (image/png, 67 bytes).' }],
}

export const conversations = {
  hello,
  loop,
  thinking,
  json: [{ text: '{"city":"Paris","sunny":true}' }] as Reply[],
  jsonTool: [{ calls: [{ id: 'j1', name: 'json', arguments: { city: 'Paris', sunny: true } }] }] as Reply[],
  search: [{ search: 'ruby version', text: source.quote, cited: true }] as Reply[],
}

/** One black pixel. */
export const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=='
/** A PDF with nothing in it. */
export const pdf = Buffer.from('%PDF-1.4\n%%EOF\n').toString('base64')

/** The greeting as it must have arrived. */
export function expectGreeted({ provider }: Way): void {
  const { system, turns } = provider.arrived(0)
  expect(system).toContain('Be brief.')
  expect(turns).toMatchObject([{ role: 'user', text: 'Hello there' }])
}

/** All three requests of the tools loop: tools, calls with their arguments, results in their places. */
export function expectLooped({ provider }: Way): void {
  for (const index of [0, 1, 2]) {
    const arrived = provider.arrived(index)
    expect(arrived.tools).toEqual(offered.map(({ name }) => name))
    expectPaired(arrived)
  }
  const { turns } = provider.arrived(2)
  expect(turns.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user'])
  expect(turns[1]?.calls).toMatchObject([
    { name: 'get_weather', arguments: { city: 'Paris' } },
    { name: 'local_time', arguments: { city: 'Rome' } },
  ])
  expect(turns[1]?.text).toBe('I look it up.')
  expect(turns[2]?.results.map(({ text }) => text)).toEqual([
    expect.stringContaining('sunny'),
    expect.stringContaining('12:00'),
  ])
  expect(turns[3]?.calls).toMatchObject([{ name: 'get_weather', arguments: { city: 'Rome' } }])
  expect(turns[4]?.results).toMatchObject([{ text: expect.stringContaining('sunny') }])
}

/** Both rounds of tools: calls and results in their places, and the thought before the first call as it came. */
export function expectTwoRounds({ wire, provider }: Way, { thought }: { thought: boolean }): void {
  for (const index of [0, 1, 2]) {
    const arrived = provider.arrived(index)
    expect(arrived.tools).toEqual(offered.map(({ name }) => name))
    expectPaired(arrived)
  }
  // Ollama knows no choice of tools. DeepSeek takes no demand while it thinks.
  const mustCall = wire.slug === 'ollama' ? undefined : true
  expect([0, 1, 2].map((index) => provider.arrived(index).mustCall)).toEqual([
    mustCall && false,
    mustCall && !wire.models.thinker.startsWith('deepseek/'),
    mustCall && false,
  ])
  const { turns } = provider.arrived(2)
  const paris = { city: 'Paris' }
  expect(turns).toMatchObject([
    { role: 'user', text: 'Weather and time in Paris?' },
    { role: 'assistant', calls: [{ name: 'get_weather', arguments: paris }] },
    { role: 'user', results: [{ text: expect.stringContaining('sunny, now ask local_time') }] },
    { role: 'assistant', calls: [{ name: 'local_time', arguments: paris }] },
    { role: 'user', results: [{ text: expect.stringContaining('12:00') }] },
  ])
  for (const { body } of thought ? provider.received.slice(1) : []) {
    expect(JSON.stringify(body)).toContain(wire.thoughtSent('First the weather.'))
  }
}

/** The reasoning before a call went back to its provider unchanged, and no signature of the router was sent. */
export function expectThoughtSent({ wire, provider }: Way): void {
  const [, second, third] = provider.received
  for (const request of [second, third]) {
    const text = JSON.stringify(request?.body)
    expect(text).toContain(wire.thoughtSent('First the weather.'))
    expect(text).not.toContain('router1.')
  }
  expectPaired(provider.arrived(2))
}

/** A conversation that began with another provider arrives whole, without that provider's signatures and the router's. */
export function expectTakenOver({ provider }: Way): void {
  const arrived = provider.arrived(0)
  expectPaired(arrived)
  expect(arrived.turns.flatMap(({ calls }) => calls)).toMatchObject([
    { name: 'get_weather', arguments: { city: 'Paris' } },
  ])
  expect(arrived.turns.flatMap(({ results }) => results)).toMatchObject([{ text: expect.stringContaining('sunny') }])
  const body = JSON.stringify(provider.received[0]?.body)
  expect(body).not.toContain('router1.')
  expect(body).not.toContain(signatureOf('First the weather.'))
}
