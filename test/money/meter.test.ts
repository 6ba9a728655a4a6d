import { describe, expect, test } from 'vitest'
import type { Part } from '../../src/core/parts.ts'
import type { Reply } from '../../src/core/reply.ts'
import type { Usage } from '../../src/core/usage.ts'
import { boundedUsage, measuredUsage } from '../../src/money/meter.ts'

const most = { prompt: 1_000, output: 1_000 }
const whole = { promptTokens: 103, complete: true, choices: 1, bounds: most }
const cut = { ...whole, complete: false }

function replied(parts: Part[], usage: Usage = {}): Reply {
  return { id: 'r', created: 1, parts, finish: 'stop', usage }
}

const words = (tokens: number): Part => ({ type: 'text', text: 'x'.repeat(tokens * 4) })

describe('usage that the provider has not counted', () => {
  const hidden = () => ({ output: 500, searches: 2, containers: 1 })

  test('is what is likely, and the uses of tools that were reported', () => {
    expect(measuredUsage(replied([words(50)]), { ...cut, hidden })).toEqual({
      usage: { input: 103, output: 500, searches: 2, containers: 1 },
      estimated: true,
    })
  })

  test('is the text where that is longer, also of the part that was not kept', () => {
    const { usage } = measuredUsage(replied([words(300)]), { ...cut, hidden, unseenTokens: 400 })
    expect(usage.output).toBe(700)
  })

  test('is no more than the call can have used', () => {
    expect(measuredUsage(replied([]), { ...cut, hidden: () => ({ output: 5_000 }) }).usage.output).toBe(1_000)
  })

  test('is nothing where the count is final', () => {
    const usage = { input: 7, output: 3 }
    expect(measuredUsage(replied([words(50)], usage), { ...whole, hidden })).toEqual({ usage, estimated: false })
  })

  test('does not replace counts that are higher', () => {
    const counted = { input: 7, output: 600, reasoning: 200, searches: 3 }
    const { usage } = measuredUsage(replied([words(50)], counted), { ...cut, hidden })
    expect(usage).toEqual({ ...counted, containers: 1 })
  })
})

describe('the usage of a call', () => {
  test('is the count of the provider', () => {
    const usage = { input: 7, output: 3 }
    expect(measuredUsage(replied([words(50)], usage), whole)).toEqual({
      usage,
      estimated: false,
    })
    expect(measuredUsage(replied([], { input: 7 }), whole)).toEqual({
      usage: { input: 7 },
      estimated: false,
    })
  })

  test('is estimated from the text when the provider does not count', () => {
    const reply = replied([{ type: 'reasoning', text: 'x'.repeat(40) }, words(25), { type: 'refusal', text: 'xxxx' }])
    const call: Part = { type: 'tool_call', id: 'a', name: 'name', arguments: '{"a":"b"}   ' }
    expect(measuredUsage(reply, whole)).toEqual({
      usage: { input: 103, output: 36 },
      estimated: true,
    })
    expect(measuredUsage(replied([call]), whole).usage.output).toBe(4)
  })

  test('is estimated where a provider counted the prompt but not the output', () => {
    expect(measuredUsage(replied([words(25)], { input: 7 }), whole)).toEqual({
      usage: { input: 7, output: 25 },
      estimated: true,
    })
    expect(measuredUsage(replied([words(25)], { input: 7, output: 0 }), whole)).toEqual({
      usage: { input: 7, output: 25 },
      estimated: true,
    })
  })

  test('of a stream that broke is at least the estimate of the output so far, and at least the provider’s count', () => {
    const early = { input: 9, output: 1 }
    const broken = (tokens: number, usage: Usage) => measuredUsage(replied([words(tokens)], usage), cut)
    expect(broken(20, early)).toEqual({ usage: { input: 9, output: 20 }, estimated: true })
    expect(broken(20, { input: 9, output: 30 })).toEqual({ usage: { input: 9, output: 30 }, estimated: false })
    expect(broken(20, { input: 9, reasoning: 5 })).toEqual({
      usage: { input: 9, reasoning: 5, output: 15 },
      estimated: true,
    })
  })

  test('counts other writing by its characters', () => {
    const reply = replied([{ type: 'text', text: '漢字'.repeat(50) }])
    expect(measuredUsage(reply, cut).usage.output).toBe(100)
  })

  test('counts no result of a search as output', () => {
    const results = [{ type: 'web_search_result', encrypted_content: 'x'.repeat(40_000) }]
    const parts: Part[] = [{ type: 'search', query: 'q', results }, { type: 'opaque', body: results }, words(10)]
    expect(measuredUsage(replied(parts, { input: 5 }), cut).usage.output).toBe(10)
  })

  test('includes the modes in which the call was served', () => {
    const usage = { input: 1, output: 1, modes: ['priority'] }
    expect(measuredUsage(replied([words(9)], usage), cut).usage.modes).toEqual(['priority'])
  })

  test('of a stream that broke counts every choice, and no more than there can be', () => {
    expect(measuredUsage(replied([words(20)], { input: 9 }), { ...cut, choices: 3 }).usage.output).toBe(60)
    const short = { ...cut, choices: 3, bounds: { prompt: 1_000, output: 50 } }
    expect(measuredUsage(replied([words(20)], { input: 9 }), short).usage.output).toBe(50)
  })

  test('is the count of the provider up to the most that there can be', () => {
    const usage = { input: 1_000, output: 1_000 }
    expect(measuredUsage(replied([], usage), whole)).toEqual({ usage, estimated: false })
    expect(measuredUsage(replied([], { input: 1_001, output: 1 }), whole)).toEqual({
      usage: { input: 1_000, output: 1, corrected: true },
      estimated: true,
    })
    expect(measuredUsage(replied([], { input: 1, output: 1_001 }), whole)).toEqual({
      usage: { input: 1, output: 1_000, corrected: true },
      estimated: true,
    })
    const reported = { ...whole, bounds: { ...most, reportedUsd: 2 } }
    const dear = { input: 1, output: 1, reported_cost: 2 }
    expect(measuredUsage(replied([], dear), reported)).toEqual({ usage: dear, estimated: false })
  })

  test('is bounded by unit: each class that is too much becomes its most, the others stay', () => {
    const bounds = { ...most, units: { images: 2, characters: 50 } }
    const counts = { images: 3, characters: 40, seconds: 1_000, input: 5 }
    expect(boundedUsage(counts, bounds)).toEqual({ usage: { ...counts, images: 2, corrected: true }, bounded: true })
    const exact = { images: 2, characters: 50 }
    expect(boundedUsage(exact, bounds)).toEqual({ usage: exact, bounded: false })
  })

  test('is bounded where the provider counts what cannot be', () => {
    const absurd = { input: 3_000, cache_read: 1_000, output: 500, reasoning: 1_500 }
    expect(measuredUsage(replied([words(5)], absurd), whole)).toEqual({
      usage: { input: 1_000, cache_read: 0, output: 500, reasoning: 500, corrected: true },
      estimated: true,
    })
    expect(measuredUsage(replied([words(5)], { input: 9, output: 4, corrected: true }), whole).estimated).toBe(true)
    const dear = { input: 9, output: 4, reported_cost: 3 }
    expect(measuredUsage(replied([words(5)], dear), whole).usage).toEqual(dear)
    expect(measuredUsage(replied([words(5)], dear), { ...whole, bounds: { ...whole.bounds, reportedUsd: 2 } })).toEqual(
      {
        usage: { ...dear, reported_cost: 2, corrected: true },
        estimated: true,
      },
    )
  })

  test('is no less than the estimate where the count of a total could not be read', () => {
    const unread = (usage: Usage) => measuredUsage(replied([words(25)], { ...usage, corrected: true }), whole)
    expect(unread({ cache_read: 5, output: 30 })).toMatchObject({
      usage: { input: 98, cache_read: 5, output: 30 },
      estimated: true,
    })
    expect(unread({ input: 7, reasoning: 5 })).toMatchObject({
      usage: { input: 7, reasoning: 5, output: 20 },
      estimated: true,
    })
    // What could be read is believed.
    expect(unread({ input: 7, output: 3 })).toMatchObject({ usage: { input: 7, output: 3 }, estimated: true })
  })
})
