import type { Node } from './generator.ts'

/**
 * Removes unused bindings of a block whose evaluation has no effect: functions, constants and plain paths. Definitions
 * shared by many mappings thus cost each of them only what it uses.
 */
export function withoutDeadBindings(expressions: readonly Node[]): readonly Node[] {
  const removable = new Map<string, Node[]>()
  expressions.forEach((expression, index) => {
    if (index === expressions.length - 1 || !isRemovable(expression)) return
    const name: string = expression.lhs.value
    removable.set(name, [...(removable.get(name) ?? []), expression])
  })
  if (removable.size === 0) return expressions
  const optional = new Set([...removable.values()].flat())
  const live = expressions.filter((expression) => !optional.has(expression))
  const kept = new Set(live)
  for (const expression of live) {
    for (const name of usedNames(expression)) {
      const bindings = removable.get(name) ?? []
      removable.delete(name)
      for (const binding of bindings) kept.add(binding)
      live.push(...bindings)
    }
  }
  return expressions.filter((expression) => kept.has(expression))
}

function isRemovable({ type, predicate, group, rhs }: Node): boolean {
  return type === 'bind' && !predicate && !group && isPure(rhs)
}

/** Whether evaluating an expression can neither fail nor bind a variable. */
function isPure(node: Node): boolean {
  if (node.predicate || node.group) return false
  switch (node.type) {
    case 'lambda':
    case 'string':
    case 'number':
    case 'value':
    case 'regex':
    case 'variable':
      return true
    case 'path':
      return (node.steps as Node[]).every(({ type, stages, tuple }) => isRead(type) && !stages && !tuple)
    case 'unary':
      return node.value === '[' ? (node.expressions as Node[]).every(isPure) : isConstantObject(node)
    default:
      return false
  }
}

function isRead(type: string): boolean {
  return type === 'name' || type === 'variable'
}

/** Computed and duplicate keys may fail. */
function isConstantObject(node: Node): boolean {
  if (node.value !== '{') return false
  const pairs = node.lhs as [Node, Node][]
  const names = new Set(pairs.map(([{ type, value }]) => (type === 'string' ? value : undefined)))
  return names.size === pairs.length && !names.has(undefined) && pairs.every(([, value]) => isPure(value))
}

/** Names of the variables that an expression may read. */
function usedNames(tree: unknown, found = new Set<string>()): Set<string> {
  if (Array.isArray(tree)) for (const item of tree) usedNames(item, found)
  else if (tree !== null && typeof tree === 'object') {
    const node = tree as Node
    if (node.type === 'variable') found.add(String(node.value))
    // A transform calls $clone; a call of a bare name looks up the variable that may have been meant.
    if (node.type === 'transform') found.add('clone')
    if (node.type === 'function' && node.procedure.type === 'path') found.add(String(node.procedure.steps[0].value))
    for (const name in node) if (typeof node[name] === 'object') usedNames(node[name], found)
  }
  return found
}
