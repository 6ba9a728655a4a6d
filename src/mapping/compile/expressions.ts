import { bind, block } from './blocks.ts'
import { emitDefinition } from './calls.ts'
import {
  braces,
  type Code,
  codeOf,
  constant,
  type Generator,
  inOrder,
  literal,
  missing,
  type Node,
  nested,
  statement,
  stored,
  Uncompilable,
  uniqueName,
} from './generator.ts'
import { definition, variable } from './scope.ts'

type Emit = (generator: Generator, node: Node, context: string) => Code

/** Emitters for literals, variables, operators, conditions and blocks. */
export const simpleExpressions: Readonly<Record<string, Emit>> = {
  string: (_, node) => codeOf(literal(node.value), { kind: 'string', present: true, simple: true }),
  number: (_, node) => codeOf(literal(node.value), { kind: 'number', present: true, simple: true }),
  value: (_, node) => codeOf(literal(node.value), { ...valueKind(node.value), present: true, simple: true }),
  variable: (generator, node, context) =>
    node.value === '' ? codeOf(`$.self(${context})`) : namedVariable(generator, node.value as string),
  regex: (generator, node) => {
    // The parser copies the left side of ?: and ?? through JSON, which loses regular expressions.
    if (!(node.value instanceof RegExp)) throw new Uncompilable('a regular expression before ?: or ??')
    const { source, flags } = node.value
    const text = `$.matcher(new RegExp(${literal(source)}, ${literal(flags)}), ${node.position ?? 0})`
    const name = constant(generator, `regex ${text}`, 'matches', () => text)
    return codeOf(name, { kind: 'function', present: true, simple: true })
  },
  binary,
  bind,
  condition,
  block: (generator, node, context) => block(generator, node.expressions, context),
}

function namedVariable(generator: Generator, name: string): Code {
  const found = definition(generator, name)
  if (found) emitDefinition(generator, found.name, found.known)
  return variable(generator, name)
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
      return codeOf(equality(left, right), boolean)
    case '!=':
      return codeOf(`$.differs(${left.text}, ${right.text})`, boolean)
    case 'in':
      return codeOf(membership(generator, left, right), boolean)
    case '&':
      return codeOf(`$.concat(${left.text}, ${right.text}, ${position})`, { kind: 'string', present: true })
    case '..':
      return codeOf(`$.range(${left.text}, ${right.text}, ${position})`, { raw: true })
    case '<':
    case '<=':
    case '>':
    case '>=':
      return codeOf(`$.compare(${left.text}, ${right.text}, "${operator}", ${position})`, { kind: 'boolean' })
    default:
      return codeOf(`$.arithmetic(${left.text}, ${right.text}, ${literal(operator)}, ${position})`, { kind: 'number' })
  }
}

/** Membership; of a list of literals by comparing with each. */
function membership(generator: Generator, left: Code, right: Code): string {
  if (right.kind !== 'array' || !right.literals || right.literals.length > 8)
    return `$.includes(${left.text}, ${right.text})`
  const { text } = stored(generator, left)
  return `(${right.literals.map((each) => `${text} === ${each}`).join(' || ') || 'false'})`
}

/** Equality; strict if either side is a literal, else deep. */
function equality(left: Code, right: Code): string {
  const isScalar = ({ text, kind, simple }: Code): boolean =>
    (simple && ['string', 'number', 'boolean'].includes(kind) && /^["\d-]|^true$|^false$/.test(text)) || text === 'null'
  return isScalar(left) || isScalar(right) ? `(${left.text} === ${right.text})` : `$.equal(${left.text}, ${right.text})`
}

function logical(generator: Generator, node: Node, context: string): Code {
  const position = node.position ?? 0
  const test = (code: Code): string =>
    code.kind === 'boolean' ? asTest(code) : `$.operand(${code.text}, "${node.value}", ${position})`
  const left = generator.value(node.lhs, context)
  const { lines, result: right } = nested(generator, () => generator.value(node.rhs, context))
  const known = { kind: 'boolean', present: true } as const
  const sign = node.value === 'and' ? '&&' : '||'
  if (lines.length === 0) return codeOf(`(${test(left)} ${sign} ${test(right)})`, known)
  const name = uniqueName(generator, node.value as string)
  const open = node.value === 'and' ? name : `!${name}`
  statement(generator, `let ${name} = ${test(left)}`)
  statement(generator, `if (${open}) ${braces(generator, lines, `${name} = ${test(right)}`)}`)
  return codeOf(name, { ...known, simple: true })
}

/** A boolean that may be undefined, as a JavaScript condition. */
function asTest({ text, present }: Code): string {
  return present ? text : `(${text} === true)`
}

function condition(generator: Generator, node: Node, context: string): Code {
  const kept = coalesced(node) ? coalesce(generator, node, context) : undefined
  if (kept) return kept
  const test = generator.value(node.condition, context)
  const asks = test.kind === 'boolean' ? asTest(test) : `$.truthy(${test.text})`
  const then = nested(generator, () => generator.value(node.then, context))
  const other = nested(generator, () => (node.else ? generator.value(node.else, context) : missing))
  const known = either(then.result, other.result)
  if (then.lines.length === 0 && other.lines.length === 0) {
    return codeOf(`(${asks} ? ${then.result.text} : ${other.result.text})`, known)
  }
  const name = uniqueName(generator, 'choice')
  const branch = ({ lines, result }: typeof then): string => braces(generator, lines, `${name} = ${result.text}`)
  const otherwise = node.else ? ` else ${branch(other)}` : ''
  statement(generator, `let ${name}`)
  statement(generator, `if (${asks}) ${branch(then)}${otherwise}`)
  return codeOf(name, { ...known, simple: true })
}

/** Static facts that hold for both of two values. */
export function either(left: Code, right: Code): Partial<Code> {
  if (left.text === 'undefined') return { kind: right.kind }
  if (right.text === 'undefined') return { kind: left.kind }
  return {
    kind: left.kind === right.kind ? left.kind : 'any',
    present: left.present && right.present,
  }
}

/** `a ?? b` is parsed as a condition that evaluates `a` twice; if `a` has no effects, once is enough. */
function coalesced(node: Node): boolean {
  const { condition: test, then } = node
  const asksExists = test.type === 'function' && test.procedure?.value === 'exists' && test.position === undefined
  return asksExists && isPure(then) && withoutPlaces(test.arguments[0]) === withoutPlaces(then)
}

function coalesce(generator: Generator, node: Node, context: string): Code | undefined {
  const value = stored(generator, generator.value(node.then, context))
  const other = nested(generator, () => generator.value(node.else, context))
  const known = { ...either(value, other.result), present: other.result.present }
  if (other.lines.length === 0) {
    return codeOf(`(${value.text} !== undefined ? ${value.text} : ${other.result.text})`, known)
  }
  const name = uniqueName(generator, 'choice')
  statement(generator, `let ${name} = ${value.text}`)
  statement(generator, `if (${name} === undefined) ${braces(generator, other.lines, `${name} = ${other.result.text}`)}`)
  return codeOf(name, { ...known, simple: true })
}

function isPure(node: Node): boolean {
  if (node.type === 'variable') return !node.predicate && !node.group
  return node.type === 'path' && node.steps.every((step: Node) => step.type === 'name' && !step.stages) && !node.group
}

function withoutPlaces(node: unknown): string {
  return JSON.stringify(node, (key, value) => (key === 'position' || key === 'keepArray' ? undefined : value))
}
