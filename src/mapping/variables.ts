/** A reference to a variable; `position` is a zero-based offset into the text. */
export type Use = { name: string; position: number }

/** References to variables and functions that neither the expression (anywhere in it) nor `known` defines. */
export function unboundUses(tree: unknown, known: ReadonlySet<string>): Use[] {
  const bound = new Set<string>()
  const uses: Use[] = []
  visit(tree, (node) => {
    if (node.type === 'variable') {
      const { value: name, position } = node as { value: string; position: number }
      // The position in the syntax tree is that of the name's end.
      if (name !== '' && name !== '$') uses.push({ name, position: position - name.length - 1 })
    }
    for (const name of bindings(node)) bound.add(name)
  })
  return uses.filter(({ name }) => !bound.has(name) && !known.has(name))
}

type Node = { readonly [member: string]: unknown }

function visit(tree: unknown, take: (node: Node) => void): void {
  if (Array.isArray(tree)) for (const item of tree) visit(item, take)
  else if (tree !== null && typeof tree === 'object') {
    take(tree as Node)
    for (const member of Object.values(tree)) visit(member, take)
  }
}

/** Names that a node binds: by `:=`, as parameters of a function, by `@$name` or `#$name`. */
function bindings({ type, lhs, arguments: parameters, focus, index }: Node): string[] {
  const variables = type === 'bind' ? [lhs] : type === 'lambda' ? (parameters as unknown[]) : []
  const names = [...variables.map((variable) => (variable as Node).value), focus, index]
  return names.filter((name) => typeof name === 'string')
}
