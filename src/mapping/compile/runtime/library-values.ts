import { type Callable, native } from './callables.ts'
import { copy } from './copy.ts'
import { EvaluationError } from './evaluation-error.ts'
import { spend } from './limits.ts'
import { boolean, deepEqual, isNumeric } from './operators.ts'
import { append, extend, isRecord, isSequence, lookup, sequence, setMember } from './sequence.ts'

/** Functions on values, objects and lists. */
export const valueFunctions: Readonly<Record<string, Callable>> = {
  boolean: native((value: unknown) => boolean(value), '<x-:b>'),
  not: native((value: unknown) => (value === undefined ? undefined : !boolean(value)), '<x-:b>'),
  exists: native((value: unknown) => value !== undefined, '<x:b>'),
  type: native(type, '<x:s>'),
  count: native((list?: unknown[]) => list?.length ?? 0, '<a:n>'),
  append: native((left: unknown, right: unknown) => append(left, right), '<xx:a>'),
  lookup: native((value: unknown, name: string) => lookup(value, name), '<x-s:x>'),
  keys: native((value: unknown) => keys(value), '<x-:a<s>>'),
  spread: native((value: unknown) => spread(value), '<x-:a<o>>'),
  merge: native(merge, '<a<o>:o>'),
  distinct: native(distinct, '<x:x>'),
  clone: native((value: unknown) => copy(value), '<(oa)-:o>'),
  error: native((message?: string) => fail('D3137', message || '$error() function evaluated'), '<s?:x>'),
  assert: native((holds?: boolean, message?: string) => {
    if (!holds) fail('D3141', message || '$assert() statement failed')
  }, '<bs?:x>'),
}

function fail(code: string, message: string): never {
  throw new EvaluationError(code, undefined, { message })
}

/** The name of a value's type. */
export function type(value: unknown): string | undefined {
  if (value === undefined) return undefined
  if (value === null) return 'null'
  if (isNumeric(value)) return 'number'
  if (Array.isArray(value)) return 'array'
  return typeof value === 'number' ? 'object' : typeof value
}

function keys(value: unknown): unknown[] {
  if (isRecord(value)) return sequence(Object.keys(value))
  if (!Array.isArray(value)) return sequence()
  const found: Record<string, unknown> = Object.create(null)
  for (const item of value) {
    spend(1)
    for (const name of keys(item)) found[String(name)] = true
  }
  return sequence(Object.keys(found))
}

function spread(value: unknown): unknown {
  if (Array.isArray(value)) {
    if (value.length === 0) return sequence()
    const list: unknown[] = []
    for (const item of value) extend(list, spread(item))
    return list
  }
  if (!isRecord(value)) return value
  return sequence(
    Object.entries(value).map(([name, member]) => {
      const single = {}
      setMember(single, name, member)
      return single
    }),
  )
}

function merge(list?: unknown[]): unknown {
  if (list === undefined) return undefined
  const merged = {}
  for (const item of list) {
    spend(1)
    if (isRecord(item)) for (const name of Object.keys(item)) setMember(merged, name, item[name])
  }
  return merged
}

function distinct(list: unknown): unknown {
  if (!Array.isArray(list) || list.length <= 1) return list
  const found: unknown[] = isSequence(list) ? sequence() : []
  for (const item of list) {
    spend(1 + (found.length >> 3))
    if (!found.some((known) => deepEqual(item, known))) found.push(item)
  }
  return found
}
