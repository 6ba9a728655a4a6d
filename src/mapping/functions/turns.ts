import { isObject, type Json } from '../../core/json.ts'
import type { Part } from '../../core/parts.ts'
import { eventOfPart } from '../../core/reply-events.ts'

/** A message as providers write it, its content a list. */
type Turn = { role?: unknown; content?: unknown }

/** Consecutive messages of the same role as one, with the content of all. */
export function joinTurns(turns?: readonly Turn[]): Turn[] | undefined {
  if (turns === undefined) return undefined
  const joined: Turn[] = []
  for (const turn of turns) {
    const earlier = joined.at(-1)
    if (earlier === undefined || earlier.role !== turn.role) joined.push(turn)
    else joined[joined.length - 1] = { ...earlier, content: [earlier.content ?? [], turn.content ?? []].flat() }
  }
  return joined
}

/**
 * A copy of a value in which the strings at these paths are distinct, ignoring case: a repeated one gets its number.
 * Paths are names of members with dots between them; lists on the way are walked in order.
 */
export function distinctNames(value?: unknown, paths: readonly string[] = []): unknown {
  const places: Places = { here: false, below: new Map() }
  for (const path of paths) addPlace(places, path.split('.'))
  return numberRepeated(value, places, new Map())
}

/** Places of names: whether a name is here, and those below each member. */
type Places = { here: boolean; below: Map<string, Places> }

function addPlace(places: Places, [name, ...rest]: readonly string[]): void {
  if (name === undefined) {
    places.here = true
    return
  }
  const inner = places.below.get(name) ?? { here: false, below: new Map() }
  places.below.set(name, inner)
  addPlace(inner, rest)
}

function numberRepeated(value: unknown, places: Places, counts: Map<string, number>): unknown {
  if (Array.isArray(value)) return value.map((item) => numberRepeated(item, places, counts))
  if (typeof value === 'string') return places.here ? numbered(value, counts) : value
  if (typeof value !== 'object' || value === null) return value
  let copy: Record<string, unknown> | undefined
  for (const [name, member] of Object.entries(value)) {
    const inner = places.below.get(name)
    if (inner === undefined) continue
    copy ??= { ...value }
    copy[name] = numberRepeated(member, inner, counts)
  }
  return copy ?? value
}

function numbered(name: string, counts: Map<string, number>): string {
  const key = name.toLowerCase()
  const count = (counts.get(key) ?? 0) + 1
  counts.set(key, count)
  return count === 1 ? name : `${name} [${count}]`
}

/** Returns the event by which a stream sends a whole part. */
export function partEvent(part?: Json): object | undefined {
  return isObject(part) ? eventOfPart(part as Part) : undefined
}

/** Returns the text of a single block that has no other members, as a plain string, else the blocks. */
export function plainText(blocks?: Json): Json | undefined {
  const [block] = Array.isArray(blocks) && blocks.length === 1 ? blocks : []
  if (!isObject(block) || typeof block.text !== 'string') return blocks
  return Object.keys(block).every((member) => member === 'type' || member === 'text') ? block.text : blocks
}

/** A list in which neighbouring texts are one text. */
export function joinTexts(list?: Json): Json | undefined {
  if (!Array.isArray(list)) return list
  const joined: Json[] = []
  for (const item of list) {
    const last = joined.at(-1)
    if (typeof item === 'string' && typeof last === 'string') joined[joined.length - 1] = last + item
    else joined.push(item)
  }
  return joined
}
