import jsonata from 'jsonata'
import { compileTree, type Program } from './compile/compile.ts'
import { type Node, Uncompilable } from './compile/generator.ts'
import { describe } from './compile/runtime/evaluation-error.ts'
import { type Bounds, defaultBounds, startRun } from './compile/runtime/limits.ts'
import { output } from './compile/runtime/output.ts'
import { interpreter, parseOptions } from './interpret.ts'
import { library, libraryNames } from './library.ts'
import type { PathTree } from './mentions.ts'
import { narrowed } from './narrow.ts'
import { type Use, unboundUses } from './variables.ts'

/** A parsed JSONata expression. */
export type Mapping = {
  readonly text: string
  /** JSONata's syntax tree of the expression, for questions about what it mentions (`mentions.ts`). */
  readonly tree: unknown
  /** References to variables and functions that nothing defines. JSONata itself only fails when such a function is called. */
  readonly unbound: readonly Use[]
  /** Whether the expression is compiled to JavaScript. If so, `run` never returns a promise. */
  readonly compiled: boolean
  /** The construct that has to be interpreted, if the expression is not compiled. */
  readonly fallback?: string | undefined
  /**
   * Takes and returns plain JSON (undefined when nothing matched). The result may share objects with the input, so
   * neither may be mutated afterwards. Throws MappingError; an interpreted mapping rejects with it instead.
   * `variables` are the values of those that were declared when the text was read.
   */
  run(input: unknown, variables?: Variables): unknown | Promise<unknown>
  /** The generated JavaScript, or a comment that says why there is none. */
  explain(): string
}

/** Values of variables by name, without the `$`. */
export type Variables = Readonly<Record<string, unknown>>

/** The names of the variables that each run gives a mapping, and bounds other than the defaults. */
export type ReadOptions = { bounds?: Readonly<Bounds>; variables?: readonly string[] }

/** A mapping that does not parse, or that failed on an input. `position` is a zero-based offset into the text. */
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

/** Names of the functions that a mapping may call. */
export const functionNames: readonly string[] = libraryNames

/**
 * Parses a JSONata expression. Throws MappingError with a position for a syntax error. Compilation is deferred to the
 * first use, because a process parses many more mappings than it runs.
 */
export function readMapping(text: string, options: ReadOptions = {}): Mapping {
  const expression = parse(text, options.bounds)
  let executable: Executable | undefined
  const prepare = (): Executable => {
    executable ??= compile(expression, options)
    return executable
  }
  return {
    text,
    tree: expression.ast(),
    unbound: unboundUses(expression.ast(), new Set([...functionNames, ...(options.variables ?? [])])),
    get compiled() {
      return prepare().fallback === undefined
    },
    get fallback() {
      return prepare().fallback
    },
    run: (input, variables) => (executable ?? prepare()).run(input, variables),
    explain: () => prepare().explain(),
  }
}

/**
 * The same mapping for those who need no more than these members of its result: each is what it is anyway, and what only
 * others need is not evaluated. A mapping that is not compiled stays as it is.
 */
export function narrowMapping(mapping: Mapping, wanted: PathTree): Mapping {
  if (!mapping.compiled) return mapping
  const { text, tree, unbound } = mapping
  const program = compileTree(narrowed(tree as Node, wanted), library)
  return { text, tree, unbound, compiled: true, run: runner(program, {}), explain: () => program.source }
}

/** An expression that is ready to run; `fallback` is the construct that has to be interpreted. */
type Executable = Pick<Mapping, 'run' | 'explain'> & { fallback: string | undefined }

function compile(expression: jsonata.Expression, options: ReadOptions): Executable {
  try {
    const program = compileTree(expression.ast(), library, new Set(options.variables))
    return { fallback: undefined, run: runner(program, options), explain: () => program.source }
  } catch (error) {
    return error instanceof Uncompilable ? interpreted(expression, error.construct) : fail(error)
  }
}

function parse(text: string, bounds = defaultBounds): jsonata.Expression {
  try {
    return jsonata(text, parseOptions(bounds))
  } catch (error) {
    return fail(error)
  }
}

function interpreted(expression: jsonata.Expression, construct: string): Executable {
  const run = interpreter(expression)
  return {
    fallback: construct,
    run: (input, variables) => run(input, variables).catch(fail),
    explain: () => `// Interpreted: ${construct} is not compiled.`,
  }
}

function runner({ run }: Program, { bounds = defaultBounds }: ReadOptions): Mapping['run'] {
  return (input, variables) => {
    startRun(bounds)
    try {
      return output(run(input, variables))
    } catch (error) {
      return fail(error)
    }
  }
}

function fail(error: unknown): never {
  if (error instanceof RangeError) return failByLimit(/stack/i.test(error.message) ? 'D1011' : 'D1014')
  const { message, code, position } = error as { message?: string; code?: string; position?: number }
  if (code === 'D1011' || code === 'D1012') return failByLimit(code, position)
  throw new MappingError(message ?? String(error), code ?? 'mapping', position)
}

/** The same message whether the limit was that of the compiled code, the interpreter or the JavaScript engine. */
function failByLimit(code: string, position?: number): never {
  throw new MappingError(describe(code, { value: defaultBounds.text }), code, position)
}
