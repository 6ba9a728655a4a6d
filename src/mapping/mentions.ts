import { functions } from './functions.ts'

/**
 * Names and kinds that a mapping's text mentions, found in its syntax tree. They over-approximate what the mapping can read: a name or a
 * kind that is not mentioned cannot reach the result.
 */
export type Mentions = {
  /** Every name of a member. */
  names: ReadonlySet<string>
  /** Strings that something is compared with, by the member that is compared (`type`); `''` where the member is unknown. */
  compared: ReadonlyMap<string, ReadonlySet<string>>
  /** The members read below each name, where paths show it: `{ extensions: { thinking: { budget: whole } } }`. */
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

/** Functions whose result depends on a value but carries none of its members. */
const inquiries: ReadonlySet<unknown> = new Set(['exists', 'not', 'boolean', 'count', 'type'])

/** Walks a tree; definitions are walked when they are first used. */
class Collector implements Mentions {
  readonly names = new Set<string>()
  readonly compared = new Map<string, Set<string>>()
  readonly paths = new Map<string, PathTree>()
  private readonly definitions: Map<string, Node>
  /** Variables bound by the functions and blocks around the current node, which hide definitions of the same name. */
  private local: ReadonlySet<string> = new Set()
  /** Variables that contain facts about the target: their members are not members of the request. */
  private readonly facts: ReadonlySet<string>
  private readonly defined: ReadonlySet<string>

  constructor(definitions: Map<string, Node>) {
    this.definitions = new Map(definitions)
    this.defined = new Set(definitions.keys())
    this.facts = new Set([...definitions].filter(([, node]) => isOfTarget(node)).map(([name]) => name))
  }

  /** `asked` where only the truth of the value matters. */
  visit(tree: unknown, asked = false): void {
    if (Array.isArray(tree)) for (const item of tree) this.visit(item)
    else if (isNode(tree)) this.visitNode(tree, asked)
  }

  private visitNode(node: Node, asked: boolean): void {
    const { type } = node
    if (type === 'lambda') this.visitFunction(node)
    else if (type === 'block') this.visitBlock(node)
    else if (type === 'path') this.visitPath(node.steps as Node[], asked, node)
    else if (type === 'name') this.visitPath([node], asked)
    else if (type === 'variable') this.visitVariable(node)
    else if (type === 'condition') this.visitCondition(node, asked)
    else this.visitOther(node)
  }

  private visitFunction({ arguments: parameters, ...rest }: Node): void {
    const outer = this.local
    this.local = new Set([...outer, ...(parameters as Node[]).map(variableName)])
    for (const member of Object.values(rest)) this.visit(member)
    this.local = outer
  }

  /** A variable of a block hides a definition from where it is bound. */
  private visitBlock({ expressions, ...rest }: Node): void {
    const outer = this.local
    for (const expression of expressions as Node[]) {
      this.visit(expression)
      if (expression.type === 'bind') this.local = new Set([...this.local, variableName(expression.lhs as Node)])
    }
    this.local = outer
    for (const member of Object.values(rest)) this.visit(member)
  }

  private visitCondition({ condition, then, else: otherwise }: Node, asked: boolean): void {
    this.visit(condition, true)
    this.visit(then, asked)
    this.visit(otherwise, asked)
  }

  private visitOther(node: Node): void {
    const { type, value } = node
    if (type === 'binary') this.compare(node)
    if (type === 'unary' && value === '[') this.addStrings('', node)
    if (type === 'function' && (node.procedure as Node).value === 'lookup') this.compareKeys(node.arguments as Node[])
    const inquiring = type === 'function' && inquiries.has((node.procedure as Node).value)
    const logical = type === 'binary' && (value === 'and' || value === 'or')
    for (const [name, member] of Object.entries(node)) {
      if (type === 'bind' && name === 'lhs') continue
      if (Array.isArray(member)) for (const item of member) this.visit(item, inquiring)
      else this.visit(member, logical)
    }
  }

  /** The definition of the variable or the members that a function of the router takes, and what its items are filtered by. */
  private visitVariable(node: Node): void {
    const name = variableName(node)
    if (!this.local.has(name)) this.visitDefinition(name)
    for (const [member, inner] of Object.entries(node)) if (member !== 'value') this.visit(inner)
  }

  private visitDefinition(name: string): void {
    if (!this.defined.has(name)) for (const member of functions[name]?.takes ?? []) this.names.add(member)
    const definition = this.definitions.get(name)
    this.definitions.delete(name)
    if (!definition) return
    const { local } = this
    this.local = new Set()
    this.visit(definition)
    this.local = local
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
    if (startsAtTarget(steps)) return true
    const name = steps[0]?.type === 'variable' ? variableName(steps[0]) : undefined
    return name !== undefined && this.facts.has(name) && !this.local.has(name)
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
    const [left, right] = [lhs as Node, rhs as Node]
    // What is excluded is not taken; `kind != "*"` takes all kinds.
    const isCatchAll = value === '!=' && [left, right].some((side) => side.type === 'string' && side.value === '*')
    if (value !== '=' && value !== 'in' && !isCatchAll) return
    this.addStrings(lastName(right), left)
    this.addStrings(lastName(left), right)
  }

  private compareKeys([table, key]: readonly Node[]): void {
    if (!table || !key) return
    for (const name of membersOf(table).keys()) this.addString(lastName(key), name)
  }

  /** Strings that are here as such, as items of a list, or as what a condition gives. */
  private addStrings(member: string, node: Node | undefined): void {
    if (!node) return
    if (node.type === 'string') this.addString(member, node.value as string)
    else if (node.type === 'condition') for (const one of [node.then, node.else]) this.addStrings(member, one as Node)
    else if (node.type === 'unary' && node.value === '[') {
      for (const item of node.expressions as Node[]) this.addStrings(member, item)
    }
  }

  private addString(member: string, string: string): void {
    const strings = this.compared.get(member) ?? new Set()
    this.compared.set(member, strings.add(string))
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

/** Returns the member whose value an expression yields; `''` for any other expression. */
function lastName(node: Node): string {
  const last = node.type === 'path' ? (node.steps as Node[]).at(-1) : node
  return last?.type === 'name' ? (last.value as string) : ''
}

function variableName({ value }: Node): string {
  return String(value)
}

function isNode(value: unknown): value is Node {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}
