import jsonata from 'jsonata'
import { type Callable, native } from './callables.ts'
import { Fault } from './fault.ts'
import { boundedText, runTime, spend } from './limits.ts'

/**
 * Functions whose work is text, number and date formatting alone. They are the library's own: evaluating a function's
 * name gives the function, and these neither wait nor look at the context they are called in.
 */
export const borrowed: Readonly<Record<string, Callable>> = {
  ...Object.fromEntries(
    await Promise.all(Object.entries(signatures()).map(async ([name, text]) => [name, await borrow(name, text)])),
  ),
}

function signatures(): Record<string, string> {
  return {
    sum: '<a<n>:n>',
    max: '<a<n>:n>',
    min: '<a<n>:n>',
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
    // Times without a date are of the day of the run.
    return implementation.apply({ environment: { timestamp: new Date(runTime()) } }, args)
  }
  const made = native(run, text, implementation.length)
  made.arity = implementation.length
  return made
}

function weight(argument: unknown): number {
  if (typeof argument === 'string') return argument.length >> 8
  return Array.isArray(argument) ? argument.length >> 3 : 1
}

const fromMillis = borrowed.fromMillis as Callable
const toMillis = borrowed.toMillis as Callable
const formatNumber = borrowed.formatNumber as Callable
const formatInteger = borrowed.formatInteger as Callable

/** The functions that read the clock or chance, and those whose cost does not follow from the size of what they get. */
export const guarded: Readonly<Record<string, Callable>> = {
  now: native((picture?: string, zone?: string) => fromMillis(runTime(), picture, zone), '<s?s?:s>'),
  millis: native(() => runTime(), '<:n>'),
  random: native(() => Math.random(), '<:n>'),
  // The library never ends on infinity where a picture has an exponent or letters.
  formatNumber: native((value?: number, picture?: string, options?: object) => {
    if (options !== undefined || picture?.includes('e')) refuseInfinite(value)
    return formatNumber(value, picture, options)
  }, '<n-so?:s>'),
  formatInteger: native((value?: number, picture?: string) => {
    refuseInfinite(value)
    return formatInteger(value, picture)
  }, '<n-s:s>'),
  toMillis: native((time?: string, picture?: string) => {
    // The picture becomes a regular expression: short texts bound what it can cost.
    if (time !== undefined) boundedText(time.length > 256 ? Number.POSITIVE_INFINITY : 0)
    return toMillis(time, picture)
  }, '<s-s?:n>'),
}

function refuseInfinite(value: number | undefined): void {
  if (value !== undefined && !Number.isFinite(value)) throw new Fault('D1001', undefined, { value })
}
