import { application, functionCall, lambda, partialApplication, transformation } from './calls.ts'
import { groupBy, unary } from './constructors.ts'
import { simpleExpressions } from './expressions.ts'
import { any, type Code, captured, type Generator, type Node, Uncompilable } from './generator.ts'
import { name } from './names.ts'
import { filtered, path } from './paths.ts'
import { call, chain, hinted, open, partial, signed, Tail } from './runtime/callables.ts'
import { group, grouped, orderBy, tupleOrder } from './runtime/grouping.ts'
import type { Library } from './runtime/library.ts'
import { type } from './runtime/library-values.ts'
import * as operators from './runtime/operators.ts'
import * as paths from './runtime/paths.ts'
import { matcher } from './runtime/regex.ts'
import * as sequences from './runtime/sequence.ts'
import { transform } from './runtime/transform.ts'
import * as tuples from './runtime/tuples.ts'
import { declare, topLevelBindings, variable } from './scope.ts'

/** A mapping as JavaScript. */
export type Program = {
  source: string
  /** The result is plain JSON as it comes. */
  plain: boolean
  run(input: unknown, bindings: object | undefined): unknown
}

/** Translates a syntax tree. Throws Uncompilable with the construct that only the library can run. */
export function compileTree(tree: unknown, library: Library, bindings: ReadonlySet<string> = new Set()): Program {
  const { source, plain } = generate(tree as Node, library, bindings)
  const build = new Function('$', 'library', `"use strict"\n${source}`)
  return { source, plain, run: build(runtime, library) }
}

function generate(tree: Node, library: Library, bindings: ReadonlySet<string>): { source: string; plain: boolean } {
  const generator: Generator = {
    lines: [],
    frame: { outer: undefined, variables: new Map(), parallel: false },
    preamble: new Map(),
    names: new Set(),
    library,
    bindings,
    value: (node, context) => value(generator, node, context),
  }
  const names = topLevelBindings(tree)
  for (const name of names) declare(generator, name, false)
  const { lines, result } = captured(generator, () => generator.value(tree, 'context'))
  const declared = names.map((name) => generator.frame.variables.get(name))
  const body = [
    '  const context = $.rootContext(input)',
    ...declared.map((variable) => `  let ${variable?.name}${variable?.asked ? ' = $.unbound' : ''}`),
    ...lines,
    `  return ${result.text.replaceAll('\n', '\n  ')}`,
  ]
  const preamble = [...generator.preamble.values()].map(({ name, text }) => `const ${name} = ${text}`)
  const source = [...preamble, `return (input, bindings) => {\n${body.join('\n')}\n}`].join('\n')
  return { source, plain: result.plain }
}

/** Any expression: what it is, then its predicates, its grouping, and the collapse of its result. */
function value(generator: Generator, node: Node, context: string): Code {
  const emit = emitters[node.type]
  if (!emit) throw new Uncompilable(construct(node))
  if (node.tuple && node.type !== 'path' && (node.predicate || node.group)) {
    throw new Uncompilable('a predicate on a block among the bindings @, # and %')
  }
  let code = emit(generator, node, context)
  const isPath = node.type === 'path'
  if (node.predicate || (node.group && !isPath)) {
    if (endsInTailCall(node)) throw new Uncompilable('a predicate on a call in tail position')
  }
  if (node.predicate) code = { ...filtered(generator, code, node.predicate), raw: true }
  if (node.group && !isPath) {
    const pairs = groupBy(generator, node.group.lhs, code.text, node.group.position ?? 0)
    code = any(pairs, { kind: 'object', present: true })
  }
  const keep = node.keepArray === true && !isPath && !endsInTailCall(node)
  if (!code.raw && !keep) return code
  const { raw, ...known } = code
  return { ...known, text: `$.collapse(${code.text}${keep ? ', true' : ''})`, present: false, simple: false }
}

function construct(node: Node): string {
  return `the construct "${node.type}"`
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
  parent: (generator, node) => variable(generator, node.slot.label),
  partial: partialApplication,
  transform: transformation,
}

/** What generated code calls `$`. */
const runtime = {
  ...sequences,
  ...operators,
  ...paths,
  ...tuples,
  Tail,
  call,
  chain,
  group,
  grouped,
  hinted,
  isArray: Array.isArray,
  matcher,
  open,
  orderBy,
  partial,
  signed,
  transform,
  tupleOrder,
  type,
  unbound: Symbol('unbound'),
}
