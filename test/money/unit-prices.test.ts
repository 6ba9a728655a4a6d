import { describe, expect, test } from 'vitest'
import type { ModelEntry } from '../../src/core/models/model.ts'
import { mergeUsage, type Usage } from '../../src/core/usage.ts'
import { priceOf } from '../../src/money/price.ts'
import { highestImagePrice, mostExpensiveImageModes } from '../../src/money/rates.ts'

const at = Date.UTC(2026, 10, 22)
const unit = (other_prices: ModelEntry['other_prices']): ModelEntry => ({
  api: 'image',
  pricing: [],
  other_prices: other_prices ?? {},
})
const tokens = (
  input: number,
  output: number | null,
  other_prices: ModelEntry['other_prices'],
  cached?: number,
): ModelEntry => ({
  ...unit(other_prices),
  pricing: [
    { prompt_tokens_threshold: 0, input_price: input, output_price: output, ...(cached && { cached_price: cached }) },
  ],
})

const painter: ModelEntry = {
  api: 'image',
  image_prices: {
    '1024x1024': 0.04,
    '1024x1792': 0.08,
    'hd 1024x1024': 0.08,
    'hd 1024x1792': 0.12,
    high: 0.1,
    edit: 0.05,
  },
}
const withPlainPrice: ModelEntry = { ...painter, other_prices: { per_image: 0.06 } }
const marked: ModelEntry = {
  ...tokens(1e-6, 2e-6, {}),
  image_prices: { high: 0.1, low: 0.01 },
  multipliers: { high: 3 },
}
const gptImage = tokens(5e-6, 40e-6, { input_image_token: 10e-6, output_image_token: 40e-6 }, 1.25e-6)
const voice = tokens(0.6e-6, 12e-6, { output_audio_token: 12e-6 })
const listener = tokens(2.5e-6, 10e-6, { input_audio_token: 6e-6 })

/** Worked out by hand: nano-USD. */
const table: [fact: string, entry: ModelEntry, usage: Usage, nanoUsd: number][] = [
  ['characters', unit({ per_character: 15e-6 }), { characters: 4_096 }, 61_440_000],
  ['seconds, with fractions', unit({ per_second: 0.0001 }), { seconds: 61.37 }, 6_137_000],
  ['seconds at a price of many decimals', unit({ per_second: 2.777777778e-5 }), { seconds: 3_600 }, 100_000_001],
  ['images', unit({ per_image: 0.042 }), { images: 3 }, 126_000_000],
  ['megapixels', unit({ per_megapixel: 0.025 }), { megapixels: 2 }, 50_000_000],
  ['fractions of a megapixel', unit({ per_megapixel: 0.03 }), { megapixels: 1.048576 }, 31_457_280],
  ['queries of a rerank', unit({ per_query: 0.002 }), { queries: 4 }, 8_000_000],
  ['images that are read', unit({ per_input_image: 6e-5 }), { input_images: 96 }, 5_760_000],
  ['an image by its size', painter, { images: 2, modes: ['1024x1792'] }, 160_000_000],
  ['an image by quality and size, named as one mode', painter, { images: 1, modes: ['hd 1024x1792'] }, 120_000_000],
  ['an image by quality and size, named as two', painter, { images: 1, modes: ['1024x1792', 'hd'] }, 120_000_000],
  [
    'quality and size before the size alone',
    painter,
    { images: 1, modes: ['1024x1024', 'hd', 'hd 1024x1024'] },
    80_000_000,
  ],
  ['an image by its quality', painter, { images: 3, modes: ['high'] }, 300_000_000],
  ['the dearest of two that say as much', painter, { images: 1, modes: ['high', '1024x1024'] }, 100_000_000],
  ['an edited image', painter, { images: 1, modes: ['edit'] }, 50_000_000],
  ['an image of unknown size: the dearest', painter, { images: 2 }, 240_000_000],
  ['an image of a size that has no price: the dearest', painter, { images: 1, modes: ['256x256', 'hd'] }, 120_000_000],
  ['an image of unknown size: the price of images', withPlainPrice, { images: 2 }, 120_000_000],
  ['a size goes before the price of images', withPlainPrice, { images: 2, modes: ['1024x1024'] }, 80_000_000],
  [
    'a mode that multiplies tokens as well',
    marked,
    { input: 100, images: 1, modes: ['high', 'low'] },
    300_000 + 100_000_000,
  ],
  [
    'tokens of images',
    gptImage,
    { input: 50, input_image: 194, output_image: 4_160 },
    250_000 + 1_940_000 + 166_400_000,
  ],
  [
    'tokens of a cached prompt of an image',
    gptImage,
    { input: 10, cache_read: 40, output_image: 272 },
    50_000 + 50_000 + 10_880_000,
  ],
  ['audio tokens out', voice, { input: 20, output_audio: 750 }, 12_000 + 9_000_000],
  ['audio tokens in', listener, { input: 7, input_audio: 1_200, output: 90 }, 17_500 + 7_200_000 + 900_000],
  ['tokens of an embedding', tokens(0.02e-6, 0, {}), { input: 8 }, 160],
  ['tokens of an embedding without a price of output', tokens(0.13e-6, null, {}), { input: 5 }, 650],
]

describe('a usage costs, to the nano-dollar:', () => {
  test.each(table)('%s', (_, entry, usage, nanoUsd) => {
    expect(priceOf(usage, entry, at)).toMatchObject({ nanoUsd })
    expect(priceOf(usage, entry, at).unpriced).toBeUndefined()
  })
})

test('a quality called standard is an ordinary way: the size alone decides', () => {
  const usage = mergeUsage({}, { images: 1, modes: ['standard', '1024x1024'] })
  expect(priceOf(usage, painter, at).nanoUsd).toBe(40_000_000)
})

test('megapixels have fractions, queries and images that are read have none', () => {
  expect(mergeUsage({}, { megapixels: 0.5, queries: 1.6, input_images: 2 })).toEqual({
    megapixels: 0.5,
    input_images: 2,
    corrected: true,
  })
})

test('the dearest image is known, and the modes in which it is that', () => {
  expect(highestImagePrice(painter)).toBe(0.12)
  expect(mostExpensiveImageModes(painter)).toEqual(['hd 1024x1792'])
  expect(highestImagePrice({ ...painter, other_prices: { per_image: 0.2 } })).toBe(0.2)
  expect(mostExpensiveImageModes({ ...painter, other_prices: { per_image: 0.2 } })).toEqual([])
  expect(highestImagePrice(unit({ per_image: 0.04 }))).toBe(0.04)
  expect(highestImagePrice(unit({}))).toBe(0)
})

test('the price version distinguishes images by their prices', () => {
  const version = (modes: string[], entry = painter) => priceOf({ images: 1, modes }, entry, at).priceVersion
  expect(version(['hd', '1024x1024'])).toBe(version(['hd 1024x1024']))
  expect(version(['hd', '1024x1024'])).not.toBe(version(['1024x1024']))
  expect(version(['unheard_of'])).toBe(version([]))
})
