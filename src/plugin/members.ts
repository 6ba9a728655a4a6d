/** A hook returned what it may not. */
export class WrongResult extends Error {
  override readonly name = 'WrongResult'
}

/** The members that an object may have, and of what kind they are; those with `!` must be there. */
export type Members = { readonly [name: string]: Kind | `${Kind}!` }

type Kind = 'text' | 'number' | 'flag' | 'list' | 'object' | 'any'

/** Throws `WrongResult` for what is no object of these members. */
export function requireMembers<Type>(value: unknown, path: string, members: Members): Type {
  if (!isPlain(value)) throw new WrongResult(`${path} is no object`)
  for (const name in value) {
    const member = value[name]
    if (member === undefined) continue
    const kind = members[name]
    if (kind === undefined) throw new WrongResult(`${path} has a member '${name}', which there is not`)
    if (!isOf(kind, member)) throw new WrongResult(`${path}.${name} is no ${kind.replace('!', '')}`)
  }
  for (const name in members) {
    if (members[name]?.endsWith('!') && value[name] === undefined) throw new WrongResult(`${path} has no '${name}'`)
  }
  return value as Type
}

function isOf(kind: Members[string], value: unknown): boolean {
  switch (kind) {
    case 'text':
    case 'text!':
      return typeof value === 'string'
    case 'number':
    case 'number!':
      return Number.isFinite(value)
    case 'flag':
    case 'flag!':
      return typeof value === 'boolean'
    case 'list':
    case 'list!':
      return Array.isArray(value)
    case 'object':
    case 'object!':
      return isPlain(value)
    default:
      return typeof value !== 'function' && typeof value !== 'symbol'
  }
}

function isPlain(value: unknown): value is { [name: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
