import { EvaluationError } from './evaluation-error.ts'
import { spend } from './limits.ts'
import { append, setMember } from './sequence.ts'

type Of = (item: unknown) => unknown

/** The context of the members of an object constructor with constant keys: the items of a list as one value. */
export function grouped(context: unknown): unknown {
  if (!Array.isArray(context)) return context
  return context.reduce((data, item) => append(data, item), undefined)
}

/** Items grouped into an object by computed keys. Throws T1003, D1009, D1013. */
export function group(items: unknown, pairs: readonly (readonly [Of, Of])[], position: number): object {
  const [first] = pairs
  if (first && pairs.length === 1 && !Array.isArray(items)) return single(items, first, position)
  const input = Array.isArray(items) ? items : [items]
  const groups: Record<string, { data: unknown; pair: number }> = Object.create(null)
  for (const item of input.length === 0 ? [undefined] : input) {
    spend(pairs.length)
    for (let pair = 0; pair < pairs.length; pair++) {
      const key = groupKey(pairs[pair]?.[0](item), position)
      if (key === undefined) continue
      const known = groups[key]
      if (known === undefined) groups[key] = { data: item, pair }
      else if (known.pair !== pair) throw new EvaluationError('D1009', position, { value: key })
      else known.data = append(known.data, item)
    }
  }
  const result = {}
  for (const [key, { data, pair }] of Object.entries(groups)) {
    const value = pairs[pair]?.[1](data)
    if (value !== undefined) setMember(result, key, value)
  }
  return result
}

/** Groups one item under one key: nearly all objects with a computed key. */
function single(item: unknown, [keyOf, of]: readonly [Of, Of], position: number): object {
  spend(1)
  const result = {}
  const key = groupKey(keyOf(item), position)
  const value = key === undefined ? undefined : of(item)
  if (key !== undefined && value !== undefined) setMember(result, key, value)
  return result
}

/** A computed key: a string or undefined. Throws T1003, D1013. */
export function groupKey(key: unknown, position: number): string | undefined {
  if (key === undefined) return undefined
  if (typeof key !== 'string') throw new EvaluationError('T1003', position, { value: key })
  if (key === '_jsonata_lambda' || key === '_jsonata_function')
    throw new EvaluationError('D1013', position, { value: key })
  return key
}
