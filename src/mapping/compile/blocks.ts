import { emitDefinition } from './calls.ts'
import { type Code, captured, type Generator, missing, type Node, statement, Uncompilable } from './generator.ts'
import { declare, inFrame } from './scope.ts'
import { namesUsedInside, otherUses, usedNames } from './uses.ts'

/** The expressions of a block, in a scope of their own. */
export function block(generator: Generator, all: readonly Node[], context: string): Code {
  const expressions = withoutDeadBindings(all)
  return inFrame(generator, () => {
    const bound = expressions.flatMap((expression) => bindings(expression))
    const constants = constantNames(expressions, bound)
    const others = [...new Set(bound)].filter((name) => !constants.has(name))
    for (const name of constants) declare(generator, name, true)
    for (const name of others) declare(generator, name, false)
    addDefinitions(generator, expressions, constants, context)
    if (!generator.inside) shareVariables(generator, expressions)
    const { lines, result } = captured(generator, () => statements(generator, expressions, context, constants))
    for (const name of others) declareVariable(generator, name)
    generator.lines.push(...lines)
    return result
  })
}

/** Variables of the main function that other functions read are variables outside of it, so that those are made once. */
function shareVariables({ frame, outermost, runVariables }: Generator, expressions: readonly Node[]): void {
  const inside = namesUsedInside(expressions)
  for (const [name, { name: jsName, definition }] of frame.variables) {
    if (definition || !inside.has(name)) continue
    outermost.add(jsName)
    runVariables.add(jsName)
  }
}

/** Notes the functions among the constants, which can then be called directly, in any order. */
function addDefinitions(
  { frame }: Generator,
  expressions: readonly Node[],
  constants: ReadonlySet<string>,
  context: string,
): void {
  const functions = expressions.filter((each) => isFunctionBinding(each) && constants.has(each.lhs.value))
  const nodes = new Map(functions.map(({ lhs, rhs }) => [lhs.value as string, rhs as Node]))
  const others = otherUses(expressions, new Map([...nodes].map(([name, node]) => [name, node.arguments.length])))
  const uses = new Map([...nodes].map(([name, node]) => [name, usedNames(node)]))
  for (const [name, node] of nodes) {
    const variable = frame.variables.get(name)
    if (!variable) continue
    const recursive = reaches(name, name, uses)
    variable.definition = { node, frame, context, recursive, calledOnly: !others.has(name), started: false }
  }
}

/** Checks whether a function may call another one or itself, directly or indirectly. */
function reaches(from: string, target: string, uses: ReadonlyMap<string, ReadonlySet<string>>): boolean {
  const reached = new Set([from])
  for (const name of reached) {
    const used = uses.get(name) ?? new Set()
    if (used.has(target)) return true
    for (const each of used) if (uses.has(each)) reached.add(each)
  }
  return false
}

function statements(g: Generator, expressions: readonly Node[], context: string, constants: ReadonlySet<string>): Code {
  let result = missing
  expressions.forEach((expression, index) => {
    const name = expression.type === 'bind' ? (expression.lhs.value as string) : undefined
    if (name !== undefined && constants.has(name)) {
      result = constantBinding(g, expression, name, context)
      return
    }
    result = g.value(expression, context)
    const variable = name === undefined ? undefined : g.frame.variables.get(name)
    if (variable) variable.bound = true
    // An unused value is evaluated because it may fail; `void` keeps the line from continuing the previous one.
    if (index < expressions.length - 1 && !result.simple) statement(g, `void (${result.text})`)
  })
  return result
}

function constantBinding(g: Generator, expression: Node, name: string, context: string): Code {
  const variable = g.frame.variables.get(name)
  if (!variable) throw new Error(`$${name} is not declared`)
  const value = variable.definition
    ? emitDefinition(g, variable.name, variable.definition)
    : g.value(expression.rhs, context)
  // A function that was made outside of this one has its name already.
  if (value.text !== variable.name) {
    statement(g, `${g.outermost.has(variable.name) ? '' : 'const '}${variable.name} = ${value.text}`)
  }
  Object.assign(variable, { kind: value.kind, present: value.present })
  return variableWith(value, variable.name, true)
}

function declareVariable(generator: Generator, name: string): void {
  const variable = generator.frame.variables.get(name)
  if (!variable) return
  const isOutermost = generator.outermost.has(variable.name)
  if (!isOutermost) statement(generator, `let ${variable.name}${variable.needsCheck ? ' = $.unbound' : ''}`)
  else if (variable.needsCheck) statement(generator, `${variable.name} = $.unbound`)
}

/** `$name := value` elsewhere than as a statement of a block. */
export function bind(generator: Generator, node: Node, context: string): Code {
  if (generator.frame.parallel) throw new Uncompilable('a binding among the members of a constructor')
  const name = node.lhs.value as string
  const value = generator.value(node.rhs, context)
  const variable = generator.frame.variables.get(name)
  if (!variable) throw new Uncompilable('a binding outside a block')
  statement(generator, `${variable.name} = ${value.text}`)
  return variableWith(value, variable.name, false)
}

/** Returns the code of a variable. The facts known about a value hold for the variable that has it, but the variable is not a literal. */
function variableWith({ literals: _, ...known }: Code, text: string, simple: boolean): Code {
  return { ...known, text, simple }
}

/** Names that are bound exactly once, by a statement before every use: they can be constants. */
function constantNames(expressions: readonly Node[], bound: readonly string[]): Set<string> {
  const repeated = new Set(bound.filter((name, index) => bound.indexOf(name) !== index))
  const constants = new Set<string>()
  const used = new Set<string>()
  // What a function uses counts only when the function itself is used.
  const functions = new Map<string, ReadonlySet<string>>()
  const use = (names: ReadonlySet<string>): void => {
    for (const name of names) {
      if (used.has(name)) continue
      used.add(name)
      use(functions.get(name) ?? new Set())
    }
  }
  for (const expression of expressions) {
    const name: unknown = isBinding(expression) ? expression.lhs.value : undefined
    const isFunction = isFunctionBinding(expression)
    if (!isFunction) use(usedNames(expression))
    if (typeof name !== 'string') continue
    if (!used.has(name) && !repeated.has(name)) constants.add(name)
    if (isFunction) functions.set(name, new Set([...usedNames(expression.rhs), ...(functions.get(name) ?? [])]))
    if (isFunction && used.has(name)) use(functions.get(name) ?? new Set())
  }
  return constants
}

function isBinding({ type, predicate, group }: Node): boolean {
  return type === 'bind' && !predicate && !group
}

function isFunctionBinding(node: Node): boolean {
  return isBinding(node) && node.rhs.type === 'lambda' && !node.rhs.predicate && !node.rhs.keepArray
}

/** Names that an expression binds in the enclosing scope. */
function bindings(tree: unknown): string[] {
  if (Array.isArray(tree)) return tree.flatMap((each) => bindings(each))
  if (tree === null || typeof tree !== 'object') return []
  const node = tree as Node
  const own = node.type === 'bind' ? [node.lhs.value as string] : []
  if (node.type === 'block') return bindings([node.predicate, node.group])
  if (node.type === 'lambda') return node.thunk ? bindings(node.body) : []
  return [...own, ...Object.values(node).flatMap((each) => bindings(each))]
}

/**
 * Removes unused bindings of a block whose evaluation has no effect: functions, constants and plain paths. Definitions
 * shared by many mappings thus cost each of them only what it uses.
 */
function withoutDeadBindings(expressions: readonly Node[]): readonly Node[] {
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

/** Checks whether evaluating an expression can neither fail nor bind a variable. */
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
