import type { Node } from './compile/generator.ts'
import { type PathTree, whole } from './mentions.ts'

/**
 * Narrows an expression: of the objects that it makes only the members in `wanted` are left, each with the same value as before. Where
 * the text does not show how an object is made, it has the others as well. Code that only they need is not evaluated, and cannot fail.
 * Lists are narrowed item by item.
 */
export function narrowed(tree: Node, wanted: PathTree): Node {
  return new Narrowing(tree).narrow(tree, wanted)
}

/** A function that an expression defines, its name for what is asked of it, and the definitions with those names. */
type Definition = { bind: Node; names: Map<PathTree, string>; made: Node[] }

class Narrowing {
  /** The functions of the blocks around the current node. Two of one name are left as they are. */
  readonly #functions = new Map<string, Definition>()
  readonly #bound: ReadonlyMap<string, number>

  constructor(tree: Node) {
    this.#bound = countBindings(tree, new Map())
  }

  narrow(node: Node, wanted: PathTree): Node {
    if (wanted === whole || node.predicate || node.group || node.stages) return node
    switch (node.type) {
      case 'block':
        return this.#block(node, wanted)
      case 'condition':
        return this.#condition(node, wanted)
      case 'path':
        return { ...node, steps: this.#last(node.steps, wanted) }
      case 'function':
        return this.#call(node, wanted)
      case 'unary':
        return this.#constructed(node, wanted)
      case 'lambda':
        return node.thunk ? { ...node, body: this.narrow(node.body, wanted) } : node
      default:
        return node
    }
  }

  #condition(node: Node, wanted: PathTree): Node {
    const narrow = ([name, branch]: [string, Node]) => [name, branches.has(name) ? this.narrow(branch, wanted) : branch]
    return Object.fromEntries(Object.entries(node).map(narrow))
  }

  #last(nodes: readonly Node[], wanted: PathTree): Node[] {
    return nodes.map((node, index) => (index === nodes.length - 1 ? this.narrow(node, wanted) : node))
  }

  /** Narrows a block with the functions that it still needs, in addition to those that they were made of. */
  #block(node: Node, wanted: PathTree): Node {
    const defined = new Map<Node, Definition>()
    for (const bind of (node.expressions as Node[]).filter((each) => this.#isFunction(each))) {
      const definition = { bind, names: new Map(), made: [] }
      defined.set(bind, definition)
      this.#functions.set(bind.lhs.value, definition)
    }
    const expressions = this.#last(node.expressions, wanted)
    for (const { bind } of defined.values()) this.#functions.delete(bind.lhs.value)
    return { ...node, expressions: expressions.flatMap((each) => [each, ...(defined.get(each)?.made ?? [])]) }
  }

  #isFunction({ type, predicate, lhs, rhs }: Node): boolean {
    return type === 'bind' && !predicate && rhs.type === 'lambda' && !rhs.predicate && this.#bound.get(lhs.value) === 1
  }

  #call(node: Node, wanted: PathTree): Node {
    const name: unknown = node.procedure.type === 'variable' && !node.procedure.predicate && node.procedure.value
    if (name === 'merge' && !this.#bound.has(name)) return { ...node, arguments: this.#last(node.arguments, wanted) }
    const definition = typeof name === 'string' ? this.#functions.get(name) : undefined
    if (!definition) return node
    return { ...node, procedure: { ...node.procedure, value: this.#nameFor(definition, wanted) } }
  }

  #nameFor(definition: Definition, wanted: PathTree): string {
    const { bind, names, made } = definition
    const known = names.get(wanted)
    if (known !== undefined) return known
    // No name in a text has a space.
    const name = `${bind.lhs.value} ${names.size + 1}`
    names.set(wanted, name)
    const rhs = { ...bind.rhs, body: this.narrow(bind.rhs.body, wanted) }
    made.push({ ...bind, lhs: { ...bind.lhs, value: name }, rhs })
    return name
  }

  #constructed(node: Node, wanted: Exclude<PathTree, typeof whole>): Node {
    if (node.value === '[')
      return { ...node, expressions: node.expressions.map((each: Node) => this.narrow(each, wanted)) }
    const pairs = node.value === '{' ? (node.lhs as [Node, Node][]) : []
    if (!pairs.every(([{ type, predicate }]) => type === 'string' && !predicate)) return node
    const lhs = pairs.flatMap(([key, value]): [Node, Node][] => {
      const inner = wanted.get(key.value as string)
      return inner === undefined ? [] : [[key, this.narrow(value, inner)]]
    })
    return node.value === '{' ? { ...node, lhs } : node
  }
}

const branches: ReadonlySet<string> = new Set(['then', 'else'])

/** Counts how often names are bound, as variables and as parameters. */
function countBindings(tree: unknown, counts: Map<string, number>): Map<string, number> {
  if (Array.isArray(tree)) for (const item of tree) countBindings(item, counts)
  else if (tree !== null && typeof tree === 'object') {
    const { type, lhs, arguments: parameters } = tree as Node
    const bound: Node[] = type === 'bind' ? [lhs] : type === 'lambda' ? parameters : []
    for (const { value } of bound) counts.set(String(value), (counts.get(String(value)) ?? 0) + 1)
    for (const member of Object.values(tree)) countBindings(member, counts)
  }
  return counts
}
