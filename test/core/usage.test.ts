import { describe, expect, test } from 'vitest'
import { cachedTokens, completionTokens, mergeUsage, promptTokens, type ReportedUsage } from '../../src/core/usage.ts'

describe('counts of an answer', () => {
  test('later ones replace earlier ones, class by class', () => {
    const merged = mergeUsage({ input: 5, output: 1, searches: 1 }, { output: 9, reported_cost: 0.5 })
    expect(merged).toEqual({ input: 5, output: 9, searches: 1, reported_cost: 0.5 })
  })

  test('writes of unknown lifetime live for five minutes, but for those that are known to live for an hour', () => {
    expect(mergeUsage({ cache_write_1h: 40 }, { cache_write: 100 })).toEqual({ cache_write_1h: 40, cache_write_5m: 60 })
  })

  test('values that cannot be counts are absent, and mark the others', () => {
    const reported = {
      ...{ input: Number.NaN, output: 1e300, searches: '3', images: -1, seconds: [1], megapixels: {}, queries: true },
      ...{ cache_read: 1.5, cache_write: Number.POSITIVE_INFINITY, reported_cost: -1, reasoning: null },
    } as unknown as ReportedUsage
    expect(mergeUsage({}, reported)).toEqual({ corrected: true })
    expect(mergeUsage({ output: 5 }, { input: 7, cache_read: 0.5 })).toEqual({ input: 7, output: 5, corrected: true })
    expect(mergeUsage({}, { input: null, output: undefined } as unknown as ReportedUsage)).toEqual({})
  })

  test('a part that is more than its total is absent, and the total stays as it was', () => {
    // 100 of input, 150 of them cached; 20 of output, 30 of them sound.
    const wrong = { input: -50, cache_read: 150, output: -10, output_audio: 30 }
    expect(mergeUsage({}, wrong)).toEqual({ input: 100, output: 20, corrected: true })
    expect(mergeUsage({}, { input: -50, cache_write: 150 })).toEqual({ input: 100, corrected: true })
    // 1,000 of input, of which 400 are read from a cache and 900 written to it: the cheaper part is absent.
    const both = { input: -300, cache_read: 400, cache_write: 900 }
    expect(mergeUsage({}, both)).toEqual({ input: 100, cache_write_5m: 900, corrected: true })
    // Later events may put it right.
    const right = { input: 0, cache_read: 100, output: 5, output_audio: 30 }
    expect(mergeUsage(mergeUsage({}, wrong), right)).toEqual(right)
  })

  test('reasoning of more tokens than the reply is counted beside it', () => {
    // 52 of output, 232 of reasoning.
    expect(mergeUsage({}, { input: 9, output: 52 - 232, reasoning: 232, total: 61 })).toEqual({
      ...{ input: 9, output: 52, reasoning: 232, corrected: true },
    })
    expect(mergeUsage({}, { output: -60, reasoning: 60 })).toEqual({ output: 0, reasoning: 60, corrected: true })
    // 20 of output, 15 of them sound, and 30 of reasoning.
    const both = { output: -25, reasoning: 30, output_audio: 15 }
    expect(mergeUsage({}, both)).toEqual({ output: 5, reasoning: 30, output_audio: 15, corrected: true })
  })

  test('a negative part neither raises nor lowers its total', () => {
    // 1,000 of input, -500 of them cached; 20 of output, -5 of them reasoning.
    const wrong = { input: 1_500, cache_read: -500, output: 25, reasoning: -5 }
    expect(mergeUsage({}, wrong)).toEqual({ input: 1_000, output: 20, corrected: true })
  })

  test('fewer tokens do not replace more', () => {
    const counted = { input: 1_000, output: 500 }
    expect(mergeUsage(counted, { input: 0, output: 0 })).toEqual(counted)
    expect(mergeUsage(counted, { input: 1_200, output: 0 })).toEqual({ input: 1_200, output: 500 })
    // As many in other classes are known better.
    const cached = { input: 400, cache_read: 600, output: 100, reasoning: 400 }
    expect(mergeUsage(counted, cached)).toEqual(cached)
    expect(mergeUsage({ searches: 3, reported_cost: 0.5 }, { searches: 1, reported_cost: 0 })).toEqual({
      searches: 3,
      reported_cost: 0.5,
    })
  })

  test('tokens that only the sum of the provider has are output', () => {
    expect(mergeUsage({}, { input: 10, output: 5, total: 40 })).toEqual({ input: 10, output: 30 })
    expect(mergeUsage({}, { input: 10, cache_read: 20, output: 5, reasoning: 5, total: 40 })).toMatchObject({
      output: 5,
    })
    expect(mergeUsage({ input: 10, output: 30 }, { input: 10, output: 8, total: 40 })).toEqual({
      input: 10,
      output: 30,
    })
    // Less than its parts, or without a prompt: it does not say what is missing.
    expect(mergeUsage({}, { input: 10, output: 5, total: 3 })).toEqual({ input: 10, output: 5 })
    expect(mergeUsage({}, { output: 5, total: 40 })).toEqual({ output: 5 })
    // What is written is free.
    expect(mergeUsage({}, { input: 10, total: 40 })).toEqual({ input: 10 })
  })

  test('only seconds, megapixels and costs have fractions', () => {
    const reported = { seconds: 1.25, megapixels: 0.5, reported_cost: 0.125 }
    expect(mergeUsage({}, reported)).toEqual(reported)
  })

  test('only special modes are kept, and later ones replace earlier ones', () => {
    const served = (...reported: unknown[]) =>
      reported.reduce<ReportedUsage>((usage, modes) => mergeUsage(usage, { modes } as ReportedUsage), {}).modes
    expect(served(['priority', 'us', 'priority', 'standard'])).toEqual(['priority', 'us'])
    expect(served(['auto'], ['flex'])).toEqual(['flex'])
    expect(served(['priority'], ['default'])).toBeUndefined()
    expect(served(['priority'], [], [null], 'flex', [7, '', 'x'.repeat(65)])).toEqual(['priority'])
    expect(served(Array.from({ length: 20 }, (_, count) => `mode ${count}`))).toHaveLength(8)
  })

  test('the prompt is all that was read, the answer all that was made', () => {
    const usage = {
      input: 1,
      cache_read: 2,
      cache_read_audio: 4,
      cache_write_5m: 8,
      cache_write_1h: 16,
      input_audio: 32,
    }
    expect([promptTokens({ ...usage, input_image: 64, citations: 128, output: 256 }), cachedTokens(usage)]).toEqual([
      127, 6,
    ])
    expect(completionTokens({ output: 1, reasoning: 2, output_audio: 4, output_image: 8, input: 16 })).toBe(15)
  })
})
