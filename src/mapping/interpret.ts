import type Jsonata from 'jsonata'
import { deepFreeze } from './compile/runtime/deep-freeze.ts'
import { EvaluationError } from './compile/runtime/evaluation-error.ts'
import { jsonata } from './compile/runtime/jsonata.ts'
import { defaultBounds, spend, startRun } from './compile/runtime/limits.ts'
import { functions } from './functions.ts'
import { library, libraryNames } from './library.ts'

/**
 * Runs an expression in JSONata's own interpreter. Each run works on a copy of its input, and everything that it shares with other runs
 * is frozen: a mapping can change nothing but its result.
 */
export function interpreter(
  expression: Jsonata.Expression,
  own: Readonly<Record<string, (...values: unknown[]) => unknown>> = {},
): (input: unknown, variables?: Readonly<Record<string, unknown>>) => Promise<unknown> {
  deepFreeze(expression.ast())
  afterEachEvaluation(expression, (_environment, result) => refuseLargeValues(result))
  return async (input, variables) => {
    const bindings = {
      ...boundedFunctions,
      ...own,
      eval: shortEval,
      ...clockFunctions(),
      ...structuredClone(variables),
    }
    return plainJson(await expression.evaluate(structuredClone(input), bindings))
  }
}

/** An environment in which the library evaluates an expression; all of them share `global`. */
type Environment = { global: object }

/** Registers a callback for the result of every (sub)expression. */
function afterEachEvaluation(
  expression: Jsonata.Expression,
  callback: (environment: Environment, result: unknown) => void,
): void {
  const exit = (_node: unknown, _input: unknown, environment: Environment, result: unknown) =>
    callback(environment, result)
  // The library accepts symbols as names, but its types do not.
  expression.assign(Symbol.for('jsonata.__evaluate_exit') as unknown as string, exit)
}

/** Throws D1012 for a value whose expanded size exceeds the bounds, such as an object that contains itself. */
function refuseLargeValues(value: unknown): void {
  if (expandedSize(value) > defaultBounds.steps) throw new EvaluationError('D1012')
}

const sizes = new WeakMap<object, number>()

/** The size of a value in which shared parts count wherever they occur, although each is visited only once. */
function expandedSize(value: unknown): number {
  if (typeof value === 'string') return 1 + (value.length >> 8)
  if (typeof value !== 'object' || value === null) return 1
  if ('_jsonata_lambda' in value || '_jsonata_function' in value) return 1
  const known = sizes.get(value)
  if (known !== undefined) return known
  sizes.set(value, Number.POSITIVE_INFINITY)
  let size = 1
  for (const member of Object.values(value)) size += expandedSize(member)
  sizes.set(value, size)
  return size
}

/**
 * The library's objects have no prototype, and its lists have enumerable flags: JSON text has neither. Throws D1016 for a result with a
 * function in it, which the library represents by an object with a JavaScript function.
 */
function plainJson(result: unknown): unknown {
  startRun(defaultBounds)
  refuseFunctions(result)
  const text = JSON.stringify(result)
  return text === undefined ? undefined : JSON.parse(text)
}

/** Visits all of a result before it is written: the environment of a function contains itself. */
function refuseFunctions(value: unknown): void {
  if (typeof value === 'function') throw new EvaluationError('D1016')
  if (typeof value === 'string') spend(1 + (value.length >> 8))
  if (typeof value !== 'object' || value === null) return
  spend(1)
  const { implementation, apply } = value as { implementation?: unknown; apply?: unknown }
  if (typeof implementation === 'function' || typeof apply === 'function') throw new EvaluationError('D1016')
  // Lists of the library have further properties, which are not written.
  if (Array.isArray(value)) for (const item of value) refuseFunctions(item)
  else for (const name in value) refuseFunctions((value as Record<string, unknown>)[name])
}

/** A built-in function as the library represents it. */
type Definition = { _jsonata_function: true; implementation: (...args: never[]) => unknown; signature: object }

function define(implementation: Definition['implementation'], text: string): Definition {
  const tree = jsonata(`function()${text}{0}`).ast() as unknown as { signature: object }
  return { _jsonata_function: true, implementation, signature: tree.signature }
}

/** Freezes a definition. The library stores the name and position of the last call in it, which has to be ignored. */
function frozen<T extends object>(definition: T): T {
  const ignored = { get: () => undefined, set: () => undefined }
  return deepFreeze(Object.defineProperties(definition, { token: ignored, position: ignored }))
}

/** Freezes what runs share. Returns the library's own functions by name. */
async function freezeSharedState(): Promise<Map<string, Definition>> {
  const known = new Map<string, Definition>()
  for (const name of libraryNames) {
    const expression = jsonata(`$${name}`)
    afterEachEvaluation(expression, ({ global }) => deepFreeze(global))
    const definition: Definition | null | undefined = await expression.evaluate(undefined, {})
    if (typeof definition === 'object' && definition !== null) known.set(name, frozen(definition))
  }
  return known
}

const ofLibrary = await freezeSharedState()

/** `$eval`, whose error quotes only the beginning of the one inside it: in quotes within quotes it would fill the memory. */
const shortEval = frozen(
  define(async function (this: unknown, ...args: never[]) {
    try {
      return await ofLibrary.get('eval')?.implementation.apply(this, args)
    } catch (thrown) {
      const { code, value } = thrown as { code?: string; value?: unknown }
      throw typeof value === 'string' ? { code, value: value.slice(0, maxQuotedLength) } : thrown
    }
  }, '<sx?:x>'),
)

const maxQuotedLength = 200

/** The router's functions, and library functions whose running time the library does not bound. */
const boundedFunctions: Readonly<Record<string, Definition>> = Object.fromEntries(
  [...Object.keys(functions), 'formatNumber', 'formatInteger', 'pad', 'toMillis', 'distinct'].flatMap((name) => {
    const native = library[name]?.native
    if (native?.signature === undefined) return []
    const bounded = (...args: never[]): unknown => {
      startRun(defaultBounds)
      return native.run(...args)
    }
    return [[name, frozen(define(bounded, native.signature))]]
  }),
)

/** The functions that read the clock, which stands still during a run. */
function clockFunctions(): Record<string, Definition> {
  const time = Date.now()
  const format = library.fromMillis?.native?.run
  return {
    now: define((picture?: string, zone?: string) => format?.(time, picture, zone), '<s?s?:s>'),
    millis: define(() => time, '<:n>'),
  }
}
