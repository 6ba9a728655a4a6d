import jsonata from 'jsonata'
import { compileTree, type Program } from './compile/compile.ts'
import { withoutDeadBindings } from './compile/dead-bindings.ts'
import { Uncompilable } from './compile/generator.ts'
import { describe } from './compile/runtime/evaluation-error.ts'
import { type Bounds, defaultBounds, startRun } from './compile/runtime/limits.ts'
import { output } from './compile/runtime/output.ts'
import { interpreter, parseOptions } from './interpret.ts'
import { library, libraryNames } from './library.ts'
import { type Use, unboundUses } from './variables.ts'

/** A parsed JSONata expression. */
export type Mapping = {
  readonly text: string
  /** A superset of the input's top-level members that the expression reads. */
  readonly reads: ReadonlySet<string>
  /** References to variables and functions that nothing defines. JSONata itself only fails when such a function is called. */
  readonly unbound: readonly Use[]
  /** Whether the expression is compiled to JavaScript. If so, `run` never returns a promise. */
  readonly compiled: boolean
  /** The construct that has to be interpreted, if the expression is not compiled. */
  readonly fallback?: string | undefined
  /**
   * Takes and returns plain JSON (undefined when nothing matched). The result may share objects with the input, so
   * neither may be mutated afterwards. Throws MappingError; an interpreted mapping rejects with it instead.
   */
  run(input: unknown): unknown | Promise<unknown>
  /** The generated JavaScript, or a comment that says why there is none. */
  explain(): string
}

/** Bounds other than the defaults, and variables: for tests. */
export type ReadOptions = { bounds?: Readonly<Bounds>; variables?: Readonly<Record<string, unknown>> }

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
    reads: topLevelNames(expression.ast()),
    unbound: unboundUses(expression.ast(), new Set([...functionNames, ...Object.keys(options.variables ?? {})])),
    get compiled() {
      return prepare().fallback === undefined
    },
    get fallback() {
      return prepare().fallback
    },
    run: (input) => (executable ?? prepare()).run(input),
    explain: () => prepare().explain(),
  }
}

/** An expression that is ready to run; `fallback` is the construct that has to be interpreted. */
type Executable = Pick<Mapping, 'run' | 'explain'> & { fallback: string | undefined }

function compile(expression: jsonata.Expression, options: ReadOptions): Executable {
  try {
    const program = compileTree(expression.ast(), library, new Set(Object.keys(options.variables ?? {})))
    return { fallback: undefined, run: runner(program, options), explain: () => program.source }
  } catch (error) {
    return error instanceof Uncompilable ? interpreted(expression, error.construct, options) : fail(error)
  }
}

function parse(text: string, bounds = defaultBounds): jsonata.Expression {
  try {
    return jsonata(text, parseOptions(bounds))
  } catch (error) {
    return fail(error)
  }
}

function interpreted(expression: jsonata.Expression, construct: string, options: ReadOptions): Executable {
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

/** Every field name in the live part of the syntax tree: a superset of the top-level members that are read. */
function topLevelNames(tree: unknown, found = new Set<string>(), inLambda = false): Set<string> {
  if (Array.isArray(tree)) for (const item of tree) topLevelNames(item, found, inLambda)
  else if (tree !== null && typeof tree === 'object') {
    const node = tree as Record<string, unknown>
    if (node.type === 'name' && typeof node.value === 'string') found.add(node.value)
    const inside = inLambda || node.type === 'lambda'
    for (const name in node) {
      const member = node[name]
      const isBlock = name === 'expressions' && node.type === 'block' && Array.isArray(member) && !inLambda
      if (typeof member === 'object') topLevelNames(isBlock ? withoutDeadBindings(member) : member, found, inside)
    }
  }
  return found
}
