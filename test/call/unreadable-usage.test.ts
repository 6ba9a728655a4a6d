import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Json, JsonObject } from '../../src/core/json.ts'
import { completionTokens, promptTokens, usageClasses } from '../../src/core/usage.ts'
import { counted } from './answers.ts'
import { routeAt, routes } from './examples.ts'
import { answering, plainWorld, type World } from './world.ts'

// Usage that no provider should send, for every kind of call: it fails none, and makes none cheaper.

let world: World
beforeAll(async () => {
  world = await plainWorld()
})
beforeEach(() => world.clear())
afterAll(async () => await world?.end())

const counting = routes
  .filter(({ isFree }) => !isFree)
  .flatMap(({ stream, isBytes, ...route }) => [
    // Sound alone counts nothing.
    ...(isBytes ? [] : [{ route: { ...route, stream }, path: route.path, form: 'whole', streams: false }]),
    ...(stream ? [{ route: { ...route, stream, isBytes }, path: route.path, form: 'streamed', streams: true }] : []),
  ])

type Counting = (typeof counting)[number]

/** The row of a call whose provider reports this usage. */
async function rowOf({ route, streams }: Counting, usage: (usual: JsonObject) => JsonObject) {
  const key = await world.key()
  world.acts.one.push(answering({ usage }))
  const { status, text } = await world.ask(route as never, { secret: key.secret, stream: streams })
  expect([status, /"error":\s*\{/.test(text)], text).toEqual([200, false])
  await expect.poll(() => world.rows(key)).toHaveLength(1)
  const [row] = await world.rows(key)
  if (!row) throw new Error('the call has no row')
  for (const name of usageClasses) expect(row.usage[name] ?? 0).toBeGreaterThanOrEqual(0)
  return { ...row, tokens: promptTokens(row.usage) + completionTokens(row.usage) }
}

/** Every member has a value. */
const filled = (value: Json) => (usual: JsonObject) =>
  Object.fromEntries(Object.keys(usual).map((name) => [name, value]))

const unreadable: readonly Json[] = ['many', true, -7, 0.5, 1e300, [], [1, 2], {}, { count: 3 }]

test.each(counting)('a call of $path, $form, does not fail because of its usage, which is estimated', async (one) => {
  for (const value of unreadable) {
    const { cost, tokens } = await rowOf(one, filled(value))
    expect([cost.estimated, tokens > 0], JSON.stringify(value)).toEqual([true, true])
  }
})

test.each(counting)('a call of $path, $form, is charged for counts that are written as strings', async (one) => {
  const usual = await rowOf(one, (usage) => usage)
  const written = await rowOf(one, (usage) =>
    Object.fromEntries(
      Object.entries(usage).map(([name, count]) => [name, typeof count === 'number' ? `${count}` : (count as Json)]),
    ),
  )
  expect([written.usage, written.cost]).toEqual([usual.usage, usual.cost])
})

test.each(counting)('details of a call of $path, $form, that cannot be leave its total as it is', async (one) => {
  const usual = await rowOf(one, (usage) => usage)
  for (const count of ['3', null, -500, 7_000, 1.5, 'x', [1], {}] as Json[]) {
    const { cost, tokens } = await rowOf(one, (usage) => ({
      ...usage,
      prompt_tokens_details: { cached_tokens: count, audio_tokens: count },
      completion_tokens_details: {
        reasoning_tokens: count === 7_000 || count === '3' ? 1 : count,
        audio_tokens: count,
      },
      output_tokens_details: { reasoning_tokens: count === 7_000 || count === '3' ? 1 : count, text_tokens: count },
      input_tokens_details: { cached_tokens: count, image_tokens: count },
    }))
    expect([tokens, cost.nanoUsd > 0], JSON.stringify(count)).toEqual([usual.tokens, true])
  }
})

const chats = counting.filter(({ path }) => path === '/v1/chat/completions' || path === '/v1/responses')

test.each(chats)('reasoning beyond the output of a call of $path, $form, is charged beside it', async (one) => {
  const { usage, cost } = await rowOf(one, (usage) => ({
    ...usage,
    completion_tokens_details: { reasoning_tokens: 7_000 },
    output_tokens_details: { reasoning_tokens: 7_000 },
  }))
  expect([usage.output, usage.reasoning, cost.estimated]).toEqual([counted.output, 7_000, true])
})

test.each(chats)('a sum beyond the parts of a call of $path, $form, is output', async (one) => {
  const { usage } = await rowOf(one, (usage) => ({ ...usage, total_tokens: counted.input + counted.output + 20 }))
  expect(completionTokens(usage)).toBe(counted.output + 20)
})

test.each(chats)('a sum beyond the context window of a call of $path, $form, is output up to that', async (one) => {
  const { usage, cost } = await rowOf(one, (usage) => ({ ...usage, total_tokens: 500_000_000 }))
  expect([completionTokens(usage), promptTokens(usage), cost.estimated]).toEqual([100_000, counted.input, true])
})

test('counts of a stream that end with none are charged', async () => {
  const key = await world.key()
  const chunk = (more: JsonObject) => ({
    id: 'c1',
    created: 1,
    object: 'chat.completion.chunk',
    model: 'chat',
    ...more,
  })
  const choices = [{ index: 0, delta: { content: 'Hi' }, finish_reason: null as string | null }]
  world.acts.one.push((response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const usages = [
      [1_000, 500],
      [0, 0],
    ].map(([prompt_tokens, completion_tokens]) => ({ prompt_tokens, completion_tokens })) as JsonObject[]
    const ends = [{ index: 0, delta: {}, finish_reason: 'stop' }]
    const chunks = [
      chunk({ choices }),
      chunk({ choices: ends }),
      ...usages.map((usage) => chunk({ choices: [], usage })),
    ]
    response.end(`${chunks.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('')}data: [DONE]\n\n`)
  })
  expect((await world.ask(routeAt('/v1/chat/completions'), { secret: key.secret, stream: true })).status).toBe(200)
  await expect.poll(() => world.rows(key)).toHaveLength(1)
  expect(await world.rows(key)).toMatchObject([{ usage: { input: 1_000, output: 500 }, outcome: 'complete' }])
})
