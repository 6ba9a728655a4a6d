import type { Node } from './generator.ts'

/** Names of the variables that an expression may read, other than those that it has bound itself. */
export function usedNames(tree: unknown): ReadonlySet<string> {
  return isNode(tree) ? remembered(usedIn, tree, namesUsed) : namesUsed(tree)
}

/** Names by node: the same definitions are part of many mappings, whose trees nobody changes. */
const usedIn = new WeakMap<Node, ReadonlySet<string>>()
const usedInFunctionsOf = new WeakMap<Node, ReadonlySet<string>>()

function remembered<Found>(known: WeakMap<Node, Found>, node: Node, find: (node: Node) => Found): Found {
  const found = known.get(node) ?? find(node)
  known.set(node, found)
  return found
}

function namesUsed(tree: unknown): Set<string> {
  const found = new Set<string>()
  collect(tree, new Set(), (name) => found.add(name))
  return found
}

/** Names of the variables that are used otherwise than by calls with the given number of arguments. */
export function otherUses(tree: unknown, counts: ReadonlyMap<string, number>): Set<string> {
  const found = new Set<string>()
  collect(tree, new Set(), (name, count) => {
    if (count === undefined || counts.get(name) !== count) found.add(name)
  })
  return found
}

/** Names of the variables that functions, predicates and later steps in expressions may read. */
export function namesUsedInside(expressions: readonly Node[]): Set<string> {
  return new Set(
    expressions.flatMap((node) => [...remembered(usedInFunctionsOf, node, (one) => usedInside(one, new Set()))]),
  )
}

function usedInside(tree: unknown, found: Set<string>): Set<string> {
  if (Array.isArray(tree)) for (const item of tree) usedInside(item, found)
  else if (isNode(tree)) {
    const inner = isFunction(tree) ? tree : [tree.predicate, tree.stages, tree.group, laterSteps(tree)]
    for (const name of usedNames(inner)) found.add(name)
    if (!isFunction(tree)) for (const member of Object.values(tree)) usedInside(member, found)
  }
  return found
}

/** The variable whose value a call calls, as it is. */
export function calledVariable({ procedure }: Node): string | undefined {
  const isPlain = procedure.type === 'variable' && !procedure.predicate && !procedure.group
  return isPlain ? String(procedure.value) : undefined
}

/** Takes a name that is used; `count` is the number of arguments where it is called. */
type Take = (name: string, count?: number) => void

function collect(tree: unknown, bound: ReadonlySet<string>, take: Take): void {
  if (Array.isArray(tree)) for (const item of tree) collect(item, bound, take)
  else if (isNode(tree)) {
    const free: Take = (name, count) => {
      if (!bound.has(name)) take(name, count)
    }
    if (tree.type === 'block') collectBlock(tree, bound, take)
    else if (tree.type === 'lambda' && !tree.thunk) {
      const parameters = (tree.arguments as Node[]).map(({ value }) => String(value))
      collect(tree.body, new Set([...bound, ...parameters]), take)
    } else {
      const covered = collectNode(tree, free)
      for (const [name, member] of Object.entries(tree)) if (name !== covered) collect(member, bound, take)
    }
  }
}

/** Takes the names that a node itself uses; gives the member that needs no visit after that. */
function collectNode(node: Node, free: Take): string | undefined {
  if (node.type === 'variable') free(String(node.value))
  // A transform calls $clone; a call of a bare name looks up the variable that may have been meant.
  if (node.type === 'transform') free('clone')
  if (node.type === 'function' && node.procedure.type === 'path') free(String(node.procedure.steps[0].value))
  // What `~>` calls gets one more argument.
  if (node.type === 'apply' && node.rhs.type === 'function') collect(node.rhs.procedure, new Set(), free)
  if (node.type === 'bind') return 'lhs'
  const called = node.type === 'function' ? calledVariable(node) : undefined
  if (called === undefined) return undefined
  free(called, node.arguments.length)
  return 'procedure'
}

function collectBlock({ expressions, predicate, group }: Node, outer: ReadonlySet<string>, take: Take): void {
  const bound = new Set(outer)
  for (const expression of expressions as Node[]) {
    collect(expression, bound, take)
    if (expression.type === 'bind' && !expression.predicate && !expression.group) bound.add(expression.lhs.value)
  }
  collect([predicate, group], outer, take)
}

function isFunction({ type, thunk, value, lhs }: Node): boolean {
  if (type === 'unary') return value === '{' && (lhs as [Node, Node][]).some(([key]) => key.type !== 'string')
  return type === 'transform' || (type === 'lambda' && !thunk)
}

/** The steps of a path that are generated as functions of an item. */
function laterSteps({ type, steps }: Node): unknown {
  if (type !== 'path') return undefined
  return steps[0].type === 'variable' ? steps.slice(1) : steps
}

function isNode(value: unknown): value is Node {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}
