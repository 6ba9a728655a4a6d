import type Jsonata from 'jsonata'
import type { Node } from './compile/generator.ts'
import { deepFreeze } from './compile/runtime/deep-freeze.ts'
import { jsonata } from './compile/runtime/jsonata.ts'
import { type Bounds, defaultBounds } from './compile/runtime/limits.ts'
import { boundedPattern } from './compile/runtime/regex.ts'

/** Parses a text with JSONata's parser; throws its error. */
export function parse(text: string, bounds: Readonly<Bounds> = defaultBounds): Jsonata.Expression {
  return jsonata(text, parseOptions(bounds))
}

/** A value that is computed when it is asked for, and again if it was collected as garbage in between. */
export function computedAgain<Value extends object>(compute: () => Value): () => Value {
  let known: WeakRef<Value> | undefined
  return () => {
    const before = known?.deref()
    if (before) return before
    const value = compute()
    known = new WeakRef(value)
    return value
  }
}

/**
 * The beginning of several mappings, `($name := …; …;`, which is parsed once for all of them: most of the text of a mapping is the
 * definitions of its file.
 */
export type SharedBeginning = {
  readonly text: string
  /** Returns the parsed definitions; undefined where a mapping must be parsed as a whole. */
  statements(): readonly Node[] | undefined
}

/** Shares the beginning of mappings, an opening parenthesis and definitions that each end with a semicolon. */
export function sharedBeginning(text: string): SharedBeginning {
  const parsed = computedAgain(() => ({ statements: statementsIn(text) }))
  return { text, statements: () => parsed().statements }
}

/** Returns the syntax tree of a text: that of `parse`, made of a shared beginning and of the rest. */
export function parseTree(text: string, { beginning }: { beginning: SharedBeginning }): Node | undefined {
  const before = text.startsWith(beginning.text) ? beginning.statements() : undefined
  if (!before) return undefined
  // Blanks keep every position what it is in the whole text.
  const rest = blockIn(`(${' '.repeat(beginning.text.length - 1)}${text.slice(beginning.text.length)}`)
  if (!rest) return undefined
  const expressions = [...before, ...rest.expressions]
  return { ...rest, expressions, ...(expressions.some(wrapsList) && { consarray: true }) }
}

/** Returns what a block of definitions has before its result. */
function statementsIn(text: string): readonly Node[] | undefined {
  const expressions: Node[] = blockIn(`${text}0)`)?.expressions ?? []
  const result = expressions.at(-1)
  return result?.type === 'number' && result.position === text.length + 1 ? expressions.slice(0, -1) : undefined
}

/**
 * Parses a text that is one block and nothing else. Undefined for others, for syntax errors, which only the whole text explains, and
 * where `%` may refer to a parent: parents are numbered by the text.
 */
function blockIn(text: string): Node | undefined {
  if (text.includes('%')) return undefined
  try {
    const tree = parse(text).ast() as Node
    return tree.type === 'block' && Object.keys(tree).every((name) => membersOfBlock.has(name)) ? tree : undefined
  } catch {
    return undefined
  }
}

const membersOfBlock: ReadonlySet<string> = new Set(['type', 'position', 'expressions', 'consarray'])

/** Checks whether an expression makes the block around it one that constructs a list, as JSONata's parser does. */
function wrapsList({ consarray, type, steps }: Node): boolean {
  return consarray === true || (type === 'path' && steps[0].consarray === true)
}

/** Options for parsing, with bounds in the library's units: milliseconds, nested evaluations, items of a list. */
function parseOptions({ steps, depth, sequence }: Readonly<Bounds>): Jsonata.JsonataOptions {
  const RegexEngine = BoundedRegExp as RegExpConstructor
  return deepFreeze({ timeout: steps / stepsPerMillisecond, stack: depth, sequence, RegexEngine })
}

const stepsPerMillisecond = 2_000

/** The library calls it with `new`. */
function BoundedRegExp(pattern: RegExp): RegExp {
  return boundedPattern(pattern)
}
