/** A reference to a variable; `position` is a zero-based offset into the text. */
export type Use = { name: string; position: number }

/** References to variables and functions that neither the expression (anywhere in it) nor `known` defines. */
export function unboundUses(tree: unknown, known: ReadonlySet<string>): Use[] {
  const bound = new Set<unknown>()
  const uses: Use[] = []
  visit(tree, (node) => {
    if (node.type === 'variable') {
      const { value: name, position } = node as { value: string; position: number }
      // The position in the syntax tree is that of the name's end.
      if (name !== '' && name !== '$') uses.push({ name, position: position - name.length - 1 })
    }
    addBindings(node, bound)
  })
  return uses.filter(({ name }) => !bound.has(name) && !known.has(name))
}

type Node = { readonly [member: string]: unknown }

function visit(tree: unknown, take: (node: Node) => void): void {
  if (Array.isArray(tree)) for (const item of tree) visit(item, take)
  else if (tree !== null && typeof tree === 'object') {
    take(tree as Node)
    for (const name in tree) visit((tree as Node)[name], take)
  }
}

/** Adds the names that a node binds: by `:=`, as parameters of a function, by `@$name` or `#$name`. */
function addBindings({ type, lhs, arguments: parameters, focus, index }: Node, bound: Set<unknown>): void {
  if (type === 'bind') bound.add((lhs as Node).value)
  if (type === 'lambda') for (const parameter of parameters as Node[]) bound.add(parameter.value)
  if (typeof focus === 'string') bound.add(focus)
  if (typeof index === 'string') bound.add(index)
}
