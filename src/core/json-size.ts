import { isObject } from './json.ts'

/** Returns about how many characters a JSON value has as a text. Long strings are not read, so that they cost nothing. */
export function jsonLength(value: unknown): number {
  if (typeof value === 'string') return value.length + 2
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + jsonLength(item) + 1, 2)
  if (!isObject(value)) return 4
  let length = 2
  for (const name in value) length += name.length + 4 + jsonLength(value[name])
  return length
}

/** Checks whether an object anywhere in a JSON value has a member of this name. */
export function hasMember(value: unknown, name: string): boolean {
  if (Array.isArray(value)) return value.some((item) => hasMember(item, name))
  if (!isObject(value)) return false
  if (Object.hasOwn(value, name)) return true
  for (const other in value) if (hasMember(value[other], name)) return true
  return false
}
