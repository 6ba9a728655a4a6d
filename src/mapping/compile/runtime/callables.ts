import jsonata from 'jsonata'
import { Fault } from './fault.ts'
import { budget, spend } from './limits.ts'
import { collapse } from './sequence.ts'

/** A function as a mapping sees it: written in the mapping, or one of the library's or the kernel's (then `native`). */
export type Callable = ((...args: unknown[]) => unknown) & {
  signature?: Signature
  native?: Native
  arity?: number
}

/** What stands behind a built-in function. */
export type Native = { run: (...args: unknown[]) => unknown; parameters: number; signature: string | undefined }

/** Checks arguments, fills in the context and wraps single values where a list is expected. */
export type Signature = (args: unknown[], context: unknown) => unknown[]

/** A call in tail position, made by the caller so that the stack does not grow. */
export class Tail {
  readonly target: unknown
  readonly args: unknown[]
  readonly name: string | undefined

  constructor(target: unknown, args: unknown[], name?: string) {
    this.target = target
    this.args = args
    this.name = name
  }
}

/** Calls a function. Throws T1006 for anything else, D1011 when nested too deeply; faults get the call's place. */
export function call(target: unknown, args: unknown[], context: unknown, position?: number, name?: string): unknown {
  spend(1)
  if (--budget.depth < 0) throw new Fault('D1011', position)
  try {
    let result = invoke(target, args, context, name)
    while (result instanceof Tail) {
      spend(1)
      result = invoke(result.target, result.args, context, result.name)
    }
    budget.depth++
    return result
  } catch (error) {
    throw blame(error, position, name)
  }
}

/** Calls a function from a function of the library: there is no context. */
export function apply(target: unknown, args: unknown[]): unknown {
  return call(target, args, null)
}

function invoke(target: unknown, args: unknown[], context: unknown, name: string | undefined): unknown {
  if (typeof target !== 'function') throw new Fault('T1006', undefined, { token: name })
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
    throw error instanceof Fault ? error : foreign(error, name)
  }
}

/** Adds the place of a call to a fault that has none. */
export function blame(thrown: unknown, position: number | undefined, token: string | undefined): unknown {
  const error = thrown instanceof Fault ? thrown : foreign(thrown, token)
  if (!(error instanceof Fault)) return error
  error.position ||= position
  error.token ||= token
  return error
}

/** An error object of the library as a fault. */
export function foreign(error: unknown, token?: string): unknown {
  const { code, position, ...facts } = (error ?? {}) as { code?: string; position?: number }
  return typeof code === 'string' && !(error instanceof Error)
    ? new Fault(code, position, { ...facts, token: token ?? (facts as { token?: string }).token })
    : error
}

/** How many arguments a function takes. */
export function arity(target: unknown): number {
  const callable = target as Callable
  return callable.arity ?? callable.length
}

/** A function of the library or the kernel. */
export function native(run: (...args: never[]) => unknown, text?: string, parameters = run.length): Callable {
  const behind: Native = { run: run as Native['run'], parameters, signature: text }
  const made: Callable = (...args) => behind.run(...args)
  made.native = behind
  made.arity = run.length
  if (text !== undefined) made.signature = signature(text)
  return made
}

/** Gives a function of the mapping its signature. */
export function signed(lambda: Callable, text: string): Callable {
  lambda.signature = signature(text)
  return lambda
}

const signatures = new Map<string, Signature>()

/** Reads a signature such as `<s-n?:s>`: the common case is checked here, every other by the library's own validator. */
export function signature(text: string): Signature {
  const known = signatures.get(text)
  if (known) return known
  const tree = jsonata(`function()${text}{0}`).ast() as unknown as { signature: { validate: Signature } }
  const made = quick(text, (args, context) => tree.signature.validate(args, context))
  signatures.set(text, made)
  return made
}

/** Only the right number of scalars, or anything for `x`: then validation changes nothing. */
function quick(text: string, validate: Signature): Signature {
  const kinds = /^<((?:[snbxjo][-?]?)*)(?::.*)?>$/.exec(text)?.[1]?.replace(/[-?]/g, '')
  if (kinds === undefined) return validate
  return (args, context) => {
    if (args.length !== kinds.length) return validate(args, context)
    for (let index = 0; index < args.length; index++) {
      if (!fits(kinds[index] as string, args[index])) return validate(args, context)
    }
    return args
  }
}

function fits(kind: string, value: unknown): boolean {
  if (kind === 'x' || value === undefined) return true
  if (kind === 's') return typeof value === 'string'
  if (kind === 'n') return typeof value === 'number'
  if (kind === 'b') return typeof value === 'boolean'
  return false
}

/** The target of a call by a bare name; fails when a variable has that name and nothing else does. */
export function hinted(target: unknown, hint: unknown, code: string, position: number, token: string): unknown {
  if (target === undefined && hint) throw new Fault(code, position, { token })
  return target
}

/** `value ~> function`, or the composition of two functions. Throws T2006. */
export function chain(left: unknown, right: unknown, position: number): unknown {
  if (typeof right !== 'function') throw new Fault('T2006', position, { value: right })
  if (typeof left !== 'function') return call(right, [left], null)
  return (value: unknown) => new Tail(right, [collapse(call(left, [value], null))], 'g')
}
