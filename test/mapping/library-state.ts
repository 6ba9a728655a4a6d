import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { jsonata } from '../../src/mapping/compile/runtime/jsonata.ts'
import { library } from '../../src/mapping/library.ts'

/** Names that JSONata itself binds for all expressions of the process. */
export const staticNames = [
  ...readFileSync(createRequire(import.meta.url).resolve('jsonata'), 'utf8').matchAll(/staticFrame\.bind\('(\w+)'/g),
].map(([, name]) => name as string)

/** All that mappings of one process share: the functions that they call, and the prototypes of JavaScript values. */
export async function sharedObjects(): Promise<readonly object[]> {
  const definitions = await Promise.all(staticNames.map((name) => jsonata(`$${name}`).evaluate(undefined, {})))
  const intrinsics = [
    Object,
    Array,
    Function,
    String,
    Number,
    Boolean,
    RegExp,
    Promise,
    Map,
    Set,
    Date,
    Error,
    JSON,
    Math,
  ]
  return [library, ...definitions, await staticEnvironment(), ...intrinsics]
}

/** The members of an environment that JSONata hands down from the one of the process. */
async function staticEnvironment(): Promise<object> {
  let found: object = {}
  const expression = jsonata('1')
  const note = (_: unknown, __: unknown, environment: { global: object }) => {
    found = environment.global
  }
  expression.assign(Symbol.for('jsonata.__evaluate_exit') as unknown as string, note)
  await expression.evaluate(undefined, {})
  return found
}

/** Every object that can be reached from these, with its members as they are now. */
export function stateOf(roots: readonly object[]): ReadonlyMap<object, readonly unknown[]> {
  const state = new Map<object, unknown[]>()
  const waiting: unknown[] = [...roots]
  while (waiting.length > 0) {
    const value = waiting.pop()
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null || state.has(value)) continue
    const members: unknown[] = [Object.getPrototypeOf(value)]
    for (const name of Reflect.ownKeys(value)) {
      const { value: member, get, set } = Object.getOwnPropertyDescriptor(value, name) as PropertyDescriptor
      members.push(name, member, get, set)
    }
    state.set(value, members)
    waiting.push(...members)
  }
  return state
}

/** The objects whose members have changed. */
export function changed(before: ReadonlyMap<object, readonly unknown[]>): object[] {
  const now = stateOf([...before.keys()])
  return [...before].flatMap(([object, members]) => {
    const found = now.get(object) ?? []
    const same = found.length === members.length && found.every((member, index) => Object.is(member, members[index]))
    return same ? [] : [object]
  })
}

/** A value that nothing can change. */
export function deepFrozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const member of Object.values(value)) deepFrozen(member)
  }
  return value
}
