/**
 * What a mapping's text mentions, found in its syntax tree. It over-approximates what the mapping can read: a name or a
 * kind that is not mentioned cannot reach the result.
 */
export type Mentions = {
  /** Every name of a member. */
  names: ReadonlySet<string>
  /** Texts that something is compared with, by the member that is compared (`type`); `''` where that cannot be told. */
  compared: ReadonlyMap<string, ReadonlySet<string>>
  /** The members read below each name, where paths say so: `{ extensions: { thinking: { budget: whole } } }`. */
  paths: ReadonlyMap<string, PathTree>
}

/** Members by name; `whole` where a value is taken with all its members. */
export type PathTree = Map<string, PathTree> | typeof whole

/** A value that is taken with everything in it. */
export const whole = 'whole'

/**
 * The mentions of the expressions that `start` finds in the tree, and of the definitions that they use. A definition is
 * a variable bound at the top level of the tree, a block.
 */
export function mentionsOf(tree: unknown, start: (last: Node) => readonly Node[]): Mentions {
  const expressions = isNode(tree) && tree.type === 'block' ? (tree.expressions as Node[]) : [tree as Node]
  const definitions = new Map<string, Node>()
  for (const node of expressions) {
    if (node.type === 'bind') definitions.set((node.lhs as Node).value as string, node.rhs as Node)
  }
  const found = new Collector(definitions)
  const last = expressions.at(-1)
  for (const node of last ? start(last) : []) found.visit(node)
  return found
}

/** The values of an object constructor by their literal keys. */
export function membersOf(node: Node): Map<string, Node> {
  const pairs = node.type === 'unary' && node.value === '{' ? (node.lhs as [Node, Node][]) : []
  return new Map(pairs.map(([key, value]) => [key.value as string, value]))
}

/** A node of JSONata's syntax tree. */
export type Node = { readonly type?: string; readonly value?: unknown; readonly [member: string]: unknown }

/** Functions whose result tells about a value without taking its members over. */
const inquiries: ReadonlySet<unknown> = new Set(['exists', 'not', 'boolean', 'count', 'type'])

/** Walks a tree; definitions are walked when they are first used. */
class Collector implements Mentions {
  readonly names = new Set<string>()
  readonly compared = new Map<string, Set<string>>()
  readonly paths = new Map<string, PathTree>()
  private readonly definitions: Map<string, Node>
  /** Variables that stand for facts about the target: their members are none of the request's. */
  private readonly facts: ReadonlySet<string>

  constructor(definitions: Map<string, Node>) {
    this.definitions = new Map(definitions)
    this.facts = new Set([...definitions].filter(([, node]) => isOfTarget(node)).map(([name]) => name))
  }

  /** `asked` where only the truth of the value matters. */
  visit(tree: unknown, asked = false): void {
    if (Array.isArray(tree)) for (const item of tree) this.visit(item)
    else if (isNode(tree)) this.visitNode(tree, asked)
  }

  private visitNode(node: Node, asked: boolean): void {
    const { type } = node
    if (type === 'path') this.visitPath(node.steps as Node[], asked, node)
    else if (type === 'name') this.visitPath([node], asked)
    else if (type === 'variable') this.visitVariable(node)
    else if (type === 'condition') this.visitCondition(node, asked)
    else this.visitOther(node)
  }

  private visitCondition({ condition, then, else: otherwise }: Node, asked: boolean): void {
    this.visit(condition, true)
    this.visit(then, asked)
    this.visit(otherwise, asked)
  }

  private visitOther(node: Node): void {
    const { type, value } = node
    if (type === 'binary') this.compare(node)
    if (type === 'unary' && value === '[') this.textsIn('', node)
    if (type === 'function' && (node.procedure as Node).value === 'lookup') this.compareKeys(node.arguments as Node[])
    const inquiring = type === 'function' && inquiries.has((node.procedure as Node).value)
    const logical = type === 'binary' && (value === 'and' || value === 'or')
    for (const member of Object.values(node)) {
      if (Array.isArray(member)) for (const item of member) this.visit(item, inquiring)
      else this.visit(member, logical)
    }
  }

  /** The definition of the variable, and what its items are filtered by. */
  private visitVariable(node: Node): void {
    const name = node.value as string
    const definition = this.definitions.get(name)
    this.definitions.delete(name)
    if (definition) this.visit(definition)
    for (const [member, inner] of Object.entries(node)) if (member !== 'value') this.visit(inner)
  }

  private visitPath(steps: readonly Node[], asked: boolean, path?: Node): void {
    if (this.isFact(steps)) return
    for (const [index, step] of steps.entries()) {
      if (step.type === 'name') {
        this.names.add(step.value as string)
        this.addPath(steps.slice(index), asked)
        for (const [member, inner] of Object.entries(step)) if (member !== 'value') this.visit(inner)
      } else this.visit(step)
    }
    for (const [member, inner] of Object.entries(path ?? {})) if (member !== 'steps') this.visit(inner)
  }

  private isFact(steps: readonly Node[]): boolean {
    const [first] = steps
    return startsAtTarget(steps) || (first?.type === 'variable' && this.facts.has(first.value as string))
  }

  /** The names that follow each other from here on; what comes after them may take everything. */
  private addPath(steps: readonly Node[], asked: boolean): void {
    let members: Map<string, PathTree> = this.paths as Map<string, PathTree>
    for (const [index, { type, value }] of steps.entries()) {
      if (type !== 'name') return
      const known = members.get(value as string)
      if (known === whole) return
      const isLast = index === steps.length - 1
      const goesOn = isLast ? asked : steps[index + 1]?.type === 'name'
      const tree = goesOn ? (known ?? new Map<string, PathTree>()) : whole
      members.set(value as string, tree)
      if (tree === whole) return
      members = tree
    }
  }

  private compare({ value, lhs, rhs }: Node): void {
    if (value !== '=' && value !== '!=' && value !== 'in') return
    const [left, right] = [lhs as Node, rhs as Node]
    this.textsIn(lastName(right), left)
    this.textsIn(lastName(left), right)
  }

  private compareKeys([table, key]: readonly Node[]): void {
    if (!table || !key) return
    for (const name of membersOf(table).keys()) this.addText(lastName(key), name)
  }

  /** Texts that stand here as such, as items of a list, or as what a condition gives. */
  private textsIn(member: string, node: Node | undefined): void {
    if (!node) return
    if (node.type === 'string') this.addText(member, node.value as string)
    else if (node.type === 'condition') for (const one of [node.then, node.else]) this.textsIn(member, one as Node)
    else if (node.type === 'unary' && node.value === '[') {
      for (const item of node.expressions as Node[]) this.textsIn(member, item)
    }
  }

  private addText(member: string, text: string): void {
    const texts = this.compared.get(member) ?? new Set()
    this.compared.set(member, texts.add(text))
  }
}

function isOfTarget({ type, steps }: Node): boolean {
  return type === 'path' && startsAtTarget(steps as Node[])
}

/** `target.…` or `$$.target.…`, with names alone. */
function startsAtTarget(steps: readonly Node[]): boolean {
  const own = steps[0]?.type === 'variable' && steps[0].value === '$' ? steps.slice(1) : steps
  return (
    own[0]?.value === 'target' && own.every(({ type, stages, predicate }) => type === 'name' && !stages && !predicate)
  )
}

/** The member whose value an expression gives; `''` where it is none. */
function lastName(node: Node): string {
  const last = node.type === 'path' ? (node.steps as Node[]).at(-1) : node
  return last?.type === 'name' ? (last.value as string) : ''
}

function isNode(value: unknown): value is Node {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}
