import { any, arrow, type Code, fresh, type Generator, inOrder, literal, type Node, Uncompilable } from './generator.ts'
import { builtIn, declare, inFrame, variable } from './scope.ts'

/** A call; its result is not collapsed yet. */
export function functionCall(generator: Generator, node: Node, context: string): Code {
  return callWith(generator, node, context, [])
}

/** `value ~> function(…)` or `value ~> function`. */
export function application(generator: Generator, node: Node, context: string): Code {
  const left = (): Code => generator.value(node.lhs, context)
  if (node.rhs.type === 'function') return callWith(generator, node.rhs, context, [left])
  const [value, target] = inOrder(generator, [left, () => generator.value(node.rhs, context)]) as [Code, Code]
  return any(`$.chain(${value.text}, ${target.text}, ${node.position ?? 0})`, { raw: true })
}

function callWith(generator: Generator, node: Node, context: string, before: readonly (() => Code)[]): Code {
  const name = procedureName(node)
  const args = [...before, ...(node.arguments as Node[]).map((each) => () => generator.value(each, context))]
  if (isBuiltIn(generator, node)) {
    const codes = inOrder(generator, args)
    const direct = directCalls[name as string]?.(codes)
    if (direct) return direct
    const list = codes.map(({ text }) => text).join(', ')
    const text = `$.call(library.${name}, [${list}], ${context}, ${node.position ?? 0}, ${literal(name)})`
    return any(text, { raw: true, ...results[name as string] })
  }
  const [target, ...codes] = inOrder(generator, [() => procedure(generator, node, context, 'T1005'), ...args])
  const list = codes.map(({ text }) => text).join(', ')
  const named = name === undefined ? '' : `, ${literal(name)}`
  return any(`$.call(${target?.text}, [${list}], ${context}, ${node.position ?? 0}${named})`, { raw: true })
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

/** What is called; a name that a variable has suggests that its `$` was forgotten. */
function procedure(generator: Generator, node: Node, context: string, code: string): Code {
  const target = generator.value(node.procedure, context)
  if (node.procedure.type !== 'path') return target
  const name = procedureName(node) ?? ''
  const hint = variable(generator, name)
  if (hint.text === 'undefined') return target
  return any(`$.hinted(${target.text}, ${hint.text}, "${code}", ${node.position ?? 0}, ${literal(name)})`)
}

/** A call in tail position: made here when it needs nothing of its caller, else handed to the caller. */
export function tailCall(generator: Generator, node: Node, context: string): Code {
  const name = procedureName(node)
  if (isBuiltIn(generator, node) && standsAlone(generator, name as string, node.arguments.length)) {
    return { ...functionCall(generator, node, context), raw: false }
  }
  const args = (node.arguments as Node[]).map((each) => () => generator.value(each, context))
  const [target, ...codes] = inOrder(generator, [() => generator.value(node.procedure, context), ...args])
  const list = codes.map(({ text }) => text).join(', ')
  return any(`new $.Tail(${target?.text}, [${list}]${name === undefined ? '' : `, ${literal(name)}`})`)
}

/** Whether a function of the library can do without a context, given so many arguments. */
function standsAlone(generator: Generator, name: string, count: number): boolean {
  const text = generator.library[name]?.native?.signature ?? ''
  return !text.includes('-') || text.replace(/:.*|<[a-z]>|\([a-z]+\)/g, 'x').replace(/[^a-z]/g, '').length - 1 === count
}

/** A function written in the mapping. */
export function lambda(generator: Generator, node: Node, context: string): Code {
  if (node.thunk) return tailCall(generator, node.body, context)
  const text = inFrame(generator, () => {
    const names = (node.arguments as Node[]).map((parameter) => {
      const made = declare(generator, parameter.value as string, true)
      const known = generator.frame.variables.get(parameter.value as string)
      // Library functions hand over items as they found them.
      if (known) known.raw = true
      return made
    })
    return arrow(generator, names.join(', '), () => generator.value(node.body, context))
  })
  const signature = node.signature ? `$.signed(${text}, ${literal(node.signature.definition)})` : `(${text})`
  return any(signature, { kind: 'function', present: true })
}

/** A function with some arguments given. */
export function partialApplication(generator: Generator, node: Node, context: string): Code {
  const open = any('$.open', { simple: true })
  const args = (node.arguments as Node[]).map(
    (each) => () => (each.type === 'operator' && each.value === '?' ? open : generator.value(each, context)),
  )
  const codes = inOrder(generator, [...args, () => procedure(generator, node, context, 'T1007')])
  const target = codes.pop()
  const name = procedureName(node)
  const list = codes.map(({ text }) => text).join(', ')
  const text = `$.partial(${target?.text}, [${list}], ${node.position ?? 0}${name === undefined ? '' : `, ${literal(name)}`})`
  return any(text, { kind: 'function', present: true })
}

/** `|pattern|update,delete|`. */
export function transformation(generator: Generator, node: Node): Code {
  const part = (each: Node): string => {
    const item = fresh(generator, 'item')
    return arrow(generator, item, () => generator.value(each, item))
  }
  const parts = [
    `pattern: ${part(node.pattern)}`,
    `update: ${part(node.update)}`,
    ...(node.delete ? [`remove: ${part(node.delete)}`] : []),
    `clone: ${variable(generator, 'clone').text}`,
    `position: ${node.position ?? 0}`,
    `updatePosition: ${node.update.position ?? 0}`,
    `removePosition: ${node.delete?.position ?? 0}`,
  ]
  return any(`$.transform({ ${parts.join(', ')} })`, { kind: 'function', present: true })
}

type Direct = (args: readonly Code[]) => Code | undefined

/** Functions that need no check of their arguments when given so many. */
const directCalls: Readonly<Record<string, Direct>> = {
  exists: only(1, ([value]) => any(`(${value?.text} !== undefined)`, { kind: 'boolean', present: true, plain: true })),
  not: only(1, ([value]) =>
    value?.kind === 'boolean' && value.present
      ? any(`!${value.text}`, { kind: 'boolean', present: true, plain: true })
      : any(`$.not(${value?.text})`, { kind: 'boolean', plain: true }),
  ),
  boolean: only(1, ([value]) => any(`$.boolean(${value?.text})`, { kind: 'boolean', plain: true })),
  string: only(1, ([value]) => any(`$.string(${value?.text})`, { kind: 'string', plain: true })),
  count: only(1, ([value]) => any(`$.count(${value?.text})`, { kind: 'number', present: true, plain: true })),
  append: only(2, ([left, right]) => any(`$.append(${left?.text}, ${right?.text})`, { raw: true })),
  type: only(1, ([value]) => any(`$.type(${value?.text})`, { kind: 'string', plain: true })),
}

function only(count: number, emit: Direct): Direct {
  return (args) => (args.length === count ? emit(args) : undefined)
}

const text: Partial<Code> = { kind: 'string', plain: true, raw: false }

/** What is known of the results of library functions. */
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
  contains: { kind: 'boolean', plain: true, raw: false },
  merge: { kind: 'object', raw: false },
  parseJson: { plain: true, raw: false },
  withoutNulls: { raw: false },
}
