import { isObject, type Json, type JsonObject } from '../core/json.ts'

/** The members that a reader understands, by name. */
export type KnownMembers = { readonly [name: string]: Known }

/** The part of a value that a reader understands. */
export type Known =
  /** All of it: a plain value, or JSON of any shape, such as a schema. */
  | 'all'
  /** Only `false`, which asks for nothing; any other value is not understood. */
  | 'off'
  /**
   * Members of an object, or of every object in a list; `as` follows the path in their names. Other members of an `open` one are
   * extensions.
   */
  | { readonly members: KnownMembers; readonly as?: string; readonly open?: true }
  /** Members that depend on the kind of object. Objects of any other kind are kept as they are. */
  | { readonly kinds: KnownMembers; readonly kindOf: (object: JsonObject) => Json | undefined }
  /** Texts of a list that are understood. */
  | { readonly texts: ReadonlySet<string> }

/** Upper bound of the names that are given for one body. */
export const maxUnread = 50

/**
 * Returns the paths of the members of a body that its reader does not understand, each once and without positions in lists; undefined
 * when there are none. Top-level fields that are not in the table are ignored.
 */
export function unreadMembers(body: JsonObject, known: KnownMembers): string[] | undefined {
  const found = new Set<string>()
  for (const name in known) if (body[name] !== undefined) visit(body[name], known[name] as Known, name, found)
  return found.size > 0 ? [...found] : undefined
}

/** The kind of objects that have a `type`. */
export function typeOf({ type }: JsonObject): Json | undefined {
  return type
}

/** The router's own field, which all APIs have. */
export const requesty: Known = {
  members: { tags: 'all', user_id: 'all', trace_id: 'all', session_id: 'all', extra: 'all', auto_cache: 'all' },
}

/** A cache hint of Anthropic's form. */
export const cacheControl: Known = { members: { type: 'all', ttl: 'all' } }

const place: KnownMembers = { type: 'all', city: 'all', region: 'all', country: 'all', timezone: 'all' }

/** The location of a search's user, flat or under `approximate`. */
export const userLocation: Known = { members: { ...place, approximate: { members: place } } }

function visit(value: Json | undefined, known: Known, path: string, found: Set<string>): void {
  if (known === 'all') return
  if (!Array.isArray(value)) visitOne(value, known, path, found)
  else for (const item of value) visitOne(item, known, path, found)
}

function visitOne(value: Json | undefined, known: Known, path: string, found: Set<string>): void {
  if (known === 'off') {
    if (value !== false && value !== null && value !== undefined) add(found, path)
  } else if (known === 'all') return
  else if ('texts' in known) {
    if (typeof value === 'string' && !known.texts.has(value)) add(found, `${path}.${value}`)
  } else if (!isObject(value)) return
  else if ('members' in known) visitMembers(value, known, known.as ? `${path}.${known.as}` : path, found)
  else {
    const kind = known.kindOf(value)
    const own = typeof kind === 'string' && Object.hasOwn(known.kinds, kind) ? known.kinds[kind] : undefined
    if (own) visitOne(value, own, path, found)
  }
}

type Members = Extract<Known, { members: KnownMembers }>

function visitMembers(object: JsonObject, { members, open }: Members, path: string, found: Set<string>): void {
  for (const name in object) {
    // No other object's member is this text: nearly all members are understood.
    if (members[name] === 'all') continue
    const known = Object.hasOwn(members, name) ? members[name] : undefined
    const member = object[name]
    if (known) visit(member, known, `${path}.${name}`, found)
    else if (!open && member !== null && member !== undefined) add(found, `${path}.${name}`)
  }
}

function add(found: Set<string>, name: string): void {
  if (found.size < maxUnread) found.add(name)
}
