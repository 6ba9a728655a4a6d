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

  test('invalid counts are ignored', () => {
    const reported = { input: Number.NaN, output: 1e300, searches: '3', images: -1 } as unknown as ReportedUsage
    expect(mergeUsage({}, reported)).toEqual({ images: 0, corrected: true })
  })

  test('a part is at most as large as its whole, and what could not be is marked', () => {
    // 100 of input, 150 of them cached; 20 of output, 30 of them reasoning.
    const wrong = { input: -50, cache_read: 150, output: -10, reasoning: 30 }
    expect(mergeUsage({}, wrong)).toEqual({ input: 0, cache_read: 100, output: 0, reasoning: 20, corrected: true })
    expect(mergeUsage({}, { input: -50, cache_write: 150 })).toEqual({ input: 0, cache_write_5m: 100, corrected: true })
    // Later events may put it right.
    const right = { input: 0, cache_read: 100, output: 5, reasoning: 30 }
    expect(mergeUsage(mergeUsage({}, wrong), right)).toEqual(right)
  })

  test('only seconds have fractions: the paid count is the count in the row', () => {
    const reported = {
      input: 1.5,
      output: 2.4,
      cache_write: 10.6,
      cache_write_1h: 0.4,
      seconds: 1.25,
      reported_cost: 0.125,
    }
    const counts = { input: 2, output: 2, cache_write_5m: 11, cache_write_1h: 0, seconds: 1.25, reported_cost: 0.125 }
    expect(mergeUsage({}, reported)).toEqual(counts)
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
