import type { ModelEntry } from '../core/models/model.ts'

/** Prices of images in USD by quality, size, or both: `hd 1024x1024`. */
export type ImagePrices = NonNullable<ModelEntry['image_prices']>

/** The modes that price an image: those that say most of it first, of these the dearest. */
export function imageModesOf(prices: ImagePrices): string[] {
  const order = ([one, price]: [string, number], [other, otherPrice]: [string, number]) =>
    wordsOf(other).length - wordsOf(one).length || otherPrice - price
  return Object.entries(prices)
    .sort(order)
    .map(([mode]) => mode)
}

/** The mode that prices the images of a call: the first of `imageModesOf` that is a mode of the call, or made of its modes. */
export function imageModeOf(imageModes: readonly string[], modes: readonly string[]): string | undefined {
  return imageModes.find((mode) => modes.includes(mode) || wordsOf(mode).every((word) => modes.includes(word)))
}

/** The modes of a usage with which an image costs most: for a bound, where its quality and size are not known. */
export function dearestImageModes({ image_prices = {}, other_prices }: ModelEntry): string[] {
  const price = dearestOf(image_prices)
  const mode = Object.keys(image_prices).find((name) => image_prices[name] === price)
  return mode === undefined || price < (other_prices?.per_image ?? 0) ? [] : [mode]
}

/** The most that an image of a model costs, in USD, whatever its quality and size. */
export function dearestImagePrice({ image_prices = {}, other_prices }: ModelEntry): number {
  return Math.max(dearestOf(image_prices), other_prices?.per_image ?? 0)
}

/** The highest of these prices; 0 where there is none. */
export function dearestOf(prices: ImagePrices): number {
  return Math.max(0, ...Object.values(prices))
}

function wordsOf(mode: string): string[] {
  return mode.split(' ')
}
