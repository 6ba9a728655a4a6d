import { EvaluationError } from './evaluation-error.ts'
import { spend } from './limits.ts'
import { isNumeric } from './operators.ts'
import { isRecord, type Sequence, setMember } from './sequence.ts'

/** A deep copy as by `$string` and JSON.parse; the new objects and lists are added to `copies`. Throws D1001. */
export function copy(value: unknown, copies?: Set<object>): unknown {
  const isWrapped = Array.isArray(value) && (value as Sequence).outerWrapper
  return copied(isWrapped ? value[0] : value, copies)
}

/** Checks whether a value is an object that `copy` would copy without any difference. */
export function isPlainRecord(value: unknown): value is Record<string, unknown> {
  return isRecord(value) && isPlain(value)
}

function isPlain(value: unknown): boolean {
  if (typeof value === 'string') return true
  spend(1)
  if (typeof value === 'number') return Object.is(value, jsonNumber(value))
  if (typeof value !== 'object' || value === null) return value === null || typeof value === 'boolean'
  if (Array.isArray(value)) {
    spend(value.length >> 3)
    return !isMarked(value) && value.every(isPlain)
  }
  // Unlike Object.values, this allocates nothing; Object.prototype has no enumerable members.
  for (const name in value) if (!isPlain((value as Record<string, unknown>)[name])) return false
  return true
}

function isMarked({ sequence, cons, keepSingleton, outerWrapper }: Sequence): boolean {
  return Boolean(sequence ?? cons ?? keepSingleton ?? outerWrapper)
}

function copied(value: unknown, copies: Set<object> | undefined): unknown {
  if (typeof value === 'string') return value
  spend(1)
  if (typeof value === 'number') return jsonNumber(value)
  // `$string` turns a function into an empty string.
  if (typeof value === 'function') return ''
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    spend(value.length >> 3)
    const list = value.map((item) => copied(item, copies) ?? null)
    copies?.add(list)
    return list
  }
  const record = {}
  for (const [name, member] of Object.entries(value)) {
    if (member !== undefined) setMember(record, name, copied(member, copies))
  }
  copies?.add(record)
  return record
}

/** A number with at most 15 digits. */
function jsonNumber(value: number): number | null {
  if (Number.isNaN(value)) return null
  if (!isNumeric(value)) throw new EvaluationError('D1001', undefined, { value })
  return Number.isInteger(value) ? value + 0 : Number(value.toPrecision(15))
}
