import { boundedSize, spend } from './limits.ts'

/**
 * A list with JSONata's flags: `sequence` marks a result of navigation (a single item stands for itself, none for
 * undefined), `keepSingleton` a sequence that stays a list, `cons` an array constructor in a path, `outerWrapper` the
 * wrapper of an input that is an array.
 */
export type Sequence = unknown[] & {
  sequence?: boolean
  keepSingleton?: boolean
  cons?: boolean
  outerWrapper?: boolean
}

/** Marks a fresh list as a sequence. */
export function sequence(items: unknown[] = []): Sequence {
  const marked = items as Sequence
  marked.sequence = true
  return marked
}

/** Checks whether a value is a sequence. */
export function isSequence(value: unknown): value is Sequence {
  return Array.isArray(value) && (value as Sequence).sequence === true
}

/** Checks whether a value is an object, not a list. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Collapses a sequence: an empty one to undefined, one of a single item to that item. */
export function collapse(value: unknown, keep = false): unknown {
  if (!isSequence(value)) return value
  if (keep) value.keepSingleton = true
  if (value.length > 1) return value
  if (value.length === 0) return undefined
  return value.keepSingleton ? value : value[0]
}

/** The value of `$`, without the wrapper of an input array. */
export function self(context: unknown): unknown {
  if (!Array.isArray(context)) return context
  return collapse((context as Sequence).outerWrapper ? context[0] : context)
}

/** The context of a run. */
export function rootContext(input: unknown): unknown {
  if (!Array.isArray(input)) return input
  const wrapper = sequence([input])
  wrapper.outerWrapper = true
  return wrapper
}

/** An own member of a value, or of each item of a list. */
export function lookup(value: unknown, name: string): unknown {
  if (Array.isArray(value)) {
    spend(value.length)
    const found = sequence()
    for (const item of value) {
      const member = lookup(item, name)
      if (Array.isArray(member)) for (const each of member) found.push(each)
      else if (member !== undefined) found.push(member)
    }
    return found
  }
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
  return (value as Record<string, unknown>)[name]
}

/** The value of a name as an expression. */
export function member(value: unknown, name: string, keep = false): unknown {
  return collapse(lookup(value, name), keep)
}

/** An own member whose name also exists on Object.prototype. */
export function ownMember(record: object, name: string): unknown {
  return Object.hasOwn(record, name) ? (record as Record<string, unknown>)[name] : undefined
}

/** Sets an own member, even for the name `__proto__`. */
export function setMember(record: object, name: string, value: unknown): void {
  if (name === '__proto__') {
    Object.defineProperty(record, name, { value, enumerable: true, configurable: true, writable: true })
  } else (record as Record<string, unknown>)[name] = value
}

/** A value as the items of an array constructor. */
export function list(value: unknown): unknown[] {
  return value === undefined ? [] : extend([], value)
}

/** Marks a list as an array constructor in a path. */
export function constructed(list: Sequence): Sequence {
  list.cons = true
  return list
}

/** The context as a list, for an array constructor at the start of a path. */
export function asList(context: unknown): unknown[] {
  return Array.isArray(context) ? context : sequence([context])
}

/** `$append`; undefined counts as no items. */
export function append(left: unknown, right: unknown): unknown {
  if (left === undefined) return right
  if (right === undefined) return left
  const joined = Array.isArray(left) ? left.slice() : [left]
  spend(joined.length >> 3)
  return extend(joined, right)
}

/** Adds a value to a new list; a list is flattened. */
export function extend(list: unknown[], value: unknown): unknown[] {
  if (Array.isArray(value)) {
    // Copying is cheaper than visiting.
    spend(1 + ((list.length + value.length) >> 3))
    boundedSize(list.length + value.length)
    for (let index = 0; index < value.length; index++) list.push(value[index])
  } else if (value !== undefined) {
    boundedSize(list.length + 1)
    list.push(value)
  }
  return list
}
