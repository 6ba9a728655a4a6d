/** The result of a hook is not one that it may return. */
export class WrongResult extends Error {
  override readonly name = 'WrongResult'
}

/** The members that an object may have, and of what kind they are; those with `!` must be there. */
export type Members = { readonly [name: string]: Kind | `${Kind}!` }

type Kind = 'text' | 'number' | 'flag' | 'list' | 'object' | 'any'

/** Throws `WrongResult` for anything but an object of these members. */
export function requireMembers<Type>(value: unknown, path: string, members: Members): Type {
  if (!isPlain(value)) throw new WrongResult(`${path} is not an object`)
  for (const name in value) {
    const member = value[name]
    if (member === undefined) continue
    const kind = members[name]
    if (kind === undefined) throw new WrongResult(`${path} has an unknown member '${name}'`)
    if (!isOf(kind, member)) throw new WrongResult(`${path}.${name} is not of the type ${kind.replace('!', '')}`)
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

/** Throws `WrongResult` for what are no parts. */
export function requireParts(parts: unknown, path: string): void {
  if (!Array.isArray(parts)) throw new WrongResult(`${path} is not a list`)
  for (const [index, part] of parts.entries()) requirePart(part, `${path}[${index}]`)
}

/** Throws `WrongResult` for anything but a part. */
export function requirePart(part: unknown, path: string): void {
  const { type } = (part ?? {}) as { type?: unknown }
  const members = typeof type === 'string' && Object.hasOwn(partMembers, type) ? partMembers[type] : undefined
  if (!members) throw new WrongResult(`${path} has no valid type of part`)
  const { parts } = requireMembers<{ parts?: unknown }>(part, path, members)
  if (parts) requireParts(parts, `${path}.parts`)
}

/** Media as parts and as events have them. */
export const mediaMembers: Members = {
  type: 'text!',
  url: 'text',
  data: 'text',
  media_type: 'text',
  file_id: 'text',
  filename: 'text',
  detail: 'text',
  transcript: 'text',
  id: 'text',
  cache: 'object',
}

const partMembers: { readonly [type: string]: Members } = {
  text: { type: 'text!', text: 'text!', citations: 'list', signature: 'text', by: 'text', cache: 'object' },
  image: mediaMembers,
  audio: mediaMembers,
  file: mediaMembers,
  video: mediaMembers,
  reasoning: {
    type: 'text!',
    text: 'text',
    summary: 'text',
    signature: 'text',
    encrypted: 'text',
    id: 'text',
    by: 'text',
    restored: 'flag',
  },
  tool_call: {
    type: 'text!',
    id: 'text!',
    name: 'text!',
    arguments: 'text!',
    kind: 'text',
    form: 'object',
    native: 'object',
    signature: 'text',
    by: 'text',
    cache: 'object',
  },
  tool_result: {
    type: 'text!',
    id: 'text!',
    name: 'text',
    parts: 'list!',
    is_error: 'flag',
    native: 'object',
    cache: 'object',
  },
  search: { type: 'text!', id: 'text', query: 'text', status: 'text', results: 'any', by: 'text' },
  refusal: { type: 'text!', text: 'text!' },
  opaque: { type: 'text!', by: 'text', body: 'any' },
}
