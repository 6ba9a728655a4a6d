import {
  any,
  arrow,
  type Code,
  captured,
  fresh,
  type Generator,
  held,
  inOrder,
  literal,
  type Node,
  statement,
} from './generator.ts'

/** Emits array and object constructors and unary minus. */
export function unary(generator: Generator, node: Node, context: string): Code {
  if (node.value === '[') return arrayConstructor(generator, node, context)
  if (node.value === '{') return objectConstructor(generator, node, context)
  const value = generator.value(node.expression, context)
  return any(`$.negate(${value.text}, ${node.position ?? 0})`, { kind: 'number' })
}

/** Members are evaluated side by side by the library: a binding among them has no place in an order. */
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
  const items = sideBySide(generator, nodes.length, () =>
    inOrder(
      generator,
      nodes.map((item) => () => generator.value(item, context)),
    ),
  )
  const whole = nodes.map((item, index) => item.value === '[' || isOneItem(items[index] as Code))
  let text: string
  if (items.every((item, index) => item.present && whole[index]))
    text = `[${items.map((item) => item.text).join(', ')}]`
  else if (items.length === 1 && !whole[0]) text = `$.list(${items[0]?.text})`
  else text = `$.lists([${items.map((item) => item.text).join(', ')}], ${literal(whole)})`
  if (node.consarray) text = `$.constructed(${text})`
  return any(text, { kind: 'array', present: true })
}

function isOneItem({ kind }: Code): boolean {
  return kind === 'string' || kind === 'number' || kind === 'boolean' || kind === 'object'
}

function objectConstructor(generator: Generator, node: Node, context: string): Code {
  const pairs = node.lhs as [Node, Node][]
  const keys = pairs.map(([key]) => (key.type === 'string' && !key.predicate ? (key.value as string) : undefined))
  const reserved = keys.some((key) => key === '_jsonata_lambda' || key === '_jsonata_function')
  if (keys.includes(undefined) || reserved || new Set(keys).size < keys.length) {
    return any(groupBy(generator, pairs, context, node.position ?? 0), { kind: 'object', present: true })
  }
  const values = pairs.map(([, value]) => value)
  const own = usesContext(values) ? fresh(generator, 'context') : context
  if (own !== context) {
    statement(generator, `const ${own} = $.isArray(${context}) ? $.grouped(${context}) : ${context}`)
  }
  return sideBySide(generator, values.length, () => members(generator, keys as string[], values, own))
}

/** Whether an expression may look at its context: anything but literals and variables. */
function usesContext(values: readonly Node[]): boolean {
  return values.some((value) => !['string', 'number', 'value'].includes(value.type))
}

function members(generator: Generator, keys: readonly string[], values: readonly Node[], context: string): Code {
  const name = fresh(generator, 'object')
  const lead: string[] = []
  let index = 0
  // Members that are always there make a literal; from the first one that may be missing on they are added.
  for (; index < keys.length; index++) {
    const { lines, result } = captured(generator, () => generator.value(values[index] as Node, context))
    if (!result.present) break
    if (lines.length > 0 && lead.length > 0) break
    generator.lines.push(...lines)
    lead.push(`${memberName(keys[index] as string)}: ${result.text}`)
  }
  const object = lead.length === 0 ? '{}' : `{ ${lead.join(', ')} }`
  if (index === keys.length) return any(object, { kind: 'object', present: true })
  statement(generator, `const ${name} = ${object}`)
  for (; index < keys.length; index++) {
    const key = keys[index] as string
    const value = generator.value(values[index] as Node, context)
    if (value.present) statement(generator, set(name, key, value.text))
    else {
      const member = held(generator, value, key)
      statement(generator, `if (${member.text} !== undefined) ${set(name, key, member.text)}`)
    }
  }
  return any(name, { kind: 'object', present: true, simple: true })
}

/** A computed name defines an own member even for `__proto__`. */
function memberName(key: string): string {
  return key === '__proto__' ? `[${literal(key)}]` : literal(key)
}

function set(name: string, key: string, value: string): string {
  if (key === '__proto__') return `$.put(${name}, ${literal(key)}, ${value})`
  return /^[A-Za-z_]\w*$/.test(key) ? `${name}.${key} = ${value}` : `${name}[${literal(key)}] = ${value}`
}

/** A call that groups items by computed keys. */
export function groupBy(generator: Generator, pairs: readonly [Node, Node][], items: string, position: number): string {
  const emitted = pairs.map(([key, value]) => {
    const keyOf = fresh(generator, 'item')
    const of = fresh(generator, 'items')
    const key1 = arrow(generator, keyOf, () => generator.value(key, keyOf))
    const value1 = sideBySide(generator, pairs.length, () => arrow(generator, of, () => generator.value(value, of)))
    return `[${key1}, ${value1}]`
  })
  return `$.group(${items}, [${emitted.join(', ')}], ${position})`
}
