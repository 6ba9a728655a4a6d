import { withoutDeadBindings } from './dead-bindings.ts'
import {
  type Code,
  captured,
  codeOf,
  type Frame,
  type Generator,
  missing,
  type Node,
  statement,
  Uncompilable,
  uniqueName,
} from './generator.ts'

/** The value of a variable: the innermost binding, else a variable of the run, else a library function. */
export function variable(generator: Generator, name: string): Code {
  return resolve(generator, generator.frame, name)
}

function resolve(generator: Generator, start: Frame | undefined, name: string): Code {
  for (let frame = start; frame; frame = frame.outer) {
    const found = frame.variables.get(name)
    if (!found) continue
    const { kind, present, raw = false } = found
    if (found.bound) return codeOf(found.name, { kind, present, simple: true, raw })
    const outer = resolve(generator, frame.outer, name)
    if (outer.text === 'undefined') return codeOf(found.name, { simple: true })
    found.asked = true
    return codeOf(`(${found.name} === $.unbound ? ${outer.text} : ${found.name})`, { simple: true })
  }
  if (generator.bindings.has(name)) return codeOf(`$.ownMember(bindings, ${JSON.stringify(name)})`, { simple: true })
  if (name === '$') return codeOf('input', { simple: true })
  if (name === 'eval') throw new Uncompilable('$eval')
  return Object.hasOwn(generator.library, name)
    ? codeOf(`library.${name}`, { kind: 'function', present: true, simple: true })
    : missing
}

/** Whether a name refers to a library function here. */
export function builtIn(generator: Generator, name: string): boolean {
  return Object.hasOwn(generator.library, name) && !generator.bindings.has(name) && !bound(generator.frame, name)
}

function bound(start: Frame | undefined, name: string): boolean {
  for (let frame = start; frame; frame = frame.outer) if (frame.variables.has(name)) return true
  return false
}

/** Emits code in a new scope. */
export function inFrame<T>(generator: Generator, emit: () => T): T {
  const outer = generator.frame
  generator.frame = { outer, variables: new Map(), parallel: false }
  try {
    return emit()
  } finally {
    generator.frame = outer
  }
}

/** Declares a variable in the current scope. */
export function declare(generator: Generator, name: string, bound: boolean): string {
  const jsName = uniqueName(generator, name)
  generator.frame.variables.set(name, { name: jsName, bound, asked: false, kind: 'any', present: false })
  return jsName
}

/** The expressions of a block, in a scope of their own. */
export function block(generator: Generator, all: readonly Node[], context: string): Code {
  const expressions = withoutDeadBindings(all)
  return inFrame(generator, () => {
    const bound = expressions.flatMap((expression) => bindings(expression))
    const direct = constantNames(expressions, bound)
    const hoisted = [...new Set(bound)].filter((name) => !direct.has(name))
    for (const name of hoisted) declare(generator, name, false)
    const { lines, result } = captured(generator, () => statements(generator, expressions, context, direct))
    for (const name of hoisted) {
      const jsName = generator.frame.variables.get(name)
      statement(generator, `let ${jsName?.name}${jsName?.asked ? ' = $.unbound' : ''}`)
    }
    generator.lines.push(...lines)
    return result
  })
}

function statements(g: Generator, expressions: readonly Node[], context: string, direct: ReadonlySet<string>): Code {
  let result = missing
  expressions.forEach((expression, index) => {
    const name = expression.type === 'bind' ? (expression.lhs.value as string) : undefined
    if (name !== undefined && direct.has(name) && !expression.predicate && !expression.group) {
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
  const isLambda = expression.rhs.type === 'lambda'
  let jsName = isLambda ? declare(g, name, true) : undefined
  const value = g.value(expression.rhs, context)
  jsName ??= declare(g, name, true)
  statement(g, `const ${jsName} = ${value.text}`)
  const variable = g.frame.variables.get(name)
  if (variable) Object.assign(variable, { kind: value.kind, present: value.present })
  return { ...value, text: jsName, simple: true }
}

/** `$name := value` elsewhere than as a statement of a block. */
export function bind(generator: Generator, node: Node, context: string): Code {
  if (generator.frame.parallel) throw new Uncompilable('a binding among the members of a constructor')
  const name = node.lhs.value as string
  const value = generator.value(node.rhs, context)
  const variable = generator.frame.variables.get(name)
  if (!variable) throw new Uncompilable('a binding outside a block')
  statement(generator, `${variable.name} = ${value.text}`)
  return { ...value, text: variable.name, simple: false }
}

/** Names that are bound exactly once, by a statement before every use: they can be constants. */
function constantNames(expressions: readonly Node[], bound: readonly string[]): Set<string> {
  const repeated = new Set(bound.filter((name, index) => bound.indexOf(name) !== index))
  const constants = new Set<string>()
  const mentioned = new Set<string>()
  for (const expression of expressions) {
    const name: unknown = expression.type === 'bind' ? expression.lhs.value : undefined
    // A lambda may refer to itself; any other value of a constant may not.
    if (typeof name === 'string' && expression.rhs.type !== 'lambda') mentionedNames(expression.rhs, mentioned)
    if (typeof name === 'string' && !mentioned.has(name) && !repeated.has(name)) constants.add(name)
    mentionedNames(expression, mentioned)
  }
  return constants
}

/** Names of the variables that an expression refers to, possibly as bare names whose `$` is missing. */
function mentionedNames(tree: unknown, found: Set<string>): void {
  if (Array.isArray(tree)) for (const item of tree) mentionedNames(item, found)
  else if (tree !== null && typeof tree === 'object') {
    const node = tree as Node
    if (node.type === 'variable' || node.type === 'name') found.add(String(node.value))
    for (const name in node) if (typeof node[name] === 'object') mentionedNames(node[name], found)
  }
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
