import { application, functionCall, lambda, transformation } from './calls.ts'
import { unary } from './constructors.ts'
import { simpleExpressions } from './expressions.ts'
import { braces, type Code, type Generator, type Node, nested, Uncompilable } from './generator.ts'
import { name } from './names.ts'
import { filtered, path } from './paths.ts'
import { call, chain, orSuggestDollar, signed, TailCall } from './runtime/callables.ts'
import { group, grouped } from './runtime/grouping.ts'
import type { Library } from './runtime/library.ts'
import { type } from './runtime/library-values.ts'
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

/** Compiles a syntax tree to JavaScript. Throws Uncompilable for a construct that has to be interpreted. */
export function compileTree(tree: unknown, library: Library, bindings: ReadonlySet<string> = new Set()): Program {
  const source = generate(tree as Node, library, bindings)
  const build = new Function('$', 'library', `"use strict"\n${source}`)
  return { source, run: build(runtime, library) }
}

function generate(tree: Node, library: Library, bindings: ReadonlySet<string>): string {
  const generator: Generator = {
    lines: [],
    depth: 0,
    frame: { outer: undefined, variables: new Map(), parallel: false },
    preamble: new Map(),
    names: new Set(),
    library,
    bindings,
    value: (node, context) => value(generator, node, context),
  }
  const { lines, result } = nested(generator, () => generator.value(tree, 'context'))
  const body = ['  const context = $.rootContext(input)', ...lines]
  const preamble = [...generator.preamble.values()].map(({ name, text }) => `const ${name} = ${text}`)
  return [...preamble, `return (input, bindings) => ${braces(generator, body, `return ${result.text}`)}`].join('\n')
}

/** Emits any expression: the node itself, then its predicates, then the collapse of its result. */
function value(generator: Generator, node: Node, context: string): Code {
  const emit = emitters[node.type]
  if (!emit || node.group) throw new Uncompilable(construct(node))
  let code = emit(generator, node, context)
  const isPath = node.type === 'path'
  if (node.predicate && endsInTailCall(node)) throw new Uncompilable('a predicate on a call in tail position')
  if (node.predicate) code = { ...filtered(generator, code, node.predicate), raw: true }
  const keep = node.keepArray === true && !isPath && !endsInTailCall(node)
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

function endsInTailCall(node: Node): boolean {
  if (node.type === 'lambda') return node.thunk === true
  if (node.type === 'condition') return endsInTailCall(node.then) || (node.else ? endsInTailCall(node.else) : false)
  return node.type === 'block' && node.expressions.length > 0 && endsInTailCall(node.expressions.at(-1))
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
  chain,
  group,
  grouped,
  orSuggestDollar,
  isArray: Array.isArray,
  matcher,
  signed,
  transform,
  type,
  unbound: Symbol('unbound'),
}
