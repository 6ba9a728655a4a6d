import {
  type Code,
  codeOf,
  constant,
  type Definition,
  endsInTailCall,
  functionOf,
  type Generator,
  inOrder,
  itemFunction,
  literal,
  type Node,
  Uncompilable,
  uniqueName,
} from './generator.ts'
import { builtIn, declare, definition, inFrame, variable } from './scope.ts'
import { calledVariable } from './uses.ts'

/** A function call. Its result may be an uncollapsed sequence. */
export function functionCall(generator: Generator, node: Node, context: string): Code {
  return callWith(generator, node, context, [])
}

/** `value ~> function(…)` or `value ~> function`. */
export function application(generator: Generator, node: Node, context: string): Code {
  const left = (): Code => generator.value(node.lhs, context)
  if (node.rhs.type === 'function') return callWith(generator, node.rhs, context, [left])
  const [value, target] = inOrder(generator, [left, () => generator.value(node.rhs, context)]) as [Code, Code]
  return codeOf(`$.chain(${value.text}, ${target.text}, ${node.position ?? 0})`, { raw: true })
}

function callWith(generator: Generator, node: Node, context: string, before: readonly (() => Code)[]): Code {
  const name = procedureName(node)
  const args = [...before, ...(node.arguments as Node[]).map((each) => () => generator.value(each, context))]
  if (isBuiltIn(generator, node)) return libraryCall(generator, name as string, inOrder(generator, args), node, context)
  const known = knownCall(generator, node, args)
  if (known) return known
  const [target, ...codes] = inOrder(generator, [() => procedure(generator, node, context, 'T1005'), ...args])
  const list = codes.map(({ text }) => text).join(', ')
  const named = name === undefined ? '' : `, ${literal(name)}`
  return codeOf(`$.call(${target?.text}, [${list}], ${context}, ${node.position ?? 0}${named})`, { raw: true })
}

function libraryCall(generator: Generator, name: string, codes: Code[], { position = 0 }: Node, context: string): Code {
  const direct = directCalls[name]?.(codes)
  if (direct) return direct
  const target = constant(generator, `library ${name}`, name, () => `library.${name}`)
  // A table of literals is made once: what is looked up in it is a literal, never the table itself.
  const isTable = name === 'lookup' && codes[0]?.kind === 'object' && codes[0].literals !== undefined
  const table = isTable ? `Object.freeze(${codes[0]?.text})` : ''
  const texts = codes.map(({ text }, index) =>
    isTable && index === 0 ? constant(generator, table, 'table', () => table) : text,
  )
  const list = texts.join(', ')
  const own = standsAlone(generator.library, name, codes.length) ? 'undefined' : context
  const text = `$.callLibrary(${target}, [${list}], ${own}, ${position}, ${literal(name)})`
  return codeOf(text, { raw: true, ...results[name] })
}

/** A plain call of a function of the expression that cannot call itself, and that checks no arguments. */
function knownCall(generator: Generator, node: Node, args: readonly (() => Code)[]): Code | undefined {
  const found = knownFunction(generator, node, args.length)
  if (!found) return undefined
  emitDefinition(generator, found.name, found.known)
  if (found.known.tails) return undefined
  generator.calls = true
  const codes = inOrder(generator, args)
  return codeOf(`${found.name}(${codes.map(({ text }) => text).join(', ')})`, found.known.result)
}

/** The function that a call calls, if the call may be compiled to a plain one. */
export function knownFunction(generator: Generator, node: Node, count: number) {
  const name = calledVariable(node)
  const found = name === undefined ? undefined : definition(generator, name)
  if (!found || found.known.recursive || found.known.node.signature) return undefined
  return count <= found.known.node.arguments.length ? found : undefined
}

/** Generates a function when it is first needed, so that its callers know what it gives. */
export function emitDefinition(generator: Generator, name: string, known: Definition): Code {
  if (!known.started) {
    known.started = true
    const { node, frame, context, calledOnly } = known
    known.code = inFrame(generator, () => lambda(generator, node, context, { name, calledOnly, known }), frame)
  }
  return known.code ?? codeOf(name, { kind: 'function', present: true, simple: true })
}

function procedureName(node: Node): string | undefined {
  const value = node.procedure.type === 'path' ? node.procedure.steps[0].value : node.procedure.value
  return typeof value === 'string' ? value : undefined
}

function isBuiltIn(generator: Generator, node: Node): boolean {
  const { type, value, predicate, group } = node.procedure
  if (type === 'variable' && value === 'eval') throw new Uncompilable('$eval')
  return type === 'variable' && !predicate && !group && builtIn(generator, value)
}

/** The callee. When it is a field name that is also a variable, the error suggests a missing `$`. */
function procedure(generator: Generator, node: Node, context: string, code: string): Code {
  const target = generator.value(node.procedure, context)
  if (node.procedure.type !== 'path') return target
  const name = procedureName(node) ?? ''
  const hint = variable(generator, name)
  if (hint.text === 'undefined') return target
  return codeOf(`$.orSuggestDollar(${target.text}, ${hint.text}, "${code}", ${node.position ?? 0}, ${literal(name)})`)
}

/** A call in tail position: made directly if it cannot recurse, else returned to the caller's trampoline. */
export function tailCall(generator: Generator, node: Node, context: string): Code {
  const name = procedureName(node)
  const isLibrary = isBuiltIn(generator, node)
  if (isLibrary && standsAlone(generator.library, name as string, node.arguments.length)) {
    return { ...functionCall(generator, node, context), raw: false }
  }
  const args = (node.arguments as Node[]).map((each) => () => generator.value(each, context))
  const known = isLibrary ? undefined : knownCall(generator, node, args)
  if (known) return codeOf(known.text, known.raw ? {} : known)
  generator.tails = true
  const [target, ...codes] = inOrder(generator, [() => generator.value(node.procedure, context), ...args])
  const list = codes.map(({ text }) => text).join(', ')
  return codeOf(`new $.TailCall(${target?.text}, [${list}]${name === undefined ? '' : `, ${literal(name)}`})`)
}

/** Checks whether a library function called with this many arguments does not fall back to the context. */
export function standsAlone(library: Generator['library'], name: string, count: number): boolean {
  const text = library[name]?.native?.signature ?? ''
  return !text.includes('-') || text.replace(/:.*|<[a-z]>|\([a-z]+\)/g, 'x').replace(/[^a-z]/g, '').length - 1 === count
}

/** Facts about a function that is bound to a variable. */
type Known = { name: string; calledOnly: boolean; known: Definition }

/** A lambda. */
export function lambda(generator: Generator, node: Node, context: string, bound?: Known): Code {
  if (node.thunk) return tailCall(generator, node.body, context)
  const made = inFrame(generator, () => {
    const parameters = (node.arguments as Node[]).map((parameter) => {
      const declared = declare(generator, parameter.value as string, true)
      // Library functions may pass uncollapsed sequences.
      declared.raw = !bound?.calledOnly
      return declared.name
    })
    const names = { hint: 'function', name: node.signature ? undefined : bound?.name, self: bound?.name }
    return functionOf(generator, parameters, () => generator.value(node.body, context), names)
  })
  if (bound) {
    const raw = endsInTailCall(node.body)
    Object.assign(bound.known, { result: raw ? { raw } : knownOf(made.result), tails: made.tails })
  }
  const known: Partial<Code> = { kind: 'function', present: true, simple: generator.outermost.has(made.text) }
  if (!node.signature) return codeOf(known.simple ? made.text : `(${made.text})`, known)
  const text = `$.signed(${made.text}, ${literal(node.signature.definition)})`
  if (!known.simple) return codeOf(text, known)
  return codeOf(
    constant(generator, text, 'function', () => text, bound?.name),
    known,
  )
}

function knownOf({ kind, present }: Code): Partial<Code> {
  return { kind, present }
}

/** `|pattern|update,delete|`. */
export function transformation(generator: Generator, node: Node): Code {
  const part = (each: Node): string => {
    const item = uniqueName(generator, 'item')
    return itemFunction(generator, item, () => generator.value(each, item))
  }
  const parts = [
    `pattern: ${part(node.pattern)}`,
    `whole: ${isContext(node.pattern)}`,
    `update: ${part(node.update)}`,
    ...(node.delete ? [`remove: ${part(node.delete)}`] : []),
    `clone: ${variable(generator, 'clone').text}`,
    `position: ${node.position ?? 0}`,
    `updatePosition: ${node.update.position ?? 0}`,
    `removePosition: ${node.delete?.position ?? 0}`,
  ]
  return codeOf(`$.transform({ ${parts.join(', ')} })`, { kind: 'function', present: true })
}

/** Checks whether an expression is `$` alone: a transform with this pattern changes its input, and nothing inside it. */
function isContext({ type, value, predicate, group, keepArray }: Node): boolean {
  return type === 'variable' && value === '' && !predicate && !group && !keepArray
}

type Direct = (args: readonly Code[]) => Code | undefined

/** Inline code for library functions that need no argument validation at this number of arguments. */
const directCalls: Readonly<Record<string, Direct>> = {
  exists: withArity(1, ([value]) => codeOf(`(${value?.text} !== undefined)`, { kind: 'boolean', present: true })),
  not: withArity(1, ([value]) =>
    value?.kind === 'boolean' && value.present
      ? codeOf(`!${value.text}`, { kind: 'boolean', present: true })
      : codeOf(`$.not(${value?.text})`, { kind: 'boolean' }),
  ),
  boolean: withArity(1, ([value]) => codeOf(`$.boolean(${value?.text})`, { kind: 'boolean' })),
  string: withArity(1, ([value]) => codeOf(`$.string(${value?.text})`, { kind: 'string' })),
  count: withArity(1, ([value]) => codeOf(`$.count(${value?.text})`, { kind: 'number', present: true })),
  append: withArity(2, ([left, right]) => codeOf(`$.append(${left?.text}, ${right?.text})`, { raw: true })),
  type: withArity(1, ([value]) => codeOf(`$.type(${value?.text})`, { kind: 'string' })),
}

function withArity(count: number, emit: Direct): Direct {
  return (args) => (args.length === count ? emit(args) : undefined)
}

const text: Partial<Code> = { kind: 'string', raw: false }

/** Static facts about the results of library functions. */
const results: Readonly<Record<string, Partial<Code>>> = {
  ...Object.fromEntries(
    ['join', 'substring', 'substringBefore', 'substringAfter', 'lowercase', 'uppercase', 'trim', 'pad', 'string'].map(
      (name) => [name, text],
    ),
  ),
  ...Object.fromEntries(
    ['toJson', 'digest', 'base64Text', 'dataUrl', 'dataUrlType', 'dataUrlBody', 'mediaType', 'mediaFormat'].map(
      (name) => [name, text],
    ),
  ),
  ...Object.fromEntries(['reasoningEffort', 'nearestEffort'].map((name) => [name, text])),
  jsonArguments: { kind: 'object', raw: false },
  narrowSchema: { kind: 'object', raw: false },
  contains: { kind: 'boolean', raw: false },
  merge: { kind: 'object', raw: false },
  parseJson: { raw: false },
  withoutNulls: { raw: false },
}
