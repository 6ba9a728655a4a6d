import jsonata from 'jsonata'
import { deepFreeze } from './compile/runtime/deep-freeze.ts'
import { EvaluationError } from './compile/runtime/evaluation-error.ts'
import { type Bounds, defaultBounds, runTime, spendSize, startRun } from './compile/runtime/limits.ts'
import { boundedPattern } from './compile/runtime/regex.ts'
import { functions } from './functions.ts'
import { library, libraryNames } from './library.ts'

/** How the library reads a text, with bounds as it counts them: milliseconds, nested evaluations, items of a list. */
export function readingOptions({ steps, depth, sequence }: Readonly<Bounds>): jsonata.JsonataOptions {
  return {
    timeout: steps / stepsPerMillisecond,
    stack: depth,
    sequence,
    RegexEngine: BoundedRegExp as RegExpConstructor,
  }
}

const stepsPerMillisecond = 2_000

/**
 * A function that leaves a text to JSONata's library. A run works on a copy of its input and on functions that nothing
 * can change: whatever the mapping does, only its result is different afterwards.
 */
export function interpreter(
  expression: jsonata.Expression,
): (input: unknown, variables?: Readonly<Record<string, unknown>>) => Promise<unknown> {
  deepFreeze(expression.ast())
  // The library takes symbols as names, which its types do not say.
  expression.assign(afterEvaluation as unknown as string, refuseLargeValues)
  return async (input, variables) => {
    const bindings = { ...ownDefinitions, ...clockDefinitions(), ...structuredClone(variables) }
    return plainJson(await expression.evaluate(structuredClone(input), bindings))
  }
}

/** A function as the library calls it. */
type Definition = { _jsonata_function: true; implementation: (...args: never[]) => unknown; signature: object }

/** The library notes on a function by what name and where it was called last; one that all mappings share must not. */
function unmarked(definition: object): object {
  const ignored = { get: () => undefined, set: () => undefined }
  Object.defineProperties(definition, { token: ignored, position: ignored })
  return deepFreeze(definition)
}

for (const name of libraryNames) {
  const definition: unknown = await jsonata(`$${name}`).evaluate(undefined, {})
  if (typeof definition === 'object' && definition !== null) unmarked(definition)
}

/** The functions of the router, and those of the library that may take without end between two looks at the clock. */
const ownDefinitions = Object.fromEntries(
  [...Object.keys(functions), 'formatNumber', 'formatInteger', 'pad', 'toMillis'].flatMap((name) => {
    const native = library[name]?.native
    if (native?.signature === undefined) return []
    const bounded = (...args: never[]): unknown => {
      startRun(defaultBounds)
      return native.run(...args)
    }
    return [[name, unmarked(define(bounded, native.signature))]]
  }),
)

/** The functions that tell the time: the same time throughout a run. */
function clockDefinitions(): Record<string, object> {
  startRun(defaultBounds)
  const time = runTime()
  const format = library.fromMillis?.native?.run
  return {
    now: define((picture?: string, zone?: string) => format?.(time, picture, zone), '<s?s?:s>'),
    millis: define(() => time, '<:n>'),
  }
}

function define(implementation: Definition['implementation'], text: string): Definition {
  const tree = jsonata(`function()${text}{0}`).ast() as unknown as { signature: object }
  return { _jsonata_function: true, implementation, signature: tree.signature }
}

const afterEvaluation = Symbol.for('jsonata.__evaluate_exit')

/** Refuses a value that shares its parts so often that work on all of it would take without end. Throws D1012. */
function refuseLargeValues(_expression: unknown, _input: unknown, _environment: unknown, result: unknown): void {
  if (weightOf(result) > defaultBounds.steps) throw new EvaluationError('D1012')
}

const weights = new WeakMap<object, number>()

/** The size of a value in which a part counts wherever it stands, without visiting a part twice. */
function weightOf(value: unknown): number {
  if (typeof value === 'string') return 1 + (value.length >> 8)
  if (typeof value !== 'object' || value === null || '_jsonata_lambda' in value || '_jsonata_function' in value)
    return 1
  const known = weights.get(value)
  if (known !== undefined) return known
  let weight = 1
  for (const member of Object.values(value)) weight += weightOf(member)
  weights.set(value, weight)
  return weight
}

/** Results of the library carry null prototypes and enumerable bookkeeping on arrays: JSON text drops both. */
function plainJson(result: unknown): unknown {
  startRun(defaultBounds)
  spendSize(result)
  const text = JSON.stringify(result)
  return text === undefined ? undefined : JSON.parse(text)
}

/** The library makes its regular expressions by `new`. */
function BoundedRegExp(pattern: RegExp): RegExp {
  return boundedPattern(pattern)
}
