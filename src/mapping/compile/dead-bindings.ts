import type { Node } from './generator.ts'
import { usedNames } from './uses.ts'

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
