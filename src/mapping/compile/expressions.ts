import {
  any,
  braces,
  type Code,
  constant,
  fresh,
  type Generator,
  held,
  inOrder,
  literal,
  missing,
  type Node,
  nested,
  statement,
  Uncompilable,
} from './generator.ts'
import { bind, block, variable } from './scope.ts'

type Emit = (generator: Generator, node: Node, context: string) => Code

/** Emitters for literals, variables, operators, conditions and blocks. */
export const simpleExpressions: Readonly<Record<string, Emit>> = {
  string: (_, node) => any(literal(node.value), { kind: 'string', present: true, simple: true }),
  number: (_, node) => any(literal(node.value), { kind: 'number', present: true, simple: true }),
  value: (_, node) => any(literal(node.value), { ...valueKind(node.value), present: true, simple: true }),
  variable: (generator, node, context) =>
    node.value === '' ? any(`$.self(${context})`) : variable(generator, node.value as string),
  regex: (generator, node) => {
    // The library copies what stands before ?: and ?? as JSON, where an expression is lost.
    if (!(node.value instanceof RegExp)) throw new Uncompilable('a regular expression before ?: or ??')
    const { source, flags } = node.value
    const text = `$.matcher(new RegExp(${literal(source)}, ${literal(flags)}), ${node.position ?? 0})`
    const name = constant(generator, `regex ${text}`, 'matches', () => text)
    return any(name, { kind: 'function', present: true, simple: true })
  },
  binary,
  bind,
  condition,
  block: (generator, node, context) => block(generator, node.expressions, context),
}

function valueKind(value: unknown): { kind: 'boolean' | 'any' } {
  return { kind: typeof value === 'boolean' ? 'boolean' : 'any' }
}

function binary(generator: Generator, node: Node, context: string): Code {
  const operator = node.value as string
  if (operator === 'and' || operator === 'or') return logical(generator, node, context)
  const [left, right] = inOrder(generator, [
    () => generator.value(node.lhs, context),
    () => generator.value(node.rhs, context),
  ]) as [Code, Code]
  const position = node.position ?? 0
  const boolean = { kind: 'boolean', present: true } as const
  switch (operator) {
    case '=':
      return any(equality(left, right), boolean)
    case '!=':
      return any(`$.differs(${left.text}, ${right.text})`, boolean)
    case 'in':
      return any(`$.includes(${left.text}, ${right.text})`, boolean)
    case '&':
      return any(`$.concat(${left.text}, ${right.text}, ${position})`, { kind: 'string', present: true })
    case '..':
      return any(`$.range(${left.text}, ${right.text}, ${position})`, { raw: true })
    case '<':
    case '<=':
    case '>':
    case '>=':
      return any(`$.compare(${left.text}, ${right.text}, "${operator}", ${position})`, { kind: 'boolean' })
    default:
      return any(`$.arithmetic(${left.text}, ${right.text}, ${literal(operator)}, ${position})`, { kind: 'number' })
  }
}

/** A literal on either side makes identity enough. */
function equality(left: Code, right: Code): string {
  const isScalar = ({ text, kind, simple }: Code): boolean =>
    (simple && ['string', 'number', 'boolean'].includes(kind) && /^["\d-]|^true$|^false$/.test(text)) || text === 'null'
  return isScalar(left) || isScalar(right) ? `(${left.text} === ${right.text})` : `$.equal(${left.text}, ${right.text})`
}

function logical(generator: Generator, node: Node, context: string): Code {
  const position = node.position ?? 0
  const test = (code: Code): string =>
    code.kind === 'boolean' ? condition1(code) : `$.operand(${code.text}, "${node.value}", ${position})`
  const left = generator.value(node.lhs, context)
  const { lines, result: right } = nested(generator, () => generator.value(node.rhs, context))
  const known = { kind: 'boolean', present: true } as const
  const sign = node.value === 'and' ? '&&' : '||'
  if (lines.length === 0) return any(`(${test(left)} ${sign} ${test(right)})`, known)
  const name = fresh(generator, node.value as string)
  const open = node.value === 'and' ? name : `!${name}`
  statement(generator, `let ${name} = ${test(left)}`)
  statement(generator, `if (${open}) ${braces(generator, lines, `${name} = ${test(right)}`)}`)
  return any(name, { ...known, simple: true })
}

/** A boolean that may be missing, as JavaScript's truth. */
function condition1({ text, present }: Code): string {
  return present ? text : `(${text} === true)`
}

function condition(generator: Generator, node: Node, context: string): Code {
  const kept = coalesced(node) ? coalesce(generator, node, context) : undefined
  if (kept) return kept
  const test = generator.value(node.condition, context)
  const asks = test.kind === 'boolean' ? condition1(test) : `$.truthy(${test.text})`
  const then = nested(generator, () => generator.value(node.then, context))
  const other = nested(generator, () => (node.else ? generator.value(node.else, context) : missing))
  const known = either(then.result, other.result)
  if (then.lines.length === 0 && other.lines.length === 0) {
    return any(`(${asks} ? ${then.result.text} : ${other.result.text})`, known)
  }
  const name = fresh(generator, 'choice')
  const branch = ({ lines, result }: typeof then): string => braces(generator, lines, `${name} = ${result.text}`)
  const otherwise = node.else ? ` else ${branch(other)}` : ''
  statement(generator, `let ${name}`)
  statement(generator, `if (${asks}) ${branch(then)}${otherwise}`)
  return any(name, { ...known, simple: true })
}

/** What is known of a value that is one of two. */
export function either(left: Code, right: Code): Partial<Code> {
  if (left.text === 'undefined') return { kind: right.kind }
  if (right.text === 'undefined') return { kind: left.kind }
  return {
    kind: left.kind === right.kind ? left.kind : 'any',
    present: left.present && right.present,
  }
}

/** `a ?? b` is parsed as a condition that evaluates `a` twice; without effects once is enough. */
function coalesced(node: Node): boolean {
  const { condition: test, then } = node
  const asksExists = test.type === 'function' && test.procedure?.value === 'exists' && test.position === undefined
  return asksExists && isPure(then) && withoutPlaces(test.arguments[0]) === withoutPlaces(then)
}

function coalesce(generator: Generator, node: Node, context: string): Code | undefined {
  const value = held(generator, generator.value(node.then, context))
  const other = nested(generator, () => generator.value(node.else, context))
  const known = { ...either(value, other.result), present: other.result.present }
  if (other.lines.length === 0) {
    return any(`(${value.text} !== undefined ? ${value.text} : ${other.result.text})`, known)
  }
  const name = fresh(generator, 'choice')
  statement(generator, `let ${name} = ${value.text}`)
  statement(generator, `if (${name} === undefined) ${braces(generator, other.lines, `${name} = ${other.result.text}`)}`)
  return any(name, { ...known, simple: true })
}

function isPure(node: Node): boolean {
  if (node.type === 'variable') return !node.predicate && !node.group
  return node.type === 'path' && node.steps.every((step: Node) => step.type === 'name' && !step.stages) && !node.group
}

function withoutPlaces(node: unknown): string {
  return JSON.stringify(node, (key, value) => (key === 'position' || key === 'keepArray' ? undefined : value))
}
