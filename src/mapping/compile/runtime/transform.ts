import { type Callable, call, signature } from './callables.ts'
import { copy, isPlainRecord } from './copy.ts'
import { EvaluationError } from './evaluation-error.ts'
import { valueFunctions } from './library-values.ts'
import { setMember } from './sequence.ts'

type Of = (item: unknown) => unknown

/** The parts of a transform; `clone` is the function named `$clone` where it stands, `whole` whether the pattern is `$`. */
export type Transform = {
  pattern: Of
  whole: boolean
  update: Of
  remove?: Of
  clone: unknown
  position: number
  updatePosition: number
  removePosition: number
}

/** `|pattern|update,delete|` as a function. Throws T2011, T2012, T2013, T2014. */
export function transform(parts: Transform): Callable {
  const callable: Callable = (value) => {
    if (value === undefined) return undefined
    if (typeof parts.clone !== 'function') throw new EvaluationError('T2013', parts.position)
    const source = parts.clone === valueFunctions.clone ? value : call(parts.clone, [value], null)
    // Copied in any case, because a mapping may redefine $clone; what is inside only where it might be changed.
    const copied = new Set<object>()
    if (parts.whole && isPlainRecord(source)) {
      const result = { ...source }
      change(result, copied.add(result), parts)
      return result
    }
    const result = copy(source, copied)
    const matches = parts.pattern(result)
    if (matches === undefined) return result
    for (const match of Array.isArray(matches) ? matches : [matches]) change(match, copied, parts)
    return result
  }
  callable.signature = signature('<(oa):o>')
  return callable
}

function change(match: unknown, copied: ReadonlySet<unknown>, parts: Transform): void {
  const changes = parts.update(match)
  if (changes !== undefined) {
    if (typeof changes !== 'object' || changes === null || Array.isArray(changes)) {
      throw new EvaluationError('T2011', parts.updatePosition, { value: changes })
    }
    const members = Object.entries(changes)
    if (members.length > 0 && !copied.has(match)) throw new EvaluationError('T2014', parts.position, { value: match })
    for (const [name, value] of members) {
      // JSONata sets no named members on a list.
      if (!Array.isArray(match) || /^\d+$/.test(name)) setMember(match as object, name, value)
    }
  }
  const removed = parts.remove?.(match)
  if (removed === undefined) return
  const names = Array.isArray(removed) ? removed : [removed]
  if (!names.every((name) => typeof name === 'string')) {
    throw new EvaluationError('T2012', parts.removePosition, { value: removed })
  }
  if (typeof match !== 'object' || match === null) return
  if (!copied.has(match)) throw new EvaluationError('T2014', parts.position, { value: match })
  for (const name of names) Reflect.deleteProperty(match, name)
}
