import type jsonata from 'jsonata'
import { deepFreeze } from './compile/runtime/deep-freeze.ts'
import type { Bounds } from './compile/runtime/limits.ts'
import { boundedPattern } from './compile/runtime/regex.ts'

/** Options for parsing, with bounds in the library's units: milliseconds, nested evaluations, items of a list. */
export function parseOptions({ steps, depth, sequence }: Readonly<Bounds>): jsonata.JsonataOptions {
  const RegexEngine = BoundedRegExp as RegExpConstructor
  return deepFreeze({ timeout: steps / stepsPerMillisecond, stack: depth, sequence, RegexEngine })
}

const stepsPerMillisecond = 2_000

/** The library calls it with `new`. */
function BoundedRegExp(pattern: RegExp): RegExp {
  return boundedPattern(pattern)
}
