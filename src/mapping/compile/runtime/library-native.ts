import { type Callable, native } from './callables.ts'
import { EvaluationError } from './evaluation-error.ts'
import { jsonata } from './jsonata.ts'
import { boundedText, runTime, spend } from './limits.ts'

/**
 * String, number and date functions taken over from JSONata's library: evaluating a function's name returns its
 * definition. These are synchronous and do not depend on their evaluation context.
 */
export const libraryFunctions: Readonly<Record<string, Callable>> = {
  ...Object.fromEntries(
    await Promise.all(Object.entries(signatures()).map(async ([name, text]) => [name, await borrow(name, text)])),
  ),
}

function signatures(): Record<string, string> {
  return {
    average: '<a<n>:n>',
    trim: '<s-:s>',
    formatNumber: '<n-so?:s>',
    formatBase: '<n-n?:s>',
    formatInteger: '<n-s:s>',
    parseInteger: '<s-s:n>',
    number: '<(nsb)-:n>',
    floor: '<n-:n>',
    ceil: '<n-:n>',
    round: '<n-n?:n>',
    abs: '<n-:n>',
    sqrt: '<n-:n>',
    power: '<n-n:n>',
    base64encode: '<s-:s>',
    base64decode: '<s-:s>',
    encodeUrlComponent: '<s-:s>',
    encodeUrl: '<s-:s>',
    decodeUrlComponent: '<s-:s>',
    decodeUrl: '<s-:s>',
    toMillis: '<s-s?:n>',
    fromMillis: '<n-s?s?:s>',
    zip: '<a+>',
    reverse: '<a:a>',
    shuffle: '<a:a>',
  }
}

async function borrow(name: string, text: string): Promise<Callable> {
  const { implementation } = (await jsonata(`$${name}`).evaluate(undefined, {})) as {
    implementation: (...args: unknown[]) => unknown
  }
  const run = (...args: unknown[]): unknown => {
    for (const argument of args) spend(weight(argument))
    return implementation.apply(evaluation, args)
  }
  const callable = native(run, text, implementation.length)
  callable.arity = implementation.length
  return callable
}

/** The evaluation as the library's functions see it: a time without a date is on the day of the run. */
const evaluation = {
  environment: {
    get timestamp() {
      return new Date(runTime())
    },
  },
}

function weight(argument: unknown): number {
  if (typeof argument === 'string') return argument.length >> 8
  return Array.isArray(argument) ? argument.length >> 3 : 1
}

const fromMillis = libraryFunctions.fromMillis as Callable
const toMillis = libraryFunctions.toMillis as Callable
const formatNumber = libraryFunctions.formatNumber as Callable
const formatInteger = libraryFunctions.formatInteger as Callable

/** Functions that read the clock or random numbers, and those whose cost is not bounded by the size of their arguments. */
export const guardedFunctions: Readonly<Record<string, Callable>> = {
  now: native((picture?: string, zone?: string) => fromMillis(runTime(), picture, zone), '<s?s?:s>'),
  millis: native(() => runTime(), '<:n>'),
  random: native(() => Math.random(), '<:n>'),
  // The library loops forever on infinity if the picture has an exponent or letters.
  formatNumber: native((value?: number, picture?: string, options?: object) => {
    if (options !== undefined || picture?.includes('e')) refuseInfinite(value)
    return formatNumber(value, picture, options)
  }, '<n-so?:s>'),
  formatInteger: native((value?: number, picture?: string) => {
    refuseInfinite(value)
    return formatInteger(value, picture)
  }, '<n-s:s>'),
  toMillis: native((time?: string, picture?: string) => {
    // The picture becomes a regular expression, whose cost is bounded by the length of the string.
    if (time !== undefined) boundedText(time.length > 256 ? Number.POSITIVE_INFINITY : 0)
    return toMillis(time, picture)
  }, '<s-s?:n>'),
}

/** Functions on numbers that mappings of usage call for every reply. */
export const numberFunctions: Readonly<Record<string, Callable>> = {
  sum: native(sum, '<a<n>:n>'),
  max: native((numbers?: number[]) => extreme(numbers, Math.max), '<a<n>:n>'),
  min: native((numbers?: number[]) => extreme(numbers, Math.min), '<a<n>:n>'),
}

function sum(numbers?: number[]): number | undefined {
  if (numbers === undefined) return undefined
  spend(numbers.length >> 3)
  let total = 0
  for (const each of numbers) total += each
  return total
}

function extreme(numbers: number[] | undefined, choose: (left: number, right: number) => number): number | undefined {
  if (numbers === undefined) return undefined
  spend(numbers.length >> 3)
  let [found] = numbers
  for (const each of numbers) found = choose(found as number, each)
  return found
}

function refuseInfinite(value: number | undefined): void {
  if (value !== undefined && !Number.isFinite(value)) throw new EvaluationError('D1001', undefined, { value })
}
