import { EvaluationError } from './evaluation-error.ts'
import { jsonata } from './jsonata.ts'
import { budget, spend } from './limits.ts'
import { collapse } from './sequence.ts'

/** A function of an expression: a lambda, or a built-in one (with `native`). */
export type Callable = ((...args: unknown[]) => unknown) & {
  signature?: Signature
  native?: Native
  arity?: number
}

/** The implementation of a built-in function. */
export type Native = { run: (...args: unknown[]) => unknown; parameters: number; signature: string | undefined }

/** Validates arguments, substitutes the context and wraps single values where a list is expected. */
export type Signature = (args: unknown[], context: unknown) => unknown[]

/** A call in tail position, which the caller makes so that the stack does not grow. */
export class TailCall {
  readonly target: unknown
  readonly args: unknown[]
  readonly name: string | undefined

  constructor(target: unknown, args: unknown[], name?: string) {
    this.target = target
    this.args = args
    this.name = name
  }
}

/** Calls a function. Throws T1006 for anything else, D1011 when nested too deeply; errors get the position of the call. */
export function call(target: unknown, args: unknown[], context: unknown, position?: number, name?: string): unknown {
  spend(1)
  if (--budget.depth < 0) throw new EvaluationError('D1011', position)
  try {
    let result = invoke(target, args, context, name)
    while (result instanceof TailCall) {
      spend(1)
      result = invoke(result.target, result.args, context, result.name)
    }
    budget.depth++
    return result
  } catch (error) {
    throw withPosition(error, position, name)
  }
}

/** Calls a function of the library, with the same errors. */
export function callLibrary(
  { native, signature }: Callable,
  args: unknown[],
  context: unknown,
  position: number,
  name: string,
): unknown {
  spend(1)
  if (--budget.depth < 0) throw new EvaluationError('D1011', position)
  try {
    const checked = signature ? checkedArguments(signature, args, context, name) : args
    const result = (native as Native).run(...checked)
    budget.depth++
    return result
  } catch (error) {
    throw withPosition(error, position, name)
  }
}

/** Calls a function from a library function, without a context. */
export function apply(target: unknown, args: unknown[]): unknown {
  return call(target, args, null)
}

function invoke(target: unknown, args: unknown[], context: unknown, name: string | undefined): unknown {
  if (typeof target !== 'function') throw new EvaluationError('T1006', undefined, { token: name })
  const callable = target as Callable
  const checked = callable.signature ? checkedArguments(callable.signature, args, context, name) : args
  return callable.native ? callable.native.run(...checked) : callable(...checked)
}

function checkedArguments(
  signature: Signature,
  args: unknown[],
  context: unknown,
  name: string | undefined,
): unknown[] {
  try {
    return signature(args, context)
  } catch (error) {
    throw error instanceof EvaluationError ? error : fromLibraryError(error, name)
  }
}

/** Adds the position of a call to an error that has none. */
export function withPosition(thrown: unknown, position: number | undefined, token: string | undefined): unknown {
  const error = thrown instanceof EvaluationError ? thrown : fromLibraryError(thrown, token)
  if (!(error instanceof EvaluationError)) return error
  error.position ||= position
  error.token ||= token
  return error
}

/** Converts an error object of the library to an EvaluationError. */
export function fromLibraryError(error: unknown, token?: string): unknown {
  const { code, position, ...facts } = (error ?? {}) as { code?: string; position?: number }
  return typeof code === 'string' && !(error instanceof Error)
    ? new EvaluationError(code, position, { ...facts, token: token ?? (facts as { token?: string }).token })
    : error
}

/** The number of arguments that a function takes. */
export function arity(target: unknown): number {
  const callable = target as Callable
  return callable.arity ?? callable.length
}

/** A built-in function. */
export function native(run: (...args: never[]) => unknown, text?: string, parameters = run.length): Callable {
  const behind: Native = { run: run as Native['run'], parameters, signature: text }
  const callable: Callable = (...args) => behind.run(...args)
  callable.native = behind
  callable.arity = run.length
  if (text !== undefined) callable.signature = signature(text)
  return callable
}

/** Attaches a signature to a lambda. */
export function signed(lambda: Callable, text: string): Callable {
  lambda.signature = signature(text)
  return lambda
}

const signatures = new Map<string, Signature>()

/** The validator of a signature such as `<s-n?:s>`: a fast path in front of the library's own. */
export function signature(text: string): Signature {
  const known = signatures.get(text)
  if (known) return known
  let validate: Signature | undefined
  const validator = fastValidation(text, (args, context) => {
    validate ??= libraryValidation(text)
    return validate(args, context)
  })
  signatures.set(text, validator)
  return validator
}

/** Returns the library's validation of a signature, which most signatures never need. */
function libraryValidation(text: string): Signature {
  const tree = jsonata(`function()${text}{0}`).ast() as unknown as { signature: { validate: Signature } }
  return (args, context) => tree.signature.validate(args, context)
}

/** Returns a validation that skips the library's when all arguments match and none is replaced by the context. */
function fastValidation(text: string, validate: Signature): Signature {
  const parameters = simpleParameters(text)
  if (parameters === undefined) return validate
  const required = parameters.findLastIndex(({ optional }) => !optional) + 1
  return (args, context) => {
    if (args.length < required || args.length > parameters.length) return validate(args, context)
    let checked = args
    for (let index = 0; index < args.length; index++) {
      const parameter = parameters[index] as Parameter
      const argument = args[index]
      if (accepts(parameter, argument)) continue
      if (!acceptsItem(parameter, argument)) return validate(args, context)
      if (checked === args) checked = args.slice()
      checked[index] = [argument]
    }
    return checked
  }
}

/** A parameter: letters of the types that it takes, and that of the items if it takes a list. */
type Parameter = { types: string; items: string | undefined; optional: boolean }

/** The parameters of a signature; undefined if it has some that are repeated or nested. */
function simpleParameters(text: string): Parameter[] | undefined {
  const inner = /^<((?:[^:<]|<[^<>]*>)*)(?::.*)?>$/.exec(text)?.[1]
  const parameter = /(?:([snbxjofa])|\(([snboaf]+)\))(?:<([snbo]|[^<>]*:[^<>]*)>)?([-?]?)/y
  const parameters: Parameter[] = []
  while (inner !== undefined && parameter.lastIndex < inner.length) {
    const [, type, choice, items, sign] = parameter.exec(inner) ?? []
    const types = type ?? choice
    if (types === undefined) return undefined
    parameters.push({ types, items: types === 'a' ? items : undefined, optional: sign === '?' })
  }
  return inner === undefined ? undefined : parameters
}

function accepts({ types, items }: Parameter, value: unknown): boolean {
  if (types === 'x') return true
  // A function may be left out, but not be undefined.
  if (value === undefined) return types !== 'f'
  const type = typeLetter(value)
  if (types === 'j') return type !== 'f'
  if (!types.includes(type)) return false
  return type !== 'a' || items === undefined || (value as unknown[]).every((item) => typeLetter(item) === items)
}

/** Checks whether a value stands for a list with it as the only item. */
function acceptsItem({ types, items }: Parameter, value: unknown): boolean {
  return types === 'a' && !Array.isArray(value) && (items === undefined || typeLetter(value) === items)
}

/** The letter of a value's type in signatures. */
function typeLetter(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return 's'
    case 'number':
      return 'n'
    case 'boolean':
      return 'b'
    case 'function':
      return 'f'
    default:
      return value === null ? 'l' : Array.isArray(value) ? 'a' : value === undefined ? 'm' : 'o'
  }
}

/** The callee of a call by a bare name. Throws if it is undefined but a variable of that name exists. */
export function orSuggestDollar(
  target: unknown,
  hint: unknown,
  code: string,
  position: number,
  token: string,
): unknown {
  if (target === undefined && hint) throw new EvaluationError(code, position, { token })
  return target
}

/** `value ~> function`, or the composition of two functions. Throws T2006. */
export function chain(left: unknown, right: unknown, position: number): unknown {
  if (typeof right !== 'function') throw new EvaluationError('T2006', position, { value: right })
  if (typeof left !== 'function') return call(right, [left], null)
  return (value: unknown) => new TailCall(right, [collapse(call(left, [value], null))], 'g')
}
