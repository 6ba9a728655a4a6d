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
  /** Never undefined. */
  present: boolean
  /** A name or a literal: it can be evaluated late, repeatedly or never. */
  simple: boolean
  /** May be an uncollapsed sequence. */
  raw?: boolean
}

/** Thrown for a construct that cannot be compiled. */
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
  /** Inside a constructor with several members, which the library evaluates concurrently. */
  parallel: boolean
}

export type Variable = {
  name: string
  /** Whether the variable is certainly bound at the current place. */
  bound: boolean
  /** Whether some use has to check at run time that the variable is bound. */
  asked: boolean
  kind: Kind
  present: boolean
  /** May hold an uncollapsed sequence. */
  raw?: boolean
}

/** Shared state of the emitters while one expression is compiled. */
export type Generator = {
  /** Indented statements that precede the current expression. */
  lines: string[]
  /** Nesting depth of the current code, for indentation. */
  depth: number
  frame: Frame
  /** Accessors and constants that precede the function, by a description of their meaning. */
  preamble: Map<string, { name: string; text: string }>
  names: Set<string>
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
    generator.names.add(name)
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

/** Like `captured`, for code in braces. */
export function nested<T>(generator: Generator, emit: () => T): { lines: string[]; result: T } {
  generator.depth++
  try {
    return captured(generator, emit)
  } finally {
    generator.depth--
  }
}

/** A block of statements and a last one. */
export function braces(generator: Generator, lines: readonly string[], last: string): string {
  const outer = indentation(generator)
  return `{\n${[...lines, `${outer}  ${last}`].join('\n')}\n${outer}}`
}

function indentation({ depth }: Generator): string {
  return '  '.repeat(depth)
}

/** An arrow function with the body that the emitter generates. */
export function arrowFunction(generator: Generator, parameters: string, emit: () => Code): string {
  const { lines, result } = nested(generator, emit)
  if (lines.length === 0) return `(${parameters}) => ${result.text.startsWith('{') ? `(${result.text})` : result.text}`
  return `(${parameters}) => ${braces(generator, lines, `return ${result.text}`)}`
}

/** Stores a value in a constant unless it is simple already. */
export function stored(generator: Generator, code: Code, hint = 'value'): Code {
  if (code.simple) return code
  const name = uniqueName(generator, hint)
  statement(generator, `const ${name} = ${code.text}`)
  return { ...code, text: name, simple: true }
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
export function constant(generator: Generator, meaning: string, hint: string, text: (name: string) => string): string {
  const known = generator.preamble.get(meaning)
  if (known) return known.name
  const name = uniqueName(generator, hint)
  generator.preamble.set(meaning, { name, text: text(name) })
  return name
}

/** A JavaScript literal. Strings get into generated code by this function only. */
export function literal(value: unknown): string {
  return JSON.stringify(value)
}
