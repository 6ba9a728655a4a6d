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
    if (parts.whole && isPlainRecord(source)) return changed({ ...source }, parts)
    // Copied in any case, because a mapping may redefine $clone; what is inside only where it might be changed.
    const copied = new Set<object>()
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
  const members = membersToSet(match, parts)
  if (members.length > 0 && !copied.has(match)) throw new EvaluationError('T2014', parts.position, { value: match })
  for (const [name, value] of members) {
    // JSONata sets no named members on a list.
    if (!Array.isArray(match) || /^\d+$/.test(name)) setMember(match as object, name, value)
  }
  const names = namesToRemove(match, parts)
  if (!names || typeof match !== 'object' || match === null) return
  if (!copied.has(match)) throw new EvaluationError('T2014', parts.position, { value: match })
  for (const name of names) Reflect.deleteProperty(match, name)
}

/** A copied record with its changes. One that members were deleted of would be a dictionary, which is slow to write as JSON. */
function changed(record: Record<string, unknown>, parts: Transform): Record<string, unknown> {
  for (const [name, value] of membersToSet(record, parts)) setMember(record, name, value)
  const names = namesToRemove(record, parts)?.filter((name) => Object.hasOwn(record, name)) ?? []
  if (names.length === 0) return record
  const left = {}
  for (const name in record) if (!names.includes(name)) setMember(left, name, record[name])
  return left
}

function membersToSet(match: unknown, parts: Transform): [string, unknown][] {
  const changes = parts.update(match)
  if (changes === undefined) return []
  if (typeof changes !== 'object' || changes === null || Array.isArray(changes)) {
    throw new EvaluationError('T2011', parts.updatePosition, { value: changes })
  }
  return Object.entries(changes)
}

function namesToRemove(match: unknown, parts: Transform): string[] | undefined {
  const removed = parts.remove?.(match)
  if (removed === undefined) return undefined
  const names = Array.isArray(removed) ? removed : [removed]
  if (!names.every((name) => typeof name === 'string')) {
    throw new EvaluationError('T2012', parts.removePosition, { value: removed })
  }
  return names
}
