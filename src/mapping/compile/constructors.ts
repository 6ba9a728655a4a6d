import { knownFunction, standsAlone } from './calls.ts'
import {
  type Code,
  captured,
  codeOf,
  type Generator,
  itemFunction,
  literal,
  type Node,
  statement,
  stored,
  uniqueName,
} from './generator.ts'
import { builtIn } from './scope.ts'
import { calledVariable } from './uses.ts'

/** Emits array and object constructors and unary minus. */
export function unary(generator: Generator, node: Node, context: string): Code {
  if (node.value === '[') return arrayConstructor(generator, node, context)
  if (node.value === '{') return objectConstructor(generator, node, context)
  const value = generator.value(node.expression, context)
  return codeOf(`$.negate(${value.text}, ${node.position ?? 0})`, { kind: 'number' })
}

/** The library evaluates members concurrently, so the order of a binding among several of them is undefined. */
function sideBySide<T>(generator: Generator, count: number, emit: () => T): T {
  const before = generator.frame.parallel
  generator.frame.parallel = before || count > 1
  try {
    return emit()
  } finally {
    generator.frame.parallel = before
  }
}

function arrayConstructor(generator: Generator, node: Node, context: string): Code {
  const nodes = node.expressions as Node[]
  const code = sideBySide(generator, nodes.length, () => items(generator, nodes, context))
  return node.consarray ? codeOf(`$.constructed(${code.text})`, { kind: 'array', present: true }) : code
}

function items(generator: Generator, nodes: readonly Node[], context: string): Code {
  const lead: Code[] = []
  const literalList = (): string => `[${lead.map(({ text }) => text).join(', ')}]`
  let name: string | undefined
  // Leading single items form a list literal; others are added to it.
  for (const node of nodes) {
    const { lines, result } = captured(generator, () => generator.value(node, context))
    if (name === undefined) {
      const isLead = result.present && isWhole(node, result) && (lines.length === 0 || lead.length === 0)
      if (isLead) {
        generator.lines.push(...lines)
        lead.push(result)
        continue
      }
      name = uniqueName(generator, 'list')
      statement(generator, `const ${name} = ${literalList()}`)
    }
    generator.lines.push(...lines)
    addItem(generator, name, node, result)
  }
  const known = { kind: 'array', present: true } as const
  if (name !== undefined) return codeOf(name, { ...known, simple: true })
  return codeOf(literalList(), nodes.every(isLiteral) ? { ...known, literals: lead.map(({ text }) => text) } : known)
}

function isLiteral({ type, predicate }: Node): boolean {
  return (type === 'string' || type === 'number' || type === 'value') && !predicate
}

function addItem(generator: Generator, list: string, node: Node, value: Code): void {
  if (!isWhole(node, value)) statement(generator, `$.extend(${list}, ${value.text})`)
  else if (value.present) statement(generator, `${list}.push(${value.text})`)
  else {
    const item = stored(generator, value, 'item')
    statement(generator, `if (${item.text} !== undefined) ${list}.push(${item.text})`)
  }
}

/** Checks whether a value is one item of a list, not its items. */
function isWhole(node: Node, code: Code): boolean {
  return node.value === '[' || isOneItem(code)
}

function isOneItem({ kind }: Code): boolean {
  return kind === 'string' || kind === 'number' || kind === 'boolean' || kind === 'object'
}

function objectConstructor(generator: Generator, node: Node, context: string): Code {
  const pairs = node.lhs as [Node, Node][]
  const keys = pairs.map(([key]) => (key.type === 'string' && !key.predicate ? (key.value as string) : undefined))
  const reserved = keys.some((key) => key === '_jsonata_lambda' || key === '_jsonata_function')
  if (keys.includes(undefined) || reserved || new Set(keys).size < keys.length) {
    return codeOf(groupBy(generator, pairs, context, node.position ?? 0), { kind: 'object', present: true })
  }
  const values = pairs.map(([, value]) => value)
  const own = values.some((value) => readsContext(generator, value)) ? uniqueName(generator, 'context') : context
  if (own !== context) {
    statement(generator, `const ${own} = $.isArray(${context}) ? $.grouped(${context}) : ${context}`)
  }
  return sideBySide(generator, values.length, () => members(generator, keys as string[], values, own))
}

function members(generator: Generator, keys: readonly string[], values: readonly Node[], context: string): Code {
  const lead: string[] = []
  const literalObject = (): string => (lead.length === 0 ? '{}' : `{ ${lead.join(', ')} }`)
  let name: string | undefined
  // Leading members that are never undefined form an object literal; others are assigned.
  for (const [index, key] of keys.entries()) {
    const { lines, result } = captured(generator, () => generator.value(values[index] as Node, context))
    if (name === undefined) {
      if (result.present && (lines.length === 0 || lead.length === 0)) {
        generator.lines.push(...lines)
        lead.push(`${memberName(key)}: ${result.text}`)
        continue
      }
      name = uniqueName(generator, 'object')
      statement(generator, `const ${name} = ${literalObject()}`)
    }
    generator.lines.push(...lines)
    addMember(generator, name, key, result)
  }
  const known = { kind: 'object', present: true } as const
  if (name !== undefined) return codeOf(name, { ...known, simple: true })
  return codeOf(literalObject(), values.every(isLiteral) ? { ...known, literals: lead } : known)
}

function addMember(generator: Generator, object: string, key: string, value: Code): void {
  if (value.present) statement(generator, set(object, key, value.text))
  else {
    const member = stored(generator, value, key)
    statement(generator, `if (${member.text} !== undefined) ${set(object, key, member.text)}`)
  }
}

/** A computed property name defines an own member even for `__proto__`. */
function memberName(key: string): string {
  return key === '__proto__' ? `[${literal(key)}]` : literal(key)
}

function set(name: string, key: string, value: string): string {
  if (key === '__proto__') return `$.setMember(${name}, ${literal(key)}, ${value})`
  return /^[A-Za-z_]\w*$/.test(key) ? `${name}.${key} = ${value}` : `${name}[${literal(key)}] = ${value}`
}

/** A call that groups items by computed keys. */
function groupBy(generator: Generator, pairs: readonly [Node, Node][], items: string, position: number): string {
  const emitted = pairs.map(([key, value]) => {
    const keyOf = uniqueName(generator, 'item')
    const of = uniqueName(generator, 'items')
    const keyFunction = itemFunction(generator, keyOf, () => generator.value(key, keyOf))
    const valueFunction = sideBySide(generator, pairs.length, () =>
      itemFunction(generator, of, () => generator.value(value, of)),
    )
    return `[${keyFunction}, ${valueFunction}]`
  })
  return `$.group(${items}, [${emitted.join(', ')}], ${position})`
}

/** Checks whether the code of an expression may mention its context. */
function readsContext(generator: Generator, node: Node): boolean {
  const reads = (part: Node | undefined): boolean => part !== undefined && readsContext(generator, part)
  switch (node.type) {
    case 'string':
    case 'number':
    case 'value':
    case 'regex':
    case 'transform':
      return false
    case 'variable':
      return node.value === ''
    case 'path':
      return reads(node.steps[0])
    case 'lambda':
      return reads(node.body)
    case 'bind':
      return reads(node.rhs)
    case 'binary':
      return reads(node.lhs) || reads(node.rhs)
    case 'apply':
      // What is called gets one more argument.
      return reads(node.lhs) || (node.rhs.type === 'function' ? callReads(generator, node.rhs, 1) : reads(node.rhs))
    case 'condition':
      return reads(node.condition) || reads(node.then) || reads(node.else)
    case 'unary':
      return constructorReads(node, reads)
    case 'function':
      return callReads(generator, node)
    default:
      return true
  }
}

function constructorReads({ value, expression, expressions, lhs }: Node, reads: (node: Node) => boolean): boolean {
  if (value === '[') return (expressions as Node[]).some(reads)
  // An object is one per group of items of its context, if its keys are computed.
  if (value === '{') return (lhs as [Node, Node][]).some(([key, each]) => key.type !== 'string' || reads(each))
  return reads(expression)
}

/** Checks whether a call or its arguments may mention the context: a function may take it for a missing argument. */
function callReads(generator: Generator, node: Node, more = 0): boolean {
  if ((node.arguments as Node[]).some((each) => readsContext(generator, each))) return true
  const name = calledVariable(node)
  const count = node.arguments.length + more
  if (name === undefined) return true
  if (builtIn(generator, name)) return !standsAlone(generator.library, name, count)
  return knownFunction(generator, node, count) === undefined
}
