import jsonata from 'jsonata'
import { compileTree, type Program } from './compile/compile.ts'
import { Uncompilable } from './compile/generator.ts'
import { Fault } from './compile/runtime/fault.ts'
import { type Bounds, begin, defaultBounds } from './compile/runtime/limits.ts'
import { output } from './compile/runtime/output.ts'
import { interpreter, options as interpreterOptions } from './interpret.ts'
import { library, libraryNames } from './library.ts'
import { type Use, unboundUses } from './variables.ts'

/** A JSONata text made ready to run. */
export type Mapping = {
  readonly text: string
  /** JSONata's syntax tree of the text, for questions about what it mentions (`mentions.ts`). */
  readonly tree: unknown
  /** Uses of variables and functions that nothing binds: mistakes, although JSONata only notices a call of them. */
  readonly unbound: readonly Use[]
  /** Whether the text became JavaScript: then `run` never gives a promise. */
  readonly compiled: boolean
  /** The construct that only the library can run, when not compiled. */
  readonly fallback?: string | undefined
  /**
   * Plain JSON in, plain JSON out (undefined when nothing matched). The result may share parts with the input, so
   * neither is to be changed afterwards. Throws MappingError; when not compiled, the promise is rejected with it.
   * `variables` are the values of those that were declared when the text was read.
   */
  run(input: unknown, variables?: Variables): unknown | Promise<unknown>
  /** The JavaScript made from the text, or why there is none. */
  explain(): string
}

/** Values of variables by name, without the `$`. */
export type Variables = Readonly<Record<string, unknown>>

/** How a mapping is read: the names of the variables that each run gives it, and other bounds than the defaults. */
export type ReadOptions = { bounds?: Readonly<Bounds>; variables?: readonly string[] }

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
  const expression = parse(text)
  let made: Made | undefined
  const make = (): Made => {
    made ??= compile(expression, options)
    return made
  }
  return {
    text,
    tree: expression.ast(),
    unbound: unboundUses(expression.ast(), new Set([...functionNames, ...(options.variables ?? [])])),
    get compiled() {
      return make().fallback === undefined
    },
    get fallback() {
      return make().fallback
    },
    run: (input, variables) => (made ?? make()).run(input, variables),
    explain: () => make().explain(),
  }
}

/** What a text has become: `fallback` names the construct that left it with the library. */
type Made = Pick<Mapping, 'run' | 'explain'> & { fallback: string | undefined }

function compile(expression: jsonata.Expression, options: ReadOptions): Made {
  try {
    const program = compileTree(expression.ast(), library, new Set(options.variables))
    return { fallback: undefined, run: runner(program, options), explain: () => program.source }
  } catch (error) {
    return error instanceof Uncompilable ? interpreted(expression, error.construct) : fail(error)
  }
}

function parse(text: string): jsonata.Expression {
  try {
    return jsonata(text, interpreterOptions as unknown as jsonata.JsonataOptions)
  } catch (error) {
    return fail(error)
  }
}

function interpreted(expression: jsonata.Expression, construct: string): Made {
  const run = interpreter(expression)
  return {
    fallback: construct,
    run: (input, variables) => run(input, variables).catch(fail),
    explain: () => `// Interpreted: ${construct} is not compiled.`,
  }
}

function runner({ run }: Program, { bounds = defaultBounds }: ReadOptions): Mapping['run'] {
  return (input, variables) => {
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
