import { type Members, requireMembers, WrongResult } from './members.ts'

/** Throws `WrongResult` for what are no parts. */
export function requireParts(parts: unknown, path: string): void {
  if (!Array.isArray(parts)) throw new WrongResult(`${path} is no list`)
  for (const [index, part] of parts.entries()) requirePart(part, `${path}[${index}]`)
}

/** Throws `WrongResult` for what is no part. */
export function requirePart(part: unknown, path: string): void {
  const { type } = (part ?? {}) as { type?: unknown }
  const members = typeof type === 'string' && Object.hasOwn(partMembers, type) ? partMembers[type] : undefined
  if (!members) throw new WrongResult(`${path} has no type of a part`)
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
    signature: 'text',
    by: 'text',
    cache: 'object',
  },
  tool_result: { type: 'text!', id: 'text!', name: 'text', parts: 'list!', is_error: 'flag', cache: 'object' },
  search: { type: 'text!', id: 'text', query: 'text', status: 'text', results: 'any', by: 'text' },
  refusal: { type: 'text!', text: 'text!' },
  opaque: { type: 'text!', by: 'text', body: 'any' },
}
