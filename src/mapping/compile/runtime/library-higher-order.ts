import { apply, arity, type Callable, native } from './callables.ts'
import { EvaluationError } from './evaluation-error.ts'
import { spend } from './limits.ts'
import { boolean, isNumeric } from './operators.ts'
import { sequence, setMember } from './sequence.ts'

/** Higher-order functions. */
export const higherOrderFunctions: Readonly<Record<string, Callable>> = {
  map: native(map, '<af>'),
  filter: native(filter, '<af>'),
  single: native(single, '<af?>'),
  reduce: native(reduce, '<afj?:j>'),
  each: native(each, '<o-f:a>'),
  sift: native(sift, '<o-f?:o>'),
  sort: native(sort, '<af?:a>'),
}

/** Calls a function with as many of item, index and list as it takes. */
function visit(target: unknown, count: number, item: unknown, position: unknown, whole: unknown): unknown {
  if (count >= 3) return apply(target, [item, position, whole])
  return apply(target, count === 2 ? [item, position] : [item])
}

function map(list: unknown[] | undefined, target: unknown): unknown {
  if (list === undefined) return undefined
  const collected = sequence()
  const count = arity(target)
  for (let index = 0; index < list.length; index++) {
    const result = visit(target, count, list[index], index, list)
    if (result !== undefined) collected.push(result)
  }
  return collected
}

function filter(list: unknown[] | undefined, target: unknown): unknown {
  if (list === undefined) return undefined
  const count = arity(target)
  return sequence(list.filter((item, index) => boolean(visit(target, count, item, index, list))))
}

function single(list: unknown[] | undefined, target: unknown): unknown {
  if (list === undefined) return undefined
  const count = target === undefined ? 0 : arity(target)
  let found: { item: unknown } | undefined
  for (let index = 0; index < list.length; index++) {
    spend(1)
    const item = list[index]
    if (target !== undefined && !boolean(visit(target, count, item, index, list))) continue
    if (found) throw new EvaluationError('D3138')
    found = { item }
  }
  if (!found) throw new EvaluationError('D3139')
  return found.item
}

function reduce(list: unknown[] | undefined, target: unknown, initial: unknown): unknown {
  if (list === undefined) return undefined
  const count = arity(target)
  if (count < 2) throw new EvaluationError('D3050')
  const whole = list.length > 0 && initial === undefined
  let result = whole ? list[0] : initial
  for (let index = whole ? 1 : 0; index < list.length; index++) {
    result = apply(target, [result, list[index], index, list].slice(0, Math.min(count, 4)))
  }
  return result
}

function each(record: object | undefined, target: unknown): unknown {
  const collected = sequence()
  const count = arity(target)
  for (const [name, member] of Object.entries(record ?? {})) {
    const result = visit(target, count, member, name, record)
    if (result !== undefined) collected.push(result)
  }
  return collected
}

function sift(record: object | undefined, target: unknown): unknown {
  const kept = {}
  const count = typeof target === 'function' ? arity(target) : 1
  for (const [name, member] of Object.entries(record ?? {})) {
    if (boolean(visit(target, count, member, name, record))) setMember(kept, name, member)
  }
  return Object.keys(kept).length > 0 ? kept : undefined
}

function sort(list: unknown[] | undefined, target: unknown): unknown {
  if (list === undefined || list.length <= 1) return list
  if (target !== undefined) return mergeSort(list, (left, right) => Boolean(apply(target, [left, right])))
  if (!list.every((item) => isNumeric(item)) && !list.every((item) => typeof item === 'string')) {
    throw new EvaluationError('D3070')
  }
  return mergeSort(list as string[], (left, right) => (left as string) > (right as string))
}

/** A stable sort that compares the same pairs in the same order as the library, so that errors agree. */
export function mergeSort<T>(list: T[], swaps: (left: T, right: T) => boolean): T[] {
  if (list.length <= 1) return list
  spend(list.length)
  const middle = Math.floor(list.length / 2)
  const left = mergeSort(list.slice(0, middle), swaps)
  const right = mergeSort(list.slice(middle), swaps)
  const merged: T[] = []
  let l = 0
  let r = 0
  while (l < left.length && r < right.length) {
    if (swaps(left[l] as T, right[r] as T)) merged.push(right[r++] as T)
    else merged.push(left[l++] as T)
  }
  while (l < left.length) merged.push(left[l++] as T)
  while (r < right.length) merged.push(right[r++] as T)
  return merged
}
