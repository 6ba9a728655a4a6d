import { type Callable, call, signature } from './callables.ts'
import { Fault } from './fault.ts'
import { put } from './sequence.ts'

type Of = (item: unknown) => unknown

/** What a transform is made of; `clone` makes the copy that is changed. */
export type Transform = {
  pattern: Of
  update: Of
  remove?: Of
  clone: unknown
  position: number
  updatePosition: number
  removePosition: number
}

/** `|pattern|update,delete|` as a function. Throws T2011, T2012, T2013. */
export function transform(parts: Transform): Callable {
  const made: Callable = (value) => {
    if (value === undefined) return undefined
    if (typeof parts.clone !== 'function') throw new Fault('T2013', parts.position)
    const result = call(parts.clone, [value], null)
    const matches = parts.pattern(result)
    if (matches === undefined) return result
    for (const match of Array.isArray(matches) ? matches : [matches]) change(match, parts)
    return result
  }
  made.signature = signature('<(oa):o>')
  return made
}

function change(match: unknown, { update, updatePosition, remove, removePosition }: Transform): void {
  const changes = update(match)
  if (changes !== undefined) {
    if (typeof changes !== 'object' || changes === null || Array.isArray(changes)) {
      throw new Fault('T2011', updatePosition, { value: changes })
    }
    for (const [name, value] of Object.entries(changes)) {
      // A list has no members by name.
      if (!Array.isArray(match) || /^\d+$/.test(name)) put(match as object, name, value)
    }
  }
  const removed = remove?.(match)
  if (removed === undefined) return
  const list = Array.isArray(removed) ? removed : [removed]
  if (!list.every((name) => typeof name === 'string')) throw new Fault('T2012', removePosition, { value: removed })
  if (typeof match !== 'object' || match === null) return
  for (const name of list) delete (match as Record<string, unknown>)[name]
}
