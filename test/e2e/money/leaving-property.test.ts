import '../../helpers/fixed-seed.ts'
import fc from 'fast-check'
import { afterAll, beforeAll, expect } from 'vitest'
import type { JsonObject } from '../../../src/core/json.ts'
import { pause, within } from '../../helpers/provider.ts'
import { testInRuns } from '../../helpers/slow.ts'
import { limit } from '../../helpers/time.ts'
import { newKey } from './budget-world.ts'
import {
  billOf,
  endpoints,
  type Format,
  formats,
  type HiddenWorld,
  openHiddenWorld,
  requestIn,
  writeText,
  writeUsage,
  writeWhole,
} from './hidden-usage-world.ts'

// Clients that leave at random moments, with limits and without, at providers that bill thinking which nobody sees.

const maxTokens = 6_000
const mostBursts = 20

type Asked = {
  api: Format
  slug: Format
  stream: boolean
  /** How the client leaves, and after how many milliseconds. */
  leaves: 'closes' | 'times_out' | 'stays'
  leavesAt: number
  /** When the provider sends its text, how much later the usage, and whether it ever does. */
  textAt: number
  usageAfter: number
  counts: 'counts' | 'is_silent' | 'cuts'
  hidden: number
  isLimited: boolean
}

const anyFormat = fc.constantFrom(...(Object.keys(formats) as Format[]))
const anyCall: fc.Arbitrary<Asked> = fc
  .record({
    api: anyFormat,
    slug: anyFormat,
    stream: fc.boolean(),
    leaves: fc.constantFrom('closes', 'times_out', 'stays'),
    leavesAt: fc.integer({ min: 1, max: 500 }),
    textAt: fc.nat(200),
    usageAfter: fc.nat(300),
    counts: fc.constantFrom('counts', 'counts', 'counts', 'is_silent', 'cuts'),
    hidden: fc.integer({ min: 500, max: 5_000 }),
    isLimited: fc.boolean(),
  })
  .map((call) => (call.leaves === 'stays' && call.counts === 'is_silent' ? { ...call, counts: 'cuts' } : call))

let world: HiddenWorld
let groups: { id: string; limitNano: bigint }[]
/** The calls by the number in their prompts, and what the provider has billed for each. */
const asked = new Map<number, Asked>()
const billed = new Map<number, number>()
/** When the provider received each, in Unix milliseconds: its attempt had begun by then, however late the call was served. */
const receivedAt = new Map<number, number>()

beforeAll(async () => {
  world = await openHiddenWorld({ budget: { wait_for_usage: '2s' } })
  const { organizations, groups: made } = world.store
  const organization = (await organizations.list())[0]?.id ?? ''
  // The router keeps the limits of groups for a while: they are there before its first call.
  groups = await Promise.all(
    Array.from({ length: mostBursts }, async (_, at) => {
      const limitNano = BigInt(60_000_000 + 40_000_000 * (at % 4))
      return { ...(await made.create({ organization, name: `group ${at}`, monthlyLimitNano: limitNano })), limitNano }
    }),
  )
  world.answer(async (received, response) => {
    const number = Number(/\[(\d+)\]/.exec(JSON.stringify(received.body))?.[1])
    const { textAt, usageAfter, counts, hidden } = asked.get(number) as Asked
    const isStream = received.body.stream === true
    billed.set(number, billOf(hidden))
    receivedAt.set(number, Date.now())
    await pause(textAt)
    if (isStream) writeText(received, response)
    await pause(usageAfter)
    if (counts === 'cuts') response.destroy()
    if (counts !== 'counts') return
    if (isStream) writeUsage(received, response, hidden)
    else writeWhole(received, response, hidden)
  })
})
afterAll(() => world?.close())

/** Makes a call and leaves it as it is meant to be left. */
async function make(
  { api, slug, stream, leaves, leavesAt, counts }: Asked,
  number: number,
  secret: string,
): Promise<number> {
  const prompt = `[${number}]`
  const text: JsonObject = api === 'responses' ? { input: prompt } : { messages: [{ role: 'user', content: prompt }] }
  const length = api === 'responses' ? { max_output_tokens: maxTokens } : { max_tokens: maxTokens }
  // The speed of a model that is never counted is not measured.
  const model = counts === 'counts' ? 'm1' : 'quiet'
  const body = requestIn(api, `${slug}/${model}`, { stream, ...text, ...length })
  const leaving = new AbortController()
  if (leaves === 'closes') setTimeout(() => leaving.abort(), leavesAt)
  const headers: Record<string, string> = leaves === 'times_out' ? { 'x-router-timeout': `${leavesAt}ms` } : {}
  try {
    const response = await world.post(endpoints[api], body, secret, { headers, signal: leaving.signal })
    await response.text()
    return response.status
  } catch {
    return 0
  }
}

/** Checks what was charged for a call that its provider received. */
async function checkPaid(number: number, key: string): Promise<void> {
  const { counts, stream } = asked.get(number) as Asked
  const [row] = await world.rows(key)
  const { nanoUsd = 0, estimated } = row?.cost ?? {}
  const what = JSON.stringify({ ...asked.get(number), row })
  if (counts === 'counts') {
    expect(nanoUsd / (billed.get(number) ?? 0), what).toBeGreaterThanOrEqual(0.98)
    expect(nanoUsd, what).toBeLessThanOrEqual(billed.get(number) ?? 0)
    return
  }
  const hasBegun = stream && row?.outcome === 'partial'
  const hasLeft = row?.error === 'client_gone' || row?.error === 'provider_timeout'
  // A provider that fails before it has begun to answer is not paid.
  if (!hasBegun && !hasLeft) return expect(nanoUsd, what).toBe(0)
  expect(estimated, what).toBe(true)
  // A hundred tokens a second, from the beginning of the attempt on: that of the call was earlier, its request came later.
  const endedAt = (row?.at ?? 0) + (row?.durationMs ?? 0)
  const seconds = (endedAt - (receivedAt.get(number) ?? 0) - limit(50)) / 1_000
  expect(row?.usage.output, what).toBeGreaterThanOrEqual(Math.min(maxTokens, Math.floor(seconds * 100)))
  expect(row?.usage.output, what).toBeLessThanOrEqual(Math.max(3, (row?.durationMs ?? 0) / 10 + 1))
}

let bursts = 0
let numbers = 0
const seen = { left: 0, timed_out: 0, refused: 0, estimated: 0, whole: 0 }

testInRuns(
  'whenever clients leave, they pay what providers bill, or the estimate, and no limit is passed',
  { fast: 5, slow: mostBursts - 5 },
  async (numRuns) => {
    const scenario = fc.asyncProperty(fc.array(anyCall, { minLength: 8, maxLength: 24 }), async (calls) => {
      const group = groups[bursts++ % mostBursts] as { id: string; limitNano: bigint }
      const made = await Promise.all(
        calls.map(async (call) => {
          const number = numbers++
          asked.set(number, call)
          return { call, number, key: await newKey(world.store, call.isLimited ? { groupId: group.id } : {}) }
        }),
      )
      const statuses = await within(
        20_000,
        'the calls',
        Promise.all(await made.map(({ call, number, key }) => make(call, number, key.secret))),
      )
      for (const { number, key } of made) if (billed.has(number)) await checkPaid(number, key.id)
      const rows = (await Promise.all(made.map(({ key }) => world.rowsOf(key.id)))).flat()
      expect(await world.store.spend.ofGroup(group.id, Date.now())).toBeLessThanOrEqual(group.limitNano)
      seen.left += rows.filter(({ error }) => error === 'client_gone').length
      seen.timed_out += rows.filter(({ error }) => error === 'provider_timeout').length
      seen.refused += statuses.filter((status) => status === 402).length
      seen.estimated += rows.filter(({ cost }) => cost.estimated).length
      seen.whole += statuses.filter((status) => status === 200).length
    })
    await fc.assert(scenario, { numRuns, endOnFailure: true })
    // The clients left as they were meant to.
    for (const [what, count] of Object.entries(seen)) expect(count, what).toBeGreaterThan(0)
  },
)
