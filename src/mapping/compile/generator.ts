import type { Library } from './runtime/library.ts'

/** A node of the library's syntax tree. */
export type Node = {
  type: string
  value?: unknown
  position?: number
  // biome-ignore lint/suspicious/noExplicitAny: the library does not type the members of its tree.
  [member: string]: any
}

/** What an expression may give besides undefined. */
export type Kind = 'string' | 'number' | 'boolean' | 'object' | 'array' | 'function' | 'any'

/** JavaScript for a value: its text and what is known of the value without running it. */
export type Code = {
  text: string
  kind: Kind
  /** Never undefined. */
  present: boolean
  /** A name or a literal: evaluating it late, twice or never changes nothing. */
  simple: boolean
  /** A sequence that is not collapsed yet. */
  raw?: boolean
}

/** The part of the tree that a compiled mapping cannot do. */
export class Uncompilable extends Error {
  readonly construct: string

  constructor(construct: string) {
    super(`${construct} is interpreted`)
    this.construct = construct
  }
}

/** Variables of one frame; JavaScript's own scopes hold their values. */
export type Frame = {
  outer: Frame | undefined
  variables: Map<string, Variable>
  /** Members of a constructor are evaluated side by side by the library: binding there is not in order. */
  parallel: boolean
}

export type Variable = {
  name: string
  /** Whether the binding has happened wherever the code under way runs. */
  bound: boolean
  /** Whether a use had to ask if the binding has happened. */
  asked: boolean
  kind: Kind
  present: boolean
  /** May hold a sequence that is not collapsed. */
  raw?: boolean
}

/** What the emitters share while one mapping is compiled. */
export type Generator = {
  /** Statements in front of the expression under way, indented. */
  lines: string[]
  /** How deep the code under way stands. */
  depth: number
  frame: Frame
  /** Accessors and constants in front of the function, by what they are for. */
  preamble: Map<string, { name: string; text: string }>
  names: Set<string>
  library: Library
  /** Names that every run binds. */
  bindings: ReadonlySet<string>
  value(node: Node, context: string): Code
}

/** A JavaScript name that reads like the given one and that nothing else has. */
export function fresh(generator: Generator, hint: string): string {
  const base = hint.replace(/[^A-Za-z0-9]+/g, '_').slice(0, 40) || 'value'
  const safe = /^[A-Za-z]/.test(base) ? base : `v${base}`
  for (let count = 1; ; count++) {
    const name = `${safe}_${count}`
    if (generator.names.has(name)) continue
    generator.names.add(name)
    return name
  }
}

/** Adds a statement in front of the expression under way. */
export function statement(generator: Generator, text: string): void {
  generator.lines.push(indentation(generator) + text)
}

/** Runs an emitter and hands back the statements that it added. */
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

/** The same for code that stands in braces. */
export function nested<T>(generator: Generator, emit: () => T): { lines: string[]; result: T } {
  generator.depth++
  try {
    return captured(generator, emit)
  } finally {
    generator.depth--
  }
}

/** Statements in braces, the last of them given by its text. */
export function braces(generator: Generator, lines: readonly string[], last: string): string {
  const outer = indentation(generator)
  return `{\n${[...lines, `${outer}  ${last}`].join('\n')}\n${outer}}`
}

function indentation({ depth }: Generator): string {
  return '  '.repeat(depth)
}

/** An arrow function whose body is what the emitter writes. */
export function arrow(generator: Generator, parameters: string, emit: () => Code): string {
  const { lines, result } = nested(generator, emit)
  if (lines.length === 0) return `(${parameters}) => ${result.text.startsWith('{') ? `(${result.text})` : result.text}`
  return `(${parameters}) => ${braces(generator, lines, `return ${result.text}`)}`
}

/** Holds a value in a constant unless it is simple already. */
export function held(generator: Generator, code: Code, hint = 'value'): Code {
  if (code.simple) return code
  const name = fresh(generator, hint)
  statement(generator, `const ${name} = ${code.text}`)
  return { ...code, text: name, simple: true }
}

/** Values of several expressions, evaluated in their order. */
export function inOrder(generator: Generator, emitters: readonly (() => Code)[]): Code[] {
  const codes: Code[] = []
  for (const emit of emitters) {
    const { lines, result } = captured(generator, emit)
    if (lines.length > 0)
      for (let index = 0; index < codes.length; index++) {
        codes[index] = held(generator, codes[index] as Code)
      }
    generator.lines.push(...lines)
    codes.push(result)
  }
  return codes
}

/** Code whose value is not known further. */
export function any(text: string, known: Partial<Code> = {}): Code {
  return { text, kind: 'any', present: false, simple: false, ...known }
}

export const missing: Code = any('undefined', { simple: true })

/** A constant of the preamble: written once for one meaning. */
export function constant(generator: Generator, meaning: string, hint: string, text: (name: string) => string): string {
  const known = generator.preamble.get(meaning)
  if (known) return known.name
  const name = fresh(generator, hint)
  generator.preamble.set(meaning, { name, text: text(name) })
  return name
}

/** A literal as JavaScript: only ever by way of JSON. */
export function literal(value: unknown): string {
  return JSON.stringify(value)
}
