import type Jsonata from 'jsonata'
import { compileTree, type Program } from './compile/compile.ts'
import { type Node, Uncompilable } from './compile/generator.ts'
import { describe } from './compile/runtime/evaluation-error.ts'
import { type Bounds, defaultBounds, startRun } from './compile/runtime/limits.ts'
import { output } from './compile/runtime/output.ts'
import type { interpreter } from './interpret.ts'
import { library, libraryNames, type OwnFunctions } from './library.ts'
import type { PathTree } from './mentions.ts'
import { narrowed } from './narrow.ts'
import { computedAgain, parse, parseTree, type SharedBeginning } from './parse.ts'

/** A parsed JSONata expression. */
export type Mapping = {
  readonly text: string
  /** JSONata's syntax tree of the expression, for questions about what it mentions (`mentions.ts`). */
  readonly tree: unknown
  /** References to variables and functions that nothing defines. JSONata itself only fails when such a function is called. */
  readonly unbound: readonly Use[]
  /** The functions it was read with that are not the router's. */
  readonly functions?: OwnFunctions | undefined
  /** True if the expression is compiled to JavaScript. Then `run` never returns a promise. */
  readonly compiled: boolean
  /** The construct that has to be interpreted, if the expression is not compiled. */
  readonly fallback?: string | undefined
  /** The URL of the generated JavaScript in stack traces and CPU profiles, if the mapping was read with one. */
  readonly url?: string | undefined
  /**
   * Takes and returns plain JSON (undefined when nothing matched). The result may share objects with the input, so
   * neither may be mutated afterwards. Throws MappingError; an interpreted mapping rejects with it instead.
   * `variables` are the values of those that were declared when the text was read.
   */
  run(input: unknown, variables?: Variables): unknown | Promise<unknown>
  /** Returns the generated JavaScript, or a comment with the reason why there is none. */
  explain(): string
}

/** Values of variables by name, without the `$`. */
export type Variables = Readonly<Record<string, unknown>>

/**
 * The names of the variables that each run gives a mapping, functions that are not the router's, bounds other than the defaults,
 * whether the text parsed before, the URL of the generated code, which is only asked for when the mapping is compiled, and the
 * beginning that the text shares with others.
 */
type ReadOptions = {
  bounds?: Readonly<Bounds>
  variables?: readonly string[]
  functions?: OwnFunctions | undefined
  sound?: boolean
  url?: () => string
  beginning?: SharedBeginning | undefined
}

/**
 * A mapping that does not parse, or that failed on an input. `position` is a zero-based offset into the text; the stack of the
 * `cause` names the line of the generated code.
 */
export class MappingError extends Error {
  readonly code: string
  readonly position: number | undefined

  constructor(message: string, code: string, position?: number, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'MappingError'
    this.code = code
    this.position = position
  }
}

/** Names of the functions that a mapping may call. */
export const functionNames: readonly string[] = libraryNames

/**
 * Parses a JSONata expression. Throws MappingError with a position for a syntax error; a text that is known to be `sound`
 * is parsed when it is first needed. Compilation is deferred to the first use, because a process reads many more mappings
 * than it runs.
 */
export function readMapping(text: string, options: ReadOptions = {}): Mapping {
  const { functions, variables = [], beginning } = options
  const expression = () => parsed(text, options)
  // Many times as large as the text, and rarely needed twice.
  const tree = computedAgain(() => (beginning && parseTree(text, { beginning })) ?? (expression().ast() as Node))
  let executable: Executable | undefined
  const prepare = (): Executable => {
    executable ??= compile(tree(), expression, options)
    return executable
  }
  if (!options.sound) tree()
  return {
    text,
    functions,
    get tree() {
      return tree()
    },
    get unbound() {
      const known = new Set([...functionNames, ...(functions?.names ?? []), ...variables])
      return unboundUses(tree(), known)
    },
    get compiled() {
      return prepare().fallback === undefined
    },
    get fallback() {
      return prepare().fallback
    },
    get url() {
      return options.url?.()
    },
    run: (input, variables) => (executable ?? prepare()).run(input, variables),
    explain: () => prepare().explain(),
  }
}

/**
 * The same mapping for those who need no more than these members of its result: each is what it is anyway, and what only
 * others need is not evaluated. One that cannot be compiled is the mapping itself.
 */
export function narrowMapping(mapping: Mapping, wanted: PathTree): Mapping {
  const program = narrowProgram(mapping, wanted)
  if (!program) return mapping
  return {
    text: mapping.text,
    get tree() {
      return mapping.tree
    },
    get unbound() {
      return mapping.unbound
    },
    compiled: true,
    url: narrowUrl(mapping),
    run: runner(program, {}),
    explain: () => program.source,
  }
}

/** Compiled without the whole mapping, which may never be needed. */
function narrowProgram(mapping: Mapping, wanted: PathTree): Program | undefined {
  const { tree, functions } = mapping
  try {
    return compileTree(narrowed(tree as Node, wanted), functions?.library ?? library, { url: narrowUrl(mapping) })
  } catch (error) {
    if (error instanceof Uncompilable) return undefined
    throw error
  }
}

function narrowUrl({ url }: Mapping): string | undefined {
  return url === undefined ? undefined : `${url}#narrowed`
}

/** An expression that is ready to run; `fallback` is the construct that has to be interpreted. */
type Executable = Pick<Mapping, 'run' | 'explain'> & { fallback: string | undefined }

function compile(tree: Node, expression: () => Jsonata.Expression, options: ReadOptions): Executable {
  try {
    const { functions, variables, url } = options
    const compiling = { bindings: new Set(variables), url: url?.() }
    const program = compileTree(tree, functions?.library ?? library, compiling)
    return { fallback: undefined, run: runner(program, options), explain: () => program.source }
  } catch (error) {
    return error instanceof Uncompilable ? interpreted(expression, error.construct, options) : fail(error)
  }
}

function parsed(text: string, { bounds }: ReadOptions): Jsonata.Expression {
  try {
    return parse(text, bounds)
  } catch (error) {
    return fail(error)
  }
}

/** The interpreter is loaded when something has to be interpreted: no shipped mapping does. */
function interpreted(expression: () => Jsonata.Expression, construct: string, { functions }: ReadOptions): Executable {
  let ready: Promise<ReturnType<typeof interpreter>> | undefined
  return {
    fallback: construct,
    run: (input, variables) => {
      ready ??= import('./interpret.ts').then((module) => module.interpreter(expression(), functions?.run))
      return ready.then((run) => run(input, variables)).catch(fail)
    },
    explain: () => `// Interpreted: ${construct} is not compiled.`,
  }
}

function runner({ run }: Program, { bounds = defaultBounds }: ReadOptions): Mapping['run'] {
  return (input, variables) => {
    startRun(bounds)
    try {
      return output(run(input, variables), input)
    } catch (error) {
      return fail(error)
    }
  }
}

function fail(error: unknown): never {
  if (error instanceof RangeError) return failByLimit(/stack/i.test(error.message) ? 'D1011' : 'D1014', error)
  const { message, code, position } = error as { message?: string; code?: string; position?: number }
  if (code === 'D1011' || code === 'D1012') return failByLimit(code, error, position)
  throw new MappingError(message ?? String(error), code ?? 'mapping', position, error)
}

/** The same message whether the limit was that of the compiled code, the interpreter or the JavaScript engine. */
function failByLimit(code: string, cause: unknown, position?: number): never {
  throw new MappingError(describe(code, { value: defaultBounds.text }), code, position, cause)
}

/** A reference to a variable; `position` is a zero-based offset into the text. */
type Use = { name: string; position: number }

/** References to variables and functions that neither the expression (anywhere in it) nor `known` defines. */
function unboundUses(tree: Node, known: ReadonlySet<string>): Use[] {
  const isBlock = tree.type === 'block'
  const statements: readonly Node[] = isBlock ? tree.expressions : []
  const all = [...statements.map(namesOfStatement), namesIn(isBlock ? { ...tree, expressions: [] } : tree)]
  const bound = new Set(all.flatMap((names) => [...names.bound]))
  return all.flatMap(({ uses }) => uses).filter(({ name }) => !bound.has(name) && !known.has(name))
}

/** The names that a part of an expression binds, and those that it refers to. */
type NamesIn = { bound: ReadonlySet<unknown>; uses: readonly Use[] }

/** Names by statement: the same definitions are part of many mappings. */
const namesOf = new WeakMap<Node, NamesIn>()

function namesOfStatement(node: Node): NamesIn {
  const names = namesOf.get(node) ?? namesIn(node)
  namesOf.set(node, names)
  return names
}

function namesIn(tree: unknown): NamesIn {
  const bound = new Set<unknown>()
  const uses: Use[] = []
  visit(tree, (node) => {
    if (node.type === 'variable') {
      const { value: name, position } = node as { value: string; position: number }
      // The position in the syntax tree is that of the name's end.
      if (name !== '' && name !== '$') uses.push({ name, position: position - name.length - 1 })
    }
    addBindings(node, bound)
  })
  return { bound, uses }
}

type TreeNode = { readonly [member: string]: unknown }

function visit(tree: unknown, take: (node: TreeNode) => void): void {
  if (Array.isArray(tree)) for (const item of tree) visit(item, take)
  else if (tree !== null && typeof tree === 'object') {
    take(tree as TreeNode)
    for (const name in tree) visit((tree as TreeNode)[name], take)
  }
}

/** Adds the names that a node binds: by `:=`, as parameters of a function, by `@$name` or `#$name`. */
function addBindings({ type, lhs, arguments: parameters, focus, index }: TreeNode, bound: Set<unknown>): void {
  if (type === 'bind') bound.add((lhs as TreeNode).value)
  if (type === 'lambda') for (const parameter of parameters as TreeNode[]) bound.add(parameter.value)
  if (typeof focus === 'string') bound.add(focus)
  if (typeof index === 'string') bound.add(index)
}
