import { Fault } from './fault.ts'
import { mergeSort } from './library-functions.ts'
import { spend } from './limits.ts'
import { append, put } from './sequence.ts'

type Of = (item: unknown) => unknown

/** The context of the values of an object constructor whose keys are constant: all items of a list as one. */
export function grouped(context: unknown): unknown {
  if (!Array.isArray(context)) return context
  return context.reduce((data, item) => append(data, item), undefined)
}

/** Items grouped into an object by computed keys. Throws T1003, D1009, D1013. */
export function group(items: unknown, pairs: readonly (readonly [Of, Of])[], position: number): object {
  const input = Array.isArray(items) ? items : [items]
  const groups: Record<string, { data: unknown; pair: number }> = Object.create(null)
  for (const item of input.length === 0 ? [undefined] : input) {
    spend(pairs.length)
    for (let pair = 0; pair < pairs.length; pair++) {
      const key = groupKey(pairs[pair]?.[0](item), position)
      if (key === undefined) continue
      const known = groups[key]
      if (known === undefined) groups[key] = { data: item, pair }
      else if (known.pair !== pair) throw new Fault('D1009', position, { value: key })
      else known.data = append(known.data, item)
    }
  }
  const made = {}
  for (const [key, { data, pair }] of Object.entries(groups)) {
    const value = pairs[pair]?.[1](data)
    if (value !== undefined) put(made, key, value)
  }
  return made
}

/** A key of an object: a text, or missing. Throws T1003, D1013. */
export function groupKey(key: unknown, position: number): string | undefined {
  if (key === undefined) return undefined
  if (typeof key !== 'string') throw new Fault('T1003', position, { value: key })
  if (key === '_jsonata_lambda' || key === '_jsonata_function') throw new Fault('D1013', position, { value: key })
  return key
}

/** Items in the order of terms. Throws T2007, T2008. */
export function orderBy(items: unknown, terms: readonly (readonly [Of, boolean])[], position: number): unknown {
  if (!Array.isArray(items) || items.length <= 1) return items
  return mergeSort(items, swapping(terms, position))
}

/** The order of tuples by terms that may use their names. */
export function tupleOrder(
  terms: readonly (readonly [(item: unknown, tuple: object) => unknown, boolean])[],
  position: number,
): (left: object, right: object) => boolean {
  const ofTuples = terms.map(
    ([term, descending]) =>
      [(tuple: unknown) => term((tuple as { '@': unknown })['@'], tuple as object), descending] as const,
  )
  return swapping(ofTuples, position)
}

function swapping(terms: readonly (readonly [Of, boolean])[], position: number) {
  return (left: unknown, right: unknown): boolean => {
    for (const [term, descending] of terms) {
      const order = compareTerms(term(left), term(right), descending, position)
      if (order !== 0) return order === 1
    }
    return false
  }
}

function compareTerms(left: unknown, right: unknown, descending: boolean, position: number): number {
  if (left === undefined) return right === undefined ? 0 : 1
  if (right === undefined) return -1
  if (!sortable(left) || !sortable(right)) throw new Fault('T2008', position, { value: sortable(left) ? right : left })
  if (typeof left !== typeof right) throw new Fault('T2007', position, { value: left, value2: right })
  if (left === right) return 0
  return left < right === descending ? 1 : -1
}

function sortable(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number'
}
