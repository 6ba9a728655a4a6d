import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'
import { completionTokens } from '../../src/core/usage.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { type ProviderReply, readMetered, readReply } from '../../src/manifest/run/read-reply.ts'
import { targetFacts } from '../../src/manifest/target.ts'
import { foldFacts } from '../dialects/replay.ts'
import { recordings, recordingsMissing } from '../helpers/recordings.ts'
import { shippedFiles } from '../helpers/shipped.ts'

const { providers, dialects } = await shippedFiles()
const shipped = providers.flatMap(({ provider }) => [provider, ...(provider.variants ?? []).map((one) => one.provider)])
const dialectOf = ({ dialect, slug }: Provider) => dialect ?? slug

/** Whole answers of a format: those in the examples of its dialect. */
const answers = new Map(
  dialects
    .filter(({ layer }) => layer.chat)
    .map(({ name, layer }) => [
      name,
      layer.examples.flatMap(({ answers, operation }): JsonObject[] => (answers && !operation ? [answers] : [])),
    ]),
)

/** Both readings of an answer; undefined where it cannot be read as a whole. */
async function bothReadings(provider: Provider, answer: JsonObject) {
  const target = targetFacts(provider, { model: 'model' })
  try {
    const whole = await readReply(provider, answer, foldFacts, target)
    return { whole, metered: await readMetered(provider, answer, foldFacts, target) }
  } catch (error) {
    if (error instanceof RouterError) return undefined
    throw error
  }
}

/** What of a reading decides about a call; the parts only where they are read. */
function decisive({ body, reply, error }: ProviderReply, all: ProviderReply): object {
  const { id, model, created, finish, finish_raw, usage, parts } = reply
  const isRead = parts.some(({ type }) => ['tool_call', 'search', 'opaque'].includes(type))
  const isCounted = completionTokens(usage) === 0
  // That a reply with calls ended with them is no matter for who gets the provider's own.
  const end = finish === 'tool_calls' ? 'stop' : finish
  return {
    body,
    error,
    id,
    model,
    created,
    end,
    finish_raw,
    usage,
    parts: !all.error && (isRead || isCounted) ? parts : undefined,
  }
}

async function expectAgreement(provider: Provider, answer: JsonObject): Promise<void> {
  const read = await bothReadings(provider, answer)
  if (read) expect(decisive(read.metered, read.whole)).toEqual(decisive(read.whole, read.whole))
}

/** Providers whose recorded replies have the format of a dialect. */
const sameFormat: { [dialect: string]: string[] } = {
  'openai-chat': ['azure-openai', 'deepseek', 'groq', 'mistral', 'openrouter', 'perplexity', 'together', 'xai'],
}

describe.skipIf(recordingsMissing)('recorded', () => {
  test.each([...answers.keys()])('replies of %s: what is metered is what the whole mapping says', async (name) => {
    const recorded = [name, ...(sameFormat[name] ?? [])]
      .flatMap(recordings)
      .flatMap(({ response }) => (isObject(response.body) ? [response.body] : []))
    expect(recorded.length).toBeGreaterThan(0)
    for (const provider of shipped.filter((one) => dialectOf(one) === name)) {
      for (const answer of recorded) await expectAgreement(provider, answer)
    }
  })
})

/** An answer with one or several members that are missing, repeated, empty, or of another type. */
function mutations(seeds: readonly JsonObject[]): fc.Arbitrary<JsonObject> {
  const change = fc.record({
    at: fc.nat(),
    to: fc.constantFrom<Json | undefined>(undefined, null, '', 'x', 0, 7, -3, true, [], {}, [null], [{ type: 'x' }]),
  })
  return fc
    .tuple(fc.constantFrom(...seeds), fc.array(change, { minLength: 1, maxLength: 4 }))
    .map(([seed, changes]) => {
      const answer = structuredClone(seed)
      for (const { at, to } of changes) {
        const places = placesIn(answer)
        const place = places[at % places.length]
        if (!place) continue
        const [holder, name] = place
        if (to === undefined) delete holder[name]
        else holder[name] = structuredClone(to)
      }
      return answer
    })
}

/** The members of a value and of everything in it. */
function placesIn(value: unknown): [holder: { [name: string]: Json }, name: string][] {
  if (value === null || typeof value !== 'object') return []
  const holder = value as { [name: string]: Json }
  return Object.keys(holder).flatMap((name) => [[holder, name] as [typeof holder, string], ...placesIn(holder[name])])
}

test.each([...answers].filter(([, seeds]) => seeds.length > 0))(
  'replies of %s, however broken: what is metered is what the whole mapping says',
  async (name, seeds) => {
    const own = shipped.filter((one) => dialectOf(one) === name)
    expect(own.length).toBeGreaterThan(0)
    await fc.assert(
      fc.asyncProperty(fc.nat(own.length - 1), mutations(seeds), (index, answer) =>
        expectAgreement(own[index] as Provider, answer),
      ),
      { numRuns: 200 },
    )
  },
)

test('the parts of a reply are read where they are remembered, billed or counted', async () => {
  const provider = shipped.find(({ slug }) => slug === 'openai') as Provider
  const answer = (message: JsonObject, usage: Json = { prompt_tokens: 1, completion_tokens: 2 }): JsonObject => ({
    id: 'c',
    model: 'm',
    created: 1,
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    usage,
  })
  const types = async (given: JsonObject) =>
    (await readMetered(provider, given, foldFacts, targetFacts(provider, { model: 'm' }))).reply.parts.map(
      ({ type }) => type,
    )
  expect(await types(answer({ content: 'Hi' }))).toEqual([])
  expect(await types(answer({ content: 'Hi' }, null))).toEqual(['text'])
  expect(
    await types(answer({ content: 'Hi', tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{}' } }] })),
  ).toEqual(['text', 'tool_call'])
})
