import jsonata from 'jsonata'
import { compileTree, type Program } from './compile/compile.ts'
import { withoutDeadBindings } from './compile/dead-bindings.ts'
import { Uncompilable } from './compile/generator.ts'
import { Fault } from './compile/runtime/fault.ts'
import { type Bounds, begin, defaultBounds } from './compile/runtime/limits.ts'
import { output } from './compile/runtime/output.ts'
import { interpreter, readingOptions } from './interpret.ts'
import { library, libraryNames } from './library.ts'
import { type Use, unboundUses } from './variables.ts'

/** A JSONata text made ready to run. */
export type Mapping = {
  readonly text: string
  /** Names of the input's own members that the text reads from the top level: what it can possibly take over. */
  readonly reads: ReadonlySet<string>
  /** Uses of variables and functions that nothing binds: mistakes, although JSONata only notices a call of them. */
  readonly unbound: readonly Use[]
  /** Whether the text became JavaScript: then `run` never gives a promise. */
  readonly compiled: boolean
  /** The construct that only the library can run, when not compiled. */
  readonly fallback?: string | undefined
  /**
   * Plain JSON in, plain JSON out (undefined when nothing matched). The result may share parts with the input, so
   * neither is to be changed afterwards. Throws MappingError; when not compiled, the promise is rejected with it.
   */
  run(input: unknown): unknown | Promise<unknown>
  /** The JavaScript made from the text, or why there is none. */
  explain(): string
}

/** How a mapping is read: for tests that need other bounds than the defaults, or variables. */
export type ReadOptions = { bounds?: Readonly<Bounds>; variables?: Readonly<Record<string, unknown>> }

/** A mapping that cannot be read, or that failed on an input. `position` counts characters of the text from 0. */
export class MappingError extends Error {
  readonly code: string
  readonly position: number | undefined

  constructor(message: string, code: string, position?: number) {
    super(message)
    this.name = 'MappingError'
    this.code = code
    this.position = position
  }
}

/** All that a mapping may call. */
export const functionNames: readonly string[] = libraryNames

/**
 * Reads a JSONata text. Throws MappingError with a position when it is not JSONata. It is compiled when it is first
 * asked for: a process reads many more mappings than it runs.
 */
export function readMapping(text: string, options: ReadOptions = {}): Mapping {
  const expression = parse(text, options.bounds)
  let made: Made | undefined
  const make = (): Made => {
    made ??= compile(expression, options)
    return made
  }
  return {
    text,
    reads: topLevelNames(expression.ast()),
    unbound: unboundUses(expression.ast(), new Set([...functionNames, ...Object.keys(options.variables ?? {})])),
    get compiled() {
      return make().fallback === undefined
    },
    get fallback() {
      return make().fallback
    },
    run: (input) => (made ?? make()).run(input),
    explain: () => make().explain(),
  }
}

/** What a text has become: `fallback` names the construct that left it with the library. */
type Made = Pick<Mapping, 'run' | 'explain'> & { fallback: string | undefined }

function compile(expression: jsonata.Expression, options: ReadOptions): Made {
  try {
    const program = compileTree(expression.ast(), library, new Set(Object.keys(options.variables ?? {})))
    return { fallback: undefined, run: runner(program, options), explain: () => program.source }
  } catch (error) {
    return error instanceof Uncompilable ? interpreted(expression, error.construct, options) : fail(error)
  }
}

function parse(text: string, bounds = defaultBounds): jsonata.Expression {
  try {
    return jsonata(text, readingOptions(bounds))
  } catch (error) {
    return fail(error)
  }
}

function interpreted(expression: jsonata.Expression, construct: string, options: ReadOptions): Made {
  const run = interpreter(expression, options.variables)
  return {
    fallback: construct,
    run: (input) => run(input).catch(fail),
    explain: () => `// Interpreted: ${construct} is not compiled.`,
  }
}

function runner({ run }: Program, options: ReadOptions): Mapping['run'] {
  const { bounds = defaultBounds, variables } = options
  return (input) => {
    begin(bounds)
    try {
      return output(run(input, variables))
    } catch (error) {
      return fail(error)
    }
  }
}

function fail(error: unknown): never {
  if (error instanceof RangeError) {
    const fault = new Fault(/stack/i.test(error.message) ? 'D1011' : 'D1014')
    throw new MappingError(fault.message, fault.code)
  }
  const { message, code, position } = error as { message?: string; code?: string; position?: number }
  throw new MappingError(message ?? String(error), code ?? 'mapping', position)
}

/** Every name that occurs in the syntax tree: a superset of what the text reads at the top level. */
function topLevelNames(tree: unknown, found = new Set<string>()): Set<string> {
  if (Array.isArray(tree)) for (const item of tree) topLevelNames(item, found)
  else if (tree !== null && typeof tree === 'object') {
    const node = tree as Record<string, unknown>
    if (node.type === 'name' && typeof node.value === 'string') found.add(node.value)
    if (node.type === 'block' && Array.isArray(node.expressions)) {
      topLevelNames({ ...node, type: '', expressions: withoutDeadBindings(node.expressions) }, found)
    } else for (const member of Object.values(node)) topLevelNames(member, found)
  }
  return found
}
