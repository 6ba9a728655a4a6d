import { Fault } from './fault.ts'
import { spend } from './limits.ts'
import { isNumeric } from './operators.ts'
import { put, type Sequence } from './sequence.ts'

/** A deep copy as `$string` and back would make it; the objects and lists made are added to `made`. Throws D1001. */
export function copy(value: unknown, made?: Set<object>): unknown {
  const isWrapped = Array.isArray(value) && (value as Sequence).outerWrapper
  return copied(isWrapped ? value[0] : value, made)
}

function copied(value: unknown, made: Set<object> | undefined): unknown {
  if (typeof value === 'string') return value
  spend(1)
  if (typeof value === 'number') return jsonNumber(value)
  // A function stands in JSON as an empty text.
  if (typeof value === 'function') return ''
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    spend(value.length >> 3)
    const list = value.map((item) => copied(item, made) ?? null)
    made?.add(list)
    return list
  }
  const record = {}
  for (const [name, member] of Object.entries(value)) {
    if (member !== undefined) put(record, name, copied(member, made))
  }
  made?.add(record)
  return record
}

/** A number with at most 15 digits. */
function jsonNumber(value: number): number | null {
  if (Number.isNaN(value)) return null
  if (!isNumeric(value)) throw new Fault('D1001', undefined, { value })
  return Number.isInteger(value) ? value + 0 : Number(value.toPrecision(15))
}
