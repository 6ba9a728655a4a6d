import '../../helpers/fixed-seed.ts'
import type { ServerResponse } from 'node:http'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { CallRecord } from '../../../src/core/call.ts'
import type { Store } from '../../../src/store/open.ts'
import {
  answerJson,
  beginStream,
  type LoopbackProvider,
  loopbackProvider,
  type Received,
} from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { newKey, storeIn } from './budget-world.ts'

// Bursts of calls whose providers fail, bill and break off: whatever retries and recoveries follow, no limit is passed, a call is
// one request, and each nano-dollar is in one row.

/** Of prompts and of answers. */
const tokenNano = 1_000n
const pricing = '[{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000001 }]'
const manifest = (slug: string, url: string) => `slug: ${slug}
name: ${slug}
base_url: ${url}
auth: { scheme: none }
dialect: openai-chat
traits: [{ match: ".*", facts: { prefill: true } }]
models: { m1: { api: chat, pricing: ${pricing} } }
`

const slugs = ['one', 'two', 'three'] as const
const policies = ['error', 'hold', 'continue', 'restart'] as const
/** What a provider does with a call. */
const manners = ['answers', 'fails', 'bills', 'opens', 'cuts', 'differs'] as const
type Manner = (typeof manners)[number]
/** The text of each call says what each provider does with it, one letter each. */
const letters = new Map(manners.map((manner, index) => [String(index), manner]))

let providers: LoopbackProvider[]
let router: TestRouter
let store: Store
/** The router keeps the limits of groups for a while: they are there before its first call. */
let groups: { id: string; limitNano: bigint }[]

beforeAll(async () => {
  providers = await Promise.all(slugs.map((_, place) => loopbackProvider((asked, to) => serve(place, asked, to))))
  router = await testRouter({
    files: Object.fromEntries(
      slugs.map((slug, at) => [`providers/${slug}.yaml`, manifest(slug, providers[at]?.url ?? '')]),
    ),
    settings: {
      routing: { retries: 1 },
      policies: Object.fromEntries(
        policies.map((on_cut) => [on_cut, { targets: slugs.map((slug) => `${slug}/m1`), on_cut }]),
      ),
    },
  })
  store = await storeIn(router.folder)
  const organization = (await store.organizations.list())[0]?.id ?? ''
  await store.organizations.credit(organization, 1_000_000_000_000n)
  groups = await Promise.all(
    Array.from({ length: mostBursts }, async (_, at) => {
      const limitNano = BigInt(2_000 + 2_500 * at) * tokenNano
      return {
        ...(await store.groups.create({ organization, name: `group ${at}`, monthlyLimitNano: limitNano })),
        limitNano,
      }
    }),
  )
})

afterAll(async () => {
  await store?.close()
  await router?.end()
  for (const provider of providers ?? []) await provider.close()
})

const words = ['The ', 'quick ', 'brown ', 'fox ']

/** Almost as many as the prompts can have. */
const promptTokens = 1_000

function serve(place: number, { body }: Received, response: ServerResponse): void {
  const letter = /\[(\d+)\]/.exec(JSON.stringify(body))?.[1]?.[place] ?? '0'
  const manner = letters.get(letter) as Manner
  const most = body.max_tokens ?? 10
  const usage = { prompt_tokens: promptTokens, completion_tokens: most, total_tokens: promptTokens + most }
  if (manner === 'fails') answerJson(response, { error: { message: 'No.' } }, 500)
  else if (manner === 'bills') answerJson(response, { choices: 'none', usage })
  else if (body.stream === true) writeStream(manner, usage, response)
  else writeWhole(manner, usage, response)
}

const facts = { id: 'c', created: 1, model: 'm1' }

function writeWhole(manner: Manner, usage: object, response: ServerResponse): void {
  const choices = [{ index: 0, message: { role: 'assistant', content: words.join('') }, finish_reason: 'stop' }]
  if (manner === 'opens' || manner === 'cuts') {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write('{', () => response.destroy())
  } else answerJson(response, { ...facts, choices, usage })
}

function writeStream(manner: Manner, usage: object, response: ServerResponse): void {
  const chunk = (choices: object[], more = {}) =>
    `data: ${JSON.stringify({ ...facts, object: 'chat.completion.chunk', choices, ...more })}\n\n`
  const delta = (delta: object, finish_reason: string | null = null) => chunk([{ index: 0, delta, finish_reason }])
  const said = manner === 'differs' ? ['Another ', 'one.'] : manner === 'cuts' ? words.slice(0, 2) : words
  const content = said.map((content) => delta({ content })).join('')
  beginStream(response)
  response.write(delta({ role: 'assistant', content: '' }))
  const breaks = () => response.destroy()
  if (manner === 'opens') response.write(': \n\n', breaks)
  else if (manner === 'cuts') response.write(content, breaks)
  else response.end(`${content}${delta({}, 'stop')}${chunk([], { usage })}data: [DONE]\n\n`)
}

type Asked = {
  policy: (typeof policies)[number]
  does: readonly Manner[]
  stream: boolean
  payer: number
  most: number
}

const whoPays = { payer: fc.nat(2), most: fc.integer({ min: 5, max: 60 }) }
const anyManner = fc.constantFrom(...manners)
const anyCall: fc.Arbitrary<Asked> = fc.record({
  policy: fc.constantFrom(...policies),
  does: fc.array(anyManner, { minLength: 3, maxLength: 3 }),
  stream: fc.boolean(),
  ...whoPays,
})
/** A stream that breaks off, whatever the others do with it then. */
const brokenStream: fc.Arbitrary<Asked> = fc.record({
  policy: fc.constantFrom('continue', 'restart'),
  does: fc
    .tuple(anyManner, anyManner)
    .chain(([one, other]) =>
      fc.constantFrom<Manner[]>(['cuts', one, other], ['fails', 'cuts', one], ['cuts', 'cuts', other]),
    ),
  stream: fc.constant(true),
  ...whoPays,
})
const anyKeyLimit = fc.integer({ min: 1_000, max: 20_000 }).map((tokens) => BigInt(tokens) * tokenNano)
const mostBursts = 8

/** Makes a call: its status, and the id of its request. */
async function make({ policy, does, stream, most }: Asked, secret: string, id: string): Promise<number> {
  const told = does.map((manner) => manners.indexOf(manner)).join('')
  const body = { model: policy, stream, max_tokens: most, messages: [{ role: 'user', content: `[${told}]` }] }
  const headers = { authorization: `Bearer ${secret}`, 'x-request-id': id }
  const response = await router.call('/v1/chat/completions', body, headers)
  await response.text()
  return response.status
}

/** The rows of each call: those of its attempts, and its own, which is the last. */
function checkRows(rows: readonly CallRecord[], statuses: ReadonlyMap<string, number>): void {
  for (const [id, status] of statuses) {
    const own = rows.filter(({ requestId }) => requestId === id)
    const calls = own.filter(({ attemptOf }) => attemptOf === undefined)
    // What could not be paid from the beginning has no row.
    if (own.length === 0) expect(status).toBe(402)
    else expect(calls, `rows of ${id}`).toHaveLength(1)
    for (const { attemptOf, attempts } of own) {
      if (attemptOf === undefined) continue
      expect(attemptOf).toBe(calls[0]?.id)
      expect(attempts).toBeLessThanOrEqual(calls[0]?.attempts ?? 0)
    }
  }
}

const totalNano = (rows: readonly CallRecord[]) => rows.reduce((sum, { cost }) => sum + BigInt(cost.nanoUsd), 0n)

let bursts = 0
const seen = { attempts: 0, billed: 0, cut: 0, resumed: 0, given_up: 0, refused: 0, whole: 0 }

test('no limit is passed, a call is one request, and each nano-dollar is in one row', { timeout: 60_000 }, async () => {
  const scenario = fc.asyncProperty(
    anyKeyLimit,
    fc.array(fc.oneof(anyCall, brokenStream), { minLength: 1, maxLength: 20 }),
    async (keyLimit, calls) => {
      const burst = bursts++
      const group = groups[burst] as { id: string; limitNano: bigint }
      const keys = [
        await newKey(store, { monthlyLimitNano: keyLimit }),
        await newKey(store, { monthlyLimitNano: keyLimit, groupId: group.id }),
        await newKey(store, { groupId: group.id }),
      ] as const
      const statuses = await Promise.all(
        calls.map((call, at) => make(call, keys[call.payer]?.secret ?? '', `burst-${burst}-${at}`)),
      )
      const now = Date.now()
      const rows = await Promise.all(keys.map(async ({ id }) => await Array.fromAsync(store.ledger.each({ key: id }))))
      checkRows(rows.flat(), new Map(statuses.map((status, at) => [`burst-${burst}-${at}`, status])))
      for (const [at, { id }] of keys.entries())
        expect(await store.spend.ofKey(id, now)).toBe(totalNano(rows[at] ?? []))
      for (const { id } of keys.slice(0, 2)) expect(await store.spend.ofKey(id, now)).toBeLessThanOrEqual(keyLimit)
      expect(await store.spend.ofGroup(group.id, now)).toBeLessThanOrEqual(group.limitNano)
      const attempts = rows.flat().filter(({ attemptOf }) => attemptOf !== undefined)
      seen.attempts += attempts.length
      seen.billed += attempts.filter(({ usage }) => usage.input === promptTokens).length
      const cut = attempts.filter(({ outcome, cost }) => outcome === 'partial' && cost.estimated)
      const outcomes = new Map(rows.flat().map(({ id, outcome }) => [id, outcome]))
      const endings = cut.map(({ attemptOf = '' }) => outcomes.get(attemptOf))
      seen.cut += cut.length
      seen.resumed += endings.filter((outcome) => outcome === 'complete').length
      seen.given_up += endings.filter((outcome) => outcome !== 'complete').length
      seen.refused += statuses.filter((status) => status === 402).length
      seen.whole += statuses.filter((status) => status === 200).length
    },
  )
  await fc.assert(scenario, { numRuns: mostBursts, endOnFailure: true, interruptAfterTimeLimit: 30_000 })
  expect(await store.verifySums(10)).toMatchObject({ wrong: 0 })
  // The bursts were what they are meant to be.
  for (const [what, count] of Object.entries(seen)) expect(count, what).toBeGreaterThan(0)
})
