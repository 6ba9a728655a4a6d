import type { Json } from '../core/json.ts'
import { type Library, libraryWith } from './compile/runtime/library.ts'
import { functions } from './functions.ts'

/** Functions of compiled mappings. */
export const library: Library = libraryWith(functions)

/** Names of all functions; `$eval` is only there in interpreted mappings. */
export const libraryNames: readonly string[] = [...Object.keys(library), 'eval']

/** Functions for mappings that are not the router's: a mapping that is read with them may call them by name. */
export type OwnFunctions = {
  readonly names: readonly string[]
  /** The functions as the interpreter calls them. */
  readonly run: Readonly<Record<string, (...values: unknown[]) => unknown>>
  /** The library with these functions and all others that mappings can call. */
  readonly library: Library
}

/** Makes functions callable. They get and return copies: what is missing is null, and they answer at once. */
export function ownFunctions(given: Readonly<Record<string, (...values: Json[]) => unknown>>): OwnFunctions {
  const run = Object.fromEntries(
    Object.entries(given).map(([name, call]) => [name, (...values: unknown[]) => answer(name, call, values)]),
  )
  const own = Object.entries(run).map(([name, call]) => [name, { run: call, signature: undefined }])
  return { names: Object.keys(run), run, library: libraryWith({ ...functions, ...Object.fromEntries(own) }) }
}

function answer(name: string, call: (...values: Json[]) => unknown, values: readonly unknown[]): unknown {
  let result: unknown
  try {
    result = call(...values.map((value) => (value === undefined ? null : copied(value))))
  } catch (thrown) {
    throw new Error(`$${name}: ${thrown instanceof Error ? thrown.message : String(thrown)}`, { cause: thrown })
  }
  if (result instanceof Promise) {
    result.catch(() => {})
    throw new Error(`$${name} returned a promise: functions for mappings must be synchronous`)
  }
  return result === undefined ? undefined : copied(result)
}

function copied(value: unknown): Json {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value
  const text = JSON.stringify(value)
  return text === undefined ? null : JSON.parse(text)
}
