import type { Library } from './runtime/library.ts'

/** A node of the library's syntax tree. */
export type Node = {
  type: string
  value?: unknown
  position?: number
  // biome-ignore lint/suspicious/noExplicitAny: the library does not type the members of its tree.
  [member: string]: any
}

/** The static type of an expression, which may also be undefined. */
export type Kind = 'string' | 'number' | 'boolean' | 'object' | 'array' | 'function' | 'any'

/** Generated JavaScript for an expression, with static facts about its value. */
export type Code = {
  text: string
  kind: Kind
  /** True if it is never undefined. */
  present: boolean
  /** A name or a literal: it can be evaluated late, repeatedly or never. */
  simple: boolean
  /** True if it may be an uncollapsed sequence. */
  raw?: boolean
  /** The items of a new list, or the values of a new object, that has nothing but literals. */
  literals?: readonly string[]
}

/** Error for a construct that cannot be compiled. */
export class Uncompilable extends Error {
  readonly construct: string

  constructor(construct: string) {
    super(`${construct} is interpreted`)
    this.construct = construct
  }
}

/** The variables of one scope; their values live in JavaScript's own scopes. */
export type Frame = {
  outer: Frame | undefined
  variables: Map<string, Variable>
  /** True inside a constructor with several members, which the library evaluates concurrently. */
  parallel: boolean
}

export type Variable = {
  name: string
  /** True if the variable is certainly bound at the current place. */
  bound: boolean
  /** True if some use has to check at run time that the variable is bound. */
  needsCheck: boolean
  kind: Kind
  present: boolean
  /** True if it may hold an uncollapsed sequence. */
  raw?: boolean
  /** The function that the variable stands for, if that is known. */
  definition?: Definition
}

/** A function that a block binds to a variable once and before any use: calls of it can be compiled to plain calls. */
export type Definition = {
  node: Node
  /** The scope and the context in which the function is defined. */
  frame: Frame
  context: string
  /** True if it calls itself, directly or through other functions. */
  recursive: boolean
  /** True if every use is a call with all arguments, which are never uncollapsed sequences. */
  calledOnly: boolean
  started: boolean
  /** The generated function, the facts known about its result, and whether that may be a call in tail position. */
  code?: Code
  result?: Partial<Code>
  tails?: boolean
}

/** Shared state of the emitters while one expression is compiled. */
export type Generator = {
  /** Indented statements that precede the current expression. */
  lines: string[]
  /** Nesting depth of the current code, for indentation. */
  depth: number
  frame: Frame
  /** True if the current code is inside a function of the expression, which may run several times. */
  inside: boolean
  /** True if the current function calls other functions of the expression directly. */
  calls: boolean
  /** True if the current function may return a call in tail position. */
  tails: boolean
  /** True if values may be array constructors in a path, which steps take as one item. */
  wrapsLists: boolean
  /** Functions and constants that precede the main function, by a description of their meaning. */
  preamble: Map<string, { name: string; text: string }>
  /** Names that are declared outside of the main function. */
  outermost: Set<string>
  /** Variables that hold a value of the current run. */
  runVariables: Set<string>
  /** Every name that was made, with the number of names before it. */
  names: Map<string, number>
  library: Library
  /** Names of variables that are passed to each run. */
  bindings: ReadonlySet<string>
  value(node: Node, context: string): Code
}

/** A unique JavaScript identifier that resembles the given name. */
export function uniqueName(generator: Generator, hint: string): string {
  const base = hint.replace(/[^A-Za-z0-9]+/g, '_').slice(0, 40) || 'value'
  const safe = /^[A-Za-z]/.test(base) ? base : `v${base}`
  for (let count = 1; ; count++) {
    const name = `${safe}_${count}`
    if (generator.names.has(name)) continue
    generator.names.set(name, generator.names.size)
    return name
  }
}

/** Adds a statement before the current expression. */
export function statement(generator: Generator, text: string): void {
  generator.lines.push(indentation(generator) + text)
}

/** Runs an emitter and returns the statements that it added. */
export function captured<T>(generator: Generator, emit: () => T): { lines: string[]; result: T } {
  const outer = generator.lines
  generator.lines = []
  try {
    const result = emit()
    return { lines: generator.lines, result }
  } finally {
    generator.lines = outer
  }
}

/** Captures code in braces, like `captured`. */
export function nested<T>(generator: Generator, emit: () => T): { lines: string[]; result: T } {
  generator.depth++
  try {
    return captured(generator, emit)
  } finally {
    generator.depth--
  }
}

/** Returns a block with these statements and a last one. */
export function braces(generator: Generator, lines: readonly string[], last: string): string {
  const outer = indentation(generator)
  return `{\n${[...lines, `${outer}  ${last}`].join('\n')}\n${outer}}`
}

function indentation({ depth }: Generator): string {
  return '  '.repeat(depth)
}

/** A generated function; `tails` if it may return a call in tail position. */
export type FunctionCode = { text: string; result: Code; tails: boolean }

/**
 * A function with the body that the emitter generates. One that reads nothing of an enclosing function is made once and
 * for all, in the preamble: the text is then its name, the given one or a new one. `self` is the name by which it calls
 * itself.
 */
export function functionOf(
  generator: Generator,
  parameters: readonly string[],
  emit: () => Code,
  { hint = 'step', name, self = name }: { hint?: string; name?: string | undefined; self?: string | undefined } = {},
): FunctionCode {
  const { inside, calls, tails } = generator
  const first = generator.names.size
  Object.assign(generator, { inside: true, calls: false, tails: false })
  const { lines, result } = nested(generator, emit)
  const made = { result, tails: generator.tails }
  // A run is bounded by its steps: loops count their rounds, and what calls other functions counts its own calls.
  if (generator.calls && self !== undefined) lines.unshift(`${indentation(generator)}  $.spend(1)`)
  Object.assign(generator, { inside, calls: calls || generator.calls, tails })
  const text = arrowFunction(generator, parameters, lines, result.text)
  const isOwn = (each: string): boolean =>
    (generator.names.get(each) ?? 0) >= first || each === self || parameters.includes(each)
  if (readsEnclosing(generator, text, isOwn)) return { ...made, text }
  for (const [variable] of text.matchAll(/\b(?:context|input|bindings)\b/g)) generator.runVariables.add(variable)
  return { ...made, text: constant(generator, text, hint, () => text, name) }
}

/** The text of a function of one item. */
export function itemFunction(generator: Generator, item: string, emit: () => Code): string {
  return functionOf(generator, [item], emit).text
}

function arrowFunction(generator: Generator, parameters: readonly string[], lines: string[], result: string): string {
  const head = `(${parameters.join(', ')}) =>`
  if (lines.length === 0) return `${head} ${result.startsWith('{') ? `(${result})` : result}`
  return `${head} ${braces(generator, lines, `return ${result}`)}`
}

/** Checks whether code may mention a variable of an enclosing function. */
function readsEnclosing({ names, outermost }: Generator, text: string, isOwn: (name: string) => boolean): boolean {
  for (const [name] of text.matchAll(/\b[A-Za-z]\w*_\d+\b/g)) {
    if (names.has(name) && !outermost.has(name) && !isOwn(name)) return true
  }
  return false
}

/** Stores a value in a constant unless it is simple already. */
export function stored(generator: Generator, code: Code, hint = 'value'): Code {
  if (code.simple) return code
  const name = uniqueName(generator, hint)
  statement(generator, `const ${name} = ${code.text}`)
  // The name of a local is not literal text, so it must not be moved to the preamble.
  const { literals: _, ...known } = code
  return { ...known, text: name, simple: true }
}

/** Emits several expressions so that they are evaluated in order. */
export function inOrder(generator: Generator, emitters: readonly (() => Code)[]): Code[] {
  const codes: Code[] = []
  for (const emit of emitters) {
    const { lines, result } = captured(generator, emit)
    if (lines.length > 0)
      for (let index = 0; index < codes.length; index++) {
        codes[index] = stored(generator, codes[index] as Code)
      }
    generator.lines.push(...lines)
    codes.push(result)
  }
  return codes
}

/** Code with the given facts about its value, by default none. */
export function codeOf(text: string, known: Partial<Code> = {}): Code {
  return { text, kind: 'any', present: false, simple: false, ...known }
}

export const missing: Code = codeOf('undefined', { simple: true })

/** A constant of the preamble, generated once per meaning. */
export function constant(
  generator: Generator,
  meaning: string,
  hint: string,
  text: (name: string) => string,
  given?: string,
): string {
  const known = generator.preamble.get(meaning)
  if (known) return known.name
  const name = given ?? uniqueName(generator, hint)
  generator.preamble.set(meaning, { name, text: text(name) })
  generator.outermost.add(name)
  return name
}

/** A JavaScript literal. Strings get into generated code by this function only. */
export function literal(value: unknown): string {
  return JSON.stringify(value)
}

/** Checks whether a value may be that of a call in tail position, which is not collapsed. */
export function endsInTailCall(node: Node): boolean {
  if (node.type === 'lambda') return node.thunk === true
  if (node.type === 'condition') return endsInTailCall(node.then) || (node.else ? endsInTailCall(node.else) : false)
  return node.type === 'block' && node.expressions.length > 0 && endsInTailCall(node.expressions.at(-1))
}
