import type { Node } from './mentions.ts'

/** Values of variables as far as they are known; undefined for parameters and other values that a run determines. */
type Scope = ReadonlyMap<string, Node | undefined>

/**
 * Returns the nodes of a tree that put a function into its result, where the text alone shows it: functions that are not called, as results,
 * members, items, branches of conditions, or returned by functions of the text. `builtIn` are the names of functions that it may call.
 */
export function functionResults(tree: unknown, builtIn: ReadonlySet<string>): readonly Node[] {
  return new FunctionFinder(builtIn).find(tree as Node | undefined, new Map())
}

class FunctionFinder {
  readonly #builtIn: ReadonlySet<string>
  /** Nodes that are being visited: functions may call themselves. */
  readonly #visiting = new Set<Node>()
  #visits = 0

  constructor(builtIn: ReadonlySet<string>) {
    this.#builtIn = builtIn
  }

  find(node: Node | undefined, scope: Scope): Node[] {
    if (!node || this.#visiting.has(node) || ++this.#visits > maxVisits) return []
    this.#visiting.add(node)
    try {
      const { group } = node as { group?: { lhs: [Node, Node][] } }
      return group ? this.#findAll(valuesOf(group.lhs), scope) : this.#findIn(node, scope)
    } finally {
      this.#visiting.delete(node)
    }
  }

  #findAll(nodes: readonly Node[], scope: Scope): Node[] {
    return nodes.flatMap((node) => this.find(node, scope))
  }

  #findIn(node: Node, scope: Scope): Node[] {
    switch (node.type) {
      case 'variable':
        return this.#isFunction(node, scope) || this.#findInValue(node, scope) ? [node] : []
      case 'lambda':
        return node.thunk === true ? this.find(node.body as Node, scope) : [node]
      case 'partial':
      case 'regex':
      case 'transform':
        return [node]
      case 'block':
        return this.#findInBlock(node.expressions as Node[], scope)
      case 'condition':
        return this.#findAll([node.then, node.else].filter(Boolean) as Node[], scope)
      case 'unary':
        if (node.value === '{') return this.#findAll(valuesOf(node.lhs as [Node, Node][]), scope)
        return node.value === '[' ? this.#findAll(node.expressions as Node[], scope) : []
      case 'path':
        return this.find((node.steps as Node[]).at(-1), withSteps(node.steps as Node[], scope))
      case 'bind':
        return this.find(node.rhs as Node, scope)
      case 'apply':
        return this.#findInApply(node, scope)
      case 'function':
        return this.#findInCall(node, scope)
      default:
        return []
    }
  }

  #findInValue({ value: name }: Node, scope: Scope): boolean {
    return this.find(scope.get(name as string), scope).length > 0
  }

  #findInBlock(expressions: readonly Node[], outer: Scope): Node[] {
    const scope = new Map(outer)
    for (const { type, lhs, rhs } of expressions) {
      if (type === 'bind') scope.set((lhs as Node).value as string, rhs as Node)
    }
    return this.find(expressions.at(-1), scope)
  }

  /** Two functions make one, of both; a transform gives what it puts into its input. */
  #findInApply(node: Node, scope: Scope): Node[] {
    const { lhs, rhs } = node as { lhs: Node; rhs: Node } & Node
    if (this.#isFunction(lhs, scope)) return [node]
    if (rhs.type === 'transform') return [...this.find(lhs, scope), ...this.find(rhs.update as Node, scope)]
    return this.#findInBody(rhs, scope)
  }

  #findInCall({ procedure, arguments: given }: Node, scope: Scope): Node[] {
    const { type, value: name } = procedure as Node
    const args = given as Node[]
    if (type !== 'variable' || scope.has(name as string)) return this.#findInBody(procedure as Node, scope)
    if (name === 'map' || name === 'each') return args[1] ? this.#findInBody(args[1], scope) : []
    return passing.has(name) ? this.#findAll(args, scope) : []
  }

  /** Finds the functions among the results of a function of the text. */
  #findInBody(called: Node, scope: Scope): Node[] {
    const node = called.type === 'variable' ? scope.get(called.value as string) : called
    if (node?.type !== 'lambda' || this.#visiting.has(node)) return []
    this.#visiting.add(node)
    const parameters = (node.arguments as Node[]).map(({ value }) => [value as string, undefined] as const)
    const found = this.find(node.body as Node, new Map([...scope, ...parameters]))
    this.#visiting.delete(node)
    return found
  }

  #isFunction(node: Node | undefined, scope: Scope): boolean {
    if (!node) return false
    if (node.type === 'apply') return this.#isFunction(node.lhs as Node, scope)
    if (node.type !== 'variable') return functionTypes.has(node.type)
    const name = node.value as string
    if (!scope.has(name)) return this.#builtIn.has(name)
    const value = scope.get(name)
    return value !== node && value?.type !== 'variable' && this.#isFunction(value, scope)
  }
}

/** Limit for a text whose definitions use each other many times: what is not found here is found by a run. */
const maxVisits = 100_000

const functionTypes: ReadonlySet<unknown> = new Set(['lambda', 'partial', 'regex', 'transform'])

/** Functions whose results contain their arguments. */
const passing: ReadonlySet<unknown> = new Set(['merge', 'append', 'reverse', 'distinct'])

function valuesOf(pairs: readonly (readonly [Node, Node])[]): Node[] {
  return pairs.map(([, value]) => value)
}

/** Returns a scope with the variables that the steps of a path bind. */
function withSteps(steps: readonly Node[], scope: Scope): Scope {
  const names = steps.flatMap(({ focus, index }) => [focus, index]).filter((name) => typeof name === 'string')
  return names.length === 0 ? scope : new Map([...scope, ...names.map((name) => [name, undefined] as const)])
}
