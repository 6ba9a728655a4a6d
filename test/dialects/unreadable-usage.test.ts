import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'
import type { ModelEntry } from '../../src/core/models/model.ts'
import type { Reply } from '../../src/core/reply.ts'
import { type Usage, usageClasses } from '../../src/core/usage.ts'
import { readStream, triedEvents, triedReply } from '../../src/manifest/check/examples.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { bareProvider } from '../../src/manifest/read/dialect.ts'
import type { Example } from '../../src/manifest/read/layer.ts'
import { readReply } from '../../src/manifest/run/read-reply.ts'
import { targetFacts, variantOf } from '../../src/manifest/target.ts'
import { chargeOf } from '../../src/money/charge.ts'
import { measuredOperation, measuredUsage } from '../../src/money/meter.ts'
import { shippedFiles } from '../helpers/shipped.ts'
import { testInRuns } from '../helpers/slow.ts'
import { foldFacts } from './replay.ts'

// The examples of every dialect and manifest, with a value in their usage that cannot be a count.

/** An answer whose usage is read: whole, or as the events of a stream. */
type Answer = JsonObject | (JsonObject | string)[]
type Read = { content: JsonObject; usage: Usage; estimated: boolean }
type Case = { name: string; answer: Answer; members: Path[]; read(answer: Answer): Promise<Read> }
type Path = (string | number)[]

const prices = { input_price: 1e-6, cached_price: 1e-7, caching_price: 2e-6, output_price: 5e-6 }
const entry = {
  api: 'chat',
  pricing: [{ prompt_tokens_threshold: 0, ...prices }],
  other_prices: { web_search_per_call: 0.01, per_query: 0.002 },
} as unknown as ModelEntry
const bounds = { prompt: 1_000_000, output: 1_000_000, reportedUsd: 100 }

/** Values that cannot be counts; digits in a string are read as their number. */
const garbage: readonly Json[] = [
  ...['many', '', '-3', '1e3', '0x10', true, false, null],
  ...[-1, -5_000, 0.5, 1e15, 1e300, [], [1, 2], {}, { count: 5 }, [{ tokens: 'x' }], [[]]],
]

function chargeOfUsage(usage: Usage): number {
  return chargeOf(usage, { entry, byReport: true }, 0).nanoUsd
}

function casesOf(name: string, provider: Provider, examples: readonly Example[]): Case[] {
  return examples.flatMap((example) => {
    const model = example.request?.model ?? 'model'
    const serving = provider.variants?.[variantOf(provider, model)]?.provider ?? provider
    const known = targetFacts(serving, { model })
    const facts = { ...known, ...example.target, traits: { ...known.traits, ...example.target?.traits } }
    const trial = { provider: serving, example, facts }
    const answers: [string, Answer | undefined, Case['read']][] = [
      ['whole', example.answers, (answer) => readWhole(trial, answer as JsonObject)],
      ['stream', example.events, (answer) => readEvents(trial, answer as JsonObject[])],
    ]
    return answers.flatMap(([form, answer, read]) => {
      const members = answer === undefined ? [] : usageMembers(answer as Json)
      if (answer === undefined || members.length === 0) return []
      return { name: `${name}: ${example.name} (${form})`, answer, members, read }
    })
  })
}

type Trial = Parameters<typeof triedReply>[0]

async function readWhole(trial: Trial, answer: JsonObject): Promise<Read> {
  if (trial.example.operation) return measured(await triedReply(trial, answer))
  const { reply } = await readReply(trial.provider, answer, foldFacts, trial.facts)
  return measuredChat(reply)
}

async function readEvents(trial: Trial, events: JsonObject[]): Promise<Read> {
  if (trial.example.operation) return measured(await triedEvents(trial, events))
  const { events: _, complete: __, ...reply } = await readStream(trial.provider, events, foldFacts, trial.facts)
  return measuredChat(reply as unknown as Reply)
}

function measuredChat(reply: Reply): Read {
  const { usage: _, ...content } = reply
  return {
    content: content as unknown as JsonObject,
    ...measuredUsage(reply, { promptTokens: 50, complete: true, choices: 1, bounds }),
  }
}

function measured(reply: JsonObject): Read {
  const { usage, meta: _, ...content } = reply
  const estimate = { input: 50, output: 20 }
  const known = measuredOperation(usage as Usage, { counted: {}, estimate, complete: true, entry, bounds })
  return { content, ...known }
}

const containers = /^(usage|usageMetadata|usage_metadata|billed_units|tool_usage)$/
const counts = /[a-z](_tokens|Tokens|_count|Count|_units|_requests|_calls)$/

/** The paths of all members of a usage; members at the top that count. */
function usageMembers(value: Json, path: Path = [], inUsage = false): Path[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => usageMembers(item, [...path, index], inUsage))
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([name, member = null]) => {
    const isCount = typeof member === 'number' && (inUsage || (path.length <= 1 && counts.test(name)))
    return [
      ...(isCount || containers.test(name) ? [[...path, name]] : []),
      ...usageMembers(member, [...path, name], inUsage || containers.test(name)),
    ]
  })
}

function withValue<T extends Json>(value: T, path: Path, member: Json | undefined): T {
  const copy = structuredClone(value)
  const inner = path.slice(0, -1).reduce<Json>((at, name) => (at as JsonObject)[name] as Json, copy) as JsonObject
  if (member === undefined) delete inner[path.at(-1) as string]
  else inner[path.at(-1) as string] = member
  return copy
}

/** The content alone: events of completions still have their usage. */
function withoutUsage(content: JsonObject): JsonObject {
  return JSON.parse(JSON.stringify(content, (name, value) => (name === 'usage' ? undefined : value)))
}

/** The answer is read as before, its charge is that of what can be read at least, and nothing is negative. */
async function expectReadable({ name, answer, read }: Case, path: Path, values: readonly Json[]): Promise<void> {
  const sound = await read(answer)
  const without = await read(withValue(answer as Json, path, undefined) as Answer)
  for (const value of values) await expectSame({ name, answer, read }, { sound, without, path, value })
}

async function expectSame(
  { name, answer, read }: Omit<Case, 'members'>,
  { sound, without, path, value }: { sound: Read; without: Read; path: Path; value: Json },
): Promise<void> {
  const about = `${name}: ${path.join('.')} = ${JSON.stringify(value)}`
  const broken = await read(withValue(answer as Json, path, value) as Answer).catch((error) => {
    throw new Error(`${about}: ${error.message}`)
  })
  expect(withoutUsage(broken.content), about).toEqual(withoutUsage(sound.content))
  for (const unit of usageClasses) expect(broken.usage[unit] ?? 0, `${about}: ${unit}`).toBeGreaterThanOrEqual(0)
  expect(chargeOfUsage(broken.usage), about).toBeGreaterThanOrEqual(chargeOfUsage(without.usage))
  const isTotal = /^(prompt_tokens|completion_tokens|input_tokens|output_tokens)$/.test(String(path.at(-1)))
  if (isTotal && value !== null && !Array.isArray(answer)) expect(broken.estimated, about).toBe(true)
}

const names = readdirSync(join(import.meta.dirname, '../../providers/dialects')).map((file) => basename(file, '.yaml'))
let dialects: Map<string, Case[]>
let manifests: Case[]
beforeAll(async () => {
  const files = await shippedFiles()
  dialects = new Map(
    files.dialects.map((dialect) => {
      const { name, layer } = dialect
      return [name, casesOf(name, bareProvider(dialect), layer.examples)]
    }),
  )
  manifests = files.providers.flatMap(({ provider, layers }) =>
    casesOf(provider.slug, provider, layers?.at(-1)?.examples ?? []),
  )
})

describe('a value in a usage that cannot be a count', () => {
  test('is looked for in examples of every dialect, in whole answers and in streams', () => {
    expect([...dialects.keys()].sort()).toEqual(names)
    for (const [name, cases] of dialects) expect(cases.length, name).toBeGreaterThan(0)
    expect(manifests.length).toBeGreaterThan(60)
  })

  test.each(names)('neither fails an answer in %s nor lowers its charge', async (dialect) => {
    const cases = dialects.get(dialect) ?? []
    expect(cases.length).toBeGreaterThan(0)
    for (const one of cases) {
      for (const path of one.members) await expectReadable(one, path, garbage)
    }
  })

  testInRuns(
    'neither fails an answer of a shipped provider nor lowers its charge',
    { fast: 400, slow: 10_000 },
    async (numRuns) => {
      const one = fc
        .constantFrom(...manifests)
        .chain((chosen) =>
          fc.tuple(fc.constant(chosen), fc.constantFrom(...chosen.members), fc.constantFrom(...garbage)),
        )
      await fc.assert(
        fc.asyncProperty(one, ([chosen, path, value]) => expectReadable(chosen, path, [value])),
        { numRuns },
      )
    },
  )
})
