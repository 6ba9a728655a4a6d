import { application, functionCall, lambda, transformation } from './calls.ts'
import { unary } from './constructors.ts'
import { simpleExpressions } from './expressions.ts'
import { braces, type Code, endsInTailCall, type Generator, type Node, nested, Uncompilable } from './generator.ts'
import { filtered, name, path } from './paths.ts'
import { call, callLibrary, chain, orSuggestDollar, signed, TailCall } from './runtime/callables.ts'
import { group, grouped } from './runtime/grouping.ts'
import type { Library } from './runtime/library.ts'
import { type } from './runtime/library-values.ts'
import { spend } from './runtime/limits.ts'
import * as operators from './runtime/operators.ts'
import * as paths from './runtime/paths.ts'
import { matcher } from './runtime/regex.ts'
import * as sequences from './runtime/sequence.ts'
import { transform } from './runtime/transform.ts'

/** A compiled expression. */
export type Program = {
  source: string
  run(input: unknown, bindings: object | undefined): unknown
}

/** The names of the variables that are passed to each run, and the URL that stack traces and profiles show for the code. */
export type CompileOptions = { bindings?: ReadonlySet<string>; url?: string | undefined }

/** Compiles a syntax tree to JavaScript. Throws Uncompilable for a construct that has to be interpreted. */
export function compileTree(
  tree: unknown,
  library: Library,
  { bindings = new Set(), url }: CompileOptions = {},
): Program {
  const source = generate(tree as Node, library, bindings)
  const build = new Function('$', 'library', `"use strict"\n${source}${sourceUrl(url)}`)
  return { source, run: build(runtime, library) }
}

/** Writes a comment that names a script. V8 ignores names with quotes or white space, and a line break would end the comment. */
function sourceUrl(url: string | undefined): string {
  return url === undefined ? '' : `\n//# sourceURL=${url.replace(/[^!-~]|["'`]/g, '_')}`
}

function generate(tree: Node, library: Library, bindings: ReadonlySet<string>): string {
  const generator: Generator = {
    lines: [],
    depth: 0,
    frame: { outer: undefined, variables: new Map(), parallel: false },
    inside: false,
    calls: false,
    tails: false,
    wrapsLists: wrapsLists(tree),
    preamble: new Map(),
    outermost: new Set(),
    runVariables: new Set(),
    names: new Map(),
    library,
    bindings,
    value: (node, context) => value(generator, node, context),
  }
  const { lines, result } = nested(generator, () => generator.value(tree, 'context'))
  const preamble = [...generator.preamble.values()].map(({ name, text }) => `const ${name} = ${text}`)
  return [...preamble, ...mainFunction(generator, lines, result.text)].join('\n')
}

/** The function of a run. What other functions read of a run is stored outside of it, and removed after the run. */
function mainFunction(generator: Generator, lines: readonly string[], result: string): string[] {
  const { runVariables } = generator
  const parameters = ['input', 'bindings'].map((name) => (runVariables.has(name) ? `given_${name}` : name))
  const stored = ['input', 'bindings'].filter((name) => runVariables.has(name)).map((name) => `${name} = given_${name}`)
  const context = `${runVariables.has('context') ? '' : 'const '}context = $.rootContext(${parameters[0]})`
  const body = [...stored, context].map((line) => `  ${line}`).concat(lines)
  const main = `(${parameters.join(', ')}) => ${braces(generator, body, `return ${result}`)}`
  if (runVariables.size === 0) return [`return ${main}`]
  const names = [...runVariables]
  return [
    `let ${names.join(', ')}`,
    `const run = ${main}`,
    `const clear = () => { ${names.map((name) => `${name} = undefined`).join('; ')} }`,
    'return (input, bindings) => { try { return run(input, bindings) } finally { clear() } }',
  ]
}

/** Checks whether an expression has array constructors as steps of a path. */
function wrapsLists(tree: unknown): boolean {
  if (Array.isArray(tree)) return tree.some(wrapsLists)
  if (tree === null || typeof tree !== 'object') return false
  const node = tree as Node
  const known = node.type === 'bind' ? wrappingDefinitions.get(node) : undefined
  const wraps = known ?? (node.consarray === true || Object.values(node).some(wrapsLists))
  if (node.type === 'bind') wrappingDefinitions.set(node, wraps)
  return wraps
}

/** Definitions, which are part of many mappings. */
const wrappingDefinitions = new WeakMap<Node, boolean>()

/** Emits any expression: the node itself, then its predicates, then the collapse of its result. */
function value(generator: Generator, node: Node, context: string): Code {
  const emit = emitters[node.type]
  if (!emit || node.group) throw new Uncompilable(construct(node))
  let code = emit(generator, node, context)
  const isPath = node.type === 'path'
  if (node.predicate && endsInTailCall(node)) throw new Uncompilable('a predicate on a call in tail position')
  const keep = node.keepArray === true && !isPath && !endsInTailCall(node)
  if (node.predicate) code = { ...filtered(generator, code, node.predicate, keep), raw: true }
  if (!code.raw && !keep) return code
  const { raw, ...known } = code
  return { ...known, text: `$.collapse(${code.text}${keep ? ', true' : ''})`, present: false, simple: false }
}

/** Describes a construct that is not compiled. */
function construct(node: Node): string {
  return node.group ? 'grouping by {…} after a path' : (constructs[node.type] ?? `the construct "${node.type}"`)
}

const constructs: Readonly<Record<string, string>> = {
  descendant: 'the wildcard **',
  parent: 'the parent operator %',
  partial: 'a partial application',
  sort: 'ordering by ^(…)',
  wildcard: 'the wildcard *',
}

const emitters: Readonly<Record<string, (generator: Generator, node: Node, context: string) => Code>> = {
  ...simpleExpressions,
  unary,
  path,
  function: functionCall,
  apply: application,
  lambda,
  name,
  transform: transformation,
}

/** The runtime library, `$` in generated code. */
const runtime = {
  ...sequences,
  ...operators,
  ...paths,
  TailCall,
  call,
  callLibrary,
  chain,
  group,
  grouped,
  orSuggestDollar,
  isArray: Array.isArray,
  matcher,
  signed,
  spend,
  transform,
  type,
  unbound: Symbol('unbound'),
}
