import {
  type Code,
  codeOf,
  type Definition,
  type Frame,
  type Generator,
  missing,
  Uncompilable,
  uniqueName,
  type Variable,
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
    found.needsCheck = true
    return codeOf(`(${found.name} === $.unbound ? ${outer.text} : ${found.name})`, { simple: true })
  }
  if (generator.bindings.has(name)) return codeOf(`$.ownMember(bindings, ${JSON.stringify(name)})`, { simple: true })
  if (name === '$') return codeOf('input', { simple: true })
  if (name === 'eval') throw new Uncompilable('$eval')
  return Object.hasOwn(generator.library, name)
    ? codeOf(`library.${name}`, { kind: 'function', present: true, simple: true })
    : missing
}

/** Checks whether a name refers to a library function here. */
export function builtIn(generator: Generator, name: string): boolean {
  return Object.hasOwn(generator.library, name) && !generator.bindings.has(name) && !bound(generator.frame, name)
}

function bound(start: Frame | undefined, name: string): boolean {
  for (let frame = start; frame; frame = frame.outer) if (frame.variables.has(name)) return true
  return false
}

/** Returns the function that a name certainly refers to here, and its name in the generated code. */
export function definition(generator: Generator, name: string): { name: string; known: Definition } | undefined {
  for (let frame: Frame | undefined = generator.frame; frame; frame = frame.outer) {
    const found = frame.variables.get(name)
    if (found) return found.definition && { name: found.name, known: found.definition }
  }
  return undefined
}

/** Emits code in a new scope, inside the current one or another. */
export function inFrame<T>(generator: Generator, emit: () => T, outer: Frame | undefined = generator.frame): T {
  const { frame } = generator
  generator.frame = { outer, variables: new Map(), parallel: false }
  try {
    return emit()
  } finally {
    generator.frame = frame
  }
}

/** Declares a variable in the current scope. */
export function declare(generator: Generator, name: string, bound: boolean): Variable {
  const jsName = uniqueName(generator, name)
  const variable: Variable = { name: jsName, bound, needsCheck: false, kind: 'any', present: false }
  generator.frame.variables.set(name, variable)
  return variable
}
