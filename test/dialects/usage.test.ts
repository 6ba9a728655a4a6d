import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import { benchDialect, type Frame } from './replay.ts'

/** A provider's usage object, and how it is told: in a whole answer, and event by event. */
type Told = {
  usage: fc.Arbitrary<JsonObject>
  whole(usage: JsonObject): JsonObject
  frames(usage: JsonObject): Frame[]
}

const count = fc.nat({ max: 100_000 })
const present = (arbitrary: fc.Arbitrary<JsonObject>) => arbitrary.map((value) => JSON.parse(JSON.stringify(value)))
const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })

/** Writes to the cache of Messages: always a sum, and sometimes by how long they live. */
const messagesCounts = fc
  .record({
    input_tokens: count,
    output_tokens: count,
    cache_read_input_tokens: count,
    written5m: count,
    written1h: count,
    told: fc.boolean(),
  })
  .map(({ written5m, written1h, told, ...counts }) => ({
    ...counts,
    cache_creation_input_tokens: written5m + written1h,
    ...(told && {
      cache_creation: { ephemeral_5m_input_tokens: written5m, ephemeral_1h_input_tokens: written1h },
    }),
  }))

const messagesUsage = fc
  .record({
    counts: messagesCounts,
    compaction: some(messagesCounts),
    server_tool_use: some(fc.record({ web_search_requests: count })),
    service_tier: fc.constantFrom('standard', 'priority', 'batch', undefined),
    thought: some(fc.nat({ max: 100 })),
  })
  .map(({ counts, compaction, thought, ...told }) => ({
    ...counts,
    ...told,
    ...(thought !== undefined && {
      output_tokens: counts.output_tokens + thought,
      output_tokens_details: { thinking_tokens: thought },
    }),
    ...(compaction && {
      iterations: [
        { type: 'compaction', ...compaction },
        { type: 'message', ...counts },
      ],
    }),
  }))

const dialects: { [name: string]: Told } = {
  'anthropic-messages': {
    usage: present(messagesUsage as fc.Arbitrary<object> as fc.Arbitrary<JsonObject>),
    whole: (usage) => ({ id: 'm', content: [], stop_reason: 'end_turn', usage }),
    // The first event has what is known by then; the last one restates the sums, but not how long what was written lives.
    frames: (usage) => {
      const { output_tokens_details, server_tool_use, iterations, ...early } = usage
      const { cache_creation, service_tier, ...late } = usage
      return [
        { data: { type: 'message_start', message: { id: 'm', usage: { ...early, output_tokens: 1 } } } },
        { data: { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: late } },
      ]
    },
  },
}

describe.each(Object.entries(dialects))('%s', (name, { usage, whole, frames }) => {
  const bench = benchDialect(name)

  test('counts the same whole and streamed', async () => {
    await fc.assert(
      fc.asyncProperty(usage, async (told) => {
        const { reply } = await bench.stream(frames(told))
        expect(reply.usage).toEqual((await bench.reply(whole(told))).reply.usage)
      }),
      { numRuns: 200 },
    )
  })
})
