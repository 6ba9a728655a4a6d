import { describe, expect, test } from 'vitest'
import type { ModelEntry } from '../../src/core/models/model.ts'
import { type CountedOperation, measuredOperation, operationBounds } from '../../src/money/meter.ts'
import { highestCost } from '../../src/money/price.ts'

describe('the most that a call for an operation can cost', () => {
  const tier = (prompt_tokens_threshold: number, input_price: number) => {
    return { prompt_tokens_threshold, input_price, output_price: 0 }
  }
  const tiered = (...prices: number[]): ModelEntry => {
    return { api: 'embedding', pricing: prices.map((price, place) => tier(place * 100, price)) }
  }

  test.each([
    ['is that of the highest tier that it reaches, where prices rise', [1e-6, 3e-6], 150, 150 * 3_000],
    ['is that of a lower tier, where prices fall', [3e-6, 1e-6], 150, 150 * 3_000],
    ['is that of a tier in between, where that is the most expensive', [1e-6, 4e-6, 2e-6], 250, 250 * 4_000],
    ['is that of no tier that it does not reach', [1e-6, 4e-6], 100, 100 * 1_000],
  ])('%s', (_, prices, input, nano) => {
    expect(highestCost({ input }, tiered(...prices), 0)).toBe(BigInt(nano))
  })

  test('is nothing where no price is known', () => {
    expect(highestCost({ input: 5 }, { api: 'embedding' }, 0)).toBe(0n)
    expect(highestCost({ input: 5 }, undefined, 0)).toBe(0n)
  })

  const drawing: ModelEntry = {
    api: 'image',
    image_prices: { low: 0.01, high: 0.04 },
    other_prices: { per_image: 0.02 },
  }

  test('of images is that of the most expensive kind, or of the one that is asked for', () => {
    expect(highestCost({ images: 2 }, drawing, 0)).toBe(80_000_000n)
    expect(highestCost({ images: 2, modes: ['low'] }, drawing, 0)).toBe(20_000_000n)
    expect(highestCost({ images: 2, modes: [] }, drawing, 0)).toBe(40_000_000n)
  })

  test('of images is the plain price, where no kind costs as much', () => {
    expect(highestCost({ images: 2 }, { ...drawing, other_prices: { per_image: 0.05 } }, 0)).toBe(100_000_000n)
  })
})

describe('what a provider counts of an operation is believed', () => {
  test('up to what is reserved, for a payer with a limit', () => {
    const most = { input: 10, input_audio: 5, output: 3, reasoning: 1, seconds: 20, images: 2 }
    expect(operationBounds(most, true)).toEqual({ prompt: 15, output: 4, units: { seconds: 20, images: 2 } })
  })

  test('up to a million tokens, and about twice the units, where nobody has a limit', () => {
    const most = { input: 10, output: 3, seconds: 20, images: 2 }
    const units = { seconds: 100, images: 64 }
    expect(operationBounds(most, false)).toEqual({ prompt: 1_000_000, output: 1_000_000, units })
  })

  test('up to all that was expected, where that is more than a million tokens', () => {
    const most = { input: 3_000_000, output: 2_000_000 }
    expect(operationBounds(most, false)).toEqual({ prompt: 3_000_000, output: 2_000_000, units: {} })
    expect(operationBounds(most, true)).toEqual({ prompt: 3_000_000, output: 2_000_000, units: {} })
  })
})

describe('the usage of an operation', () => {
  const most = { prompt: 1_000, output: 1_000, units: { seconds: 500 } }
  const byToken: ModelEntry = { api: 'a', pricing: [{ prompt_tokens_threshold: 0, input_price: 1, output_price: 1 }] }
  const bySecond: ModelEntry = { api: 'a', other_prices: { per_second: 1 }, min_seconds: 10 }
  const whole = { counted: {}, estimate: { input: 8, output: 4 }, complete: true, entry: byToken, bounds: most }
  const measured = (reported: CountedOperation['counted'], call: Partial<CountedOperation> = {}) =>
    measuredOperation(reported, { ...whole, ...call })

  test('is the count of the provider, and what the router counted of other classes', () => {
    const counted = { images: 2, input: 99 }
    expect(measured({ input: 5, output: 1 }, { counted })).toEqual({
      usage: { images: 2, input: 5, output: 1 },
      estimated: false,
    })
  })

  test('is estimated where a model with prices of tokens was counted none', () => {
    expect(measured({}, { counted: { images: 2 } })).toEqual({
      usage: { input: 8, output: 4, images: 2 },
      estimated: true,
    })
    expect(measured({}, { entry: { api: 'a' } })).toEqual({ usage: {}, estimated: false })
    expect(measured({ input: 1 })).toEqual({ usage: { input: 1 }, estimated: false })
  })

  test('of an answer that broke off is estimated until its output is counted', () => {
    const broken = { complete: false }
    expect(measured({ input: 5 })).toEqual({ usage: { input: 5 }, estimated: false })
    expect(measured({ input: 5 }, broken)).toEqual({ usage: { input: 5, output: 4 }, estimated: true })
    expect(measured({ input: 5, output: 1 }, broken)).toEqual({ usage: { input: 5, output: 1 }, estimated: false })
  })

  test.each([
    ['so many seconds as are billed at least', { seconds: 3 }, {}, 10, false],
    ['the seconds that were counted, where they are more', { seconds: 12 }, {}, 12, false],
    ['the seconds of the provider rather than those of the router', { seconds: 12 }, { seconds: 40 }, 12, false],
    ['the seconds that the router counted', {}, { seconds: 40 }, 40, false],
    ['estimated seconds where none are counted', {}, {}, 25, true],
  ])('has %s', (_, reported, counted, seconds, estimated) => {
    const call = { entry: bySecond, counted, estimate: { seconds: 25 } }
    expect(measured(reported, call)).toEqual({ usage: { seconds }, estimated })
  })

  test('has as many estimated seconds as are billed at least', () => {
    expect(measured({}, { entry: bySecond, estimate: { seconds: 2 } }).usage).toEqual({ seconds: 10 })
  })

  test('is bounded, whoever counted it', () => {
    const call = { entry: bySecond, estimate: { seconds: 600 } }
    expect(measured({ seconds: 600 }, call)).toEqual({ usage: { seconds: 500, corrected: true }, estimated: true })
    expect(measured({}, { ...call, counted: { seconds: 600 } })).toMatchObject({ usage: { seconds: 500 } })
    expect(measured({}, call)).toMatchObject({ usage: { seconds: 500 }, estimated: true })
  })
})
