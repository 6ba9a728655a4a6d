import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import type { ProviderEvent } from '../../src/core/events.ts'
import { Fold } from '../../src/core/fold.ts'
import { isObject, type JsonObject } from '../../src/core/json.ts'
import type { Usage } from '../../src/core/usage.ts'
import { bareProvider } from '../../src/manifest/read/dialect.ts'
import { readEvent } from '../../src/manifest/run/translate.ts'
import { targetFacts } from '../../src/manifest/target.ts'
import { estimateOutputTokens } from '../../src/money/estimate-tokens.ts'
import { measuredUsage } from '../../src/money/meter.ts'
import { shippedFiles } from '../helpers/shipped.ts'

const text = 'some words of a reply that is long enough to be counted, '.repeat(10)
const bounds = { prompt: 1e6, output: 1e6 }
const fold = () => new Fold({ signer: 'm', newId: () => 'id', now: () => 1 })

/** What is charged for a streamed reply that came to its end. */
function charged(events: readonly ProviderEvent[]): { usage: Usage; estimated: boolean } {
  const one = fold()
  for (const event of events) one.take(event)
  one.end()
  const { early } = one
  return measuredUsage(one.reply(), { promptTokens: 10, complete: true, early, choices: 1, bounds })
}

const estimate = (pieces: number) => estimateOutputTokens([{ type: 'text', text: text.repeat(pieces) }])

/** Formats whose streams can count early, and how they write a piece of text, a count and the end. */
const formats: {
  [dialect: string]: {
    begin?: JsonObject[]
    piece(words: string, output?: number): JsonObject
    count?(output: number): JsonObject
    end: JsonObject[]
  }
} = {
  'openai-chat': {
    piece: (words, output) => ({
      choices: [{ index: 0, delta: { content: words } }],
      ...(output !== undefined && { usage: { prompt_tokens: 7, completion_tokens: output } }),
    }),
    count: (output) => ({ choices: [], usage: { prompt_tokens: 7, completion_tokens: output } }),
    end: [{ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }],
  },
  'anthropic-messages': {
    begin: [{ type: 'message_start', message: { id: 'm', model: 'm', usage: { input_tokens: 7, output_tokens: 1 } } }],
    piece: (words) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: words } }),
    count: (output) => ({ type: 'message_delta', delta: {}, usage: { output_tokens: output } }),
    end: [{ type: 'message_delta', delta: { stop_reason: 'end_turn' } }, { type: 'message_stop' }],
  },
  'openai-responses': {
    begin: [{ type: 'response.created', response: { id: 'r', model: 'm' } }],
    piece: (words) => ({ type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: words }),
    end: [],
  },
  gemini: {
    piece: (words, output) => ({
      candidates: [{ content: { role: 'model', parts: [{ text: words }] } }],
      ...(output !== undefined && { usageMetadata: { promptTokenCount: 7, candidatesTokenCount: output } }),
    }),
    end: [{ candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, finishReason: 'STOP' }] }],
  },
}

let read: (dialect: string, frames: JsonObject[]) => Promise<ProviderEvent[]>

beforeAll(async () => {
  const { dialects } = await shippedFiles()
  read = async (name, frames) => {
    const dialect = dialects.find((one) => one.name === name)
    if (!dialect) throw new Error(`there is no dialect ${name}`)
    const provider = bareProvider(dialect)
    const events: ProviderEvent[] = []
    for (const frame of frames) {
      const event = typeof frame.type === 'string' ? frame.type : undefined
      events.push(...(await readEvent(provider, event, frame, targetFacts(provider, { model: 'm' }))))
    }
    return events
  }
})

const responseEnd = (output?: number) => ({
  type: 'response.completed',
  response: {
    ...{ id: 'r', model: 'm', status: 'completed', output: [] },
    ...(output !== undefined && { usage: { input_tokens: 7, output_tokens: output, total_tokens: 7 + output } }),
  },
})

describe.each(Object.entries(formats))('a stream of %s', (dialect, { begin = [], piece, count, end }) => {
  const isResponses = dialect === 'openai-responses'
  const last = (output?: number) => (isResponses ? [responseEnd(output)] : end)
  const played = async (frames: JsonObject[]) => charged(await read(dialect, [...begin, ...frames]))

  test('is charged by the count at its end', async () => {
    const counted = count ? [piece(text), count(123), ...last()] : [piece(text, 123), ...last(123)]
    expect(await played(counted)).toMatchObject({ usage: { output: 123 }, estimated: false })
  })

  test.skipIf(isResponses)('whose text comes after its only count is charged by its text', async () => {
    const early = count
      ? [count(2), piece(text), piece(text), ...last()]
      : [piece('a', 2), piece(text), piece(text), ...last()]
    const { usage, estimated } = await played(early)
    expect(usage.output).toBeGreaterThanOrEqual(estimate(2))
    expect(usage.output).toBeLessThanOrEqual(estimate(2) + 3)
    expect(estimated).toBe(true)
  })

  test.skipIf(isResponses)('whose counts grow with every piece is charged by the last', async () => {
    const growing = [30, 60, 90].flatMap((output) => (count ? [piece(text), count(output)] : [piece(text, output)]))
    expect(await played([...growing, ...last()])).toMatchObject({ usage: { output: 90 }, estimated: false })
  })

  test.skipIf(isResponses)(
    'whose last count is smaller is charged by the larger, and its text since then',
    async () => {
      const [first, second] = count ? [count(80), count(0)] : [piece('a', 80), piece('a', 0)]
      const { usage } = await played([piece(text), first, piece(text), second, ...last()])
      expect(usage.output).toBeGreaterThan(80)
      expect(usage.output).toBeLessThanOrEqual(80 + estimate(2))
    },
  )
})

test('whatever comes in whatever order, no count is lost and no text is free', () => {
  const step = fc.oneof(
    fc.record({ text: fc.constant(text) }),
    fc.record({ usage: fc.record({ input: fc.constant(7), output: fc.nat({ max: 3_000 }) }) }),
    fc.record({ text: fc.constant(text), usage: fc.record({ output: fc.nat({ max: 3_000 }) }) }),
  )
  const property = fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), (steps) => {
    const events = steps as (ProviderEvent & { text?: string })[]
    const counts = events.map(({ usage }) => (isObject(usage) ? Number(usage.output) : 0))
    const most = Math.max(...counts)
    const at = counts.lastIndexOf(most)
    const since = most === 0 ? 0 : events.slice(at + 1).filter((event) => event.text).length
    const { usage } = charged([...events, { finish: 'stop' }])
    expect(usage.output ?? 0).toBeGreaterThanOrEqual(most)
    expect(usage.output ?? 0).toBeGreaterThanOrEqual(most + Math.floor(estimate(since)) - since)
    if (since === 0 && most > 0) expect(usage.output).toBe(most)
  })
  fc.assert(property, { numRuns: 300 })
})
