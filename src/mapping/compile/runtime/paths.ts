import { EvaluationError } from './evaluation-error.ts'
import { spend } from './limits.ts'
import { boolean } from './operators.ts'
import { collapse, extend, isSequence, lookup, type Sequence, sequence } from './sequence.ts'

/*
 * Between two steps of a path, undefined stands for no items, a list for its items, and anything else for a single
 * item. A list that is a single item itself (an array constructor in a path) is wrapped in another list.
 */

type Step = (item: unknown) => unknown

/** The result of a step for one item, as input of the next step. */
export function items(result: unknown): unknown {
  return Array.isArray(result) && (result as Sequence).cons ? [result] : result
}

/** The first step of a path: the context itself, or each item of a context that is a list. */
export function firstStep(context: unknown, step: Step): unknown {
  return Array.isArray(context) ? innerStep(context, step) : items(step(context))
}

/** A filtered array constructor at the start of a path, as the library iterates over it: by its length. */
export function elements(left: unknown): unknown[] {
  if (Array.isArray(left)) return left
  return typeof left === 'string' ? left.split('') : []
}

/** Runs a step that is neither first nor last. */
export function innerStep(input: unknown, step: Step): unknown {
  if (!Array.isArray(input)) return input === undefined ? undefined : items(step(input))
  if (input.length === 1) {
    spend(1)
    return items(step(input[0]))
  }
  return flatten(results(input, step))
}

/** The only step of a path. */
export function onlyStep(context: unknown, step: Step, keep: boolean): unknown {
  return Array.isArray(context) ? lastStep(context, step, keep) : pathResult(step(context), keep)
}

/** Runs the last step of a path, and returns the path's value. */
export function lastStep(input: unknown, step: Step, keep: boolean): unknown {
  if (!Array.isArray(input)) return input === undefined ? undefined : pathResult(step(input), keep)
  if (input.length === 1) {
    spend(1)
    return pathResult(step(input[0]), keep)
  }
  return pathResultOfAll(results(input, step), keep)
}

/** Returns the value of a path whose last step had these results. */
function pathResultOfAll(values: unknown[], keep: boolean): unknown {
  return values.length === 1 ? pathResult(values[0], keep) : collapse(sequence(flatten(values)), keep)
}

/** Returns the value of a path whose last step had this single result. */
export function pathResult(result: unknown, keep: boolean): unknown {
  if (!Array.isArray(result)) return keep && result !== undefined ? keptList([result]) : result
  if (isSequence(result)) return collapse(sequence(result.slice()), keep)
  return keep && (result as Sequence).cons ? keptList([result]) : result
}

function keptList(list: unknown[]): Sequence {
  const marked = sequence(list)
  marked.keepSingleton = true
  return marked
}

function results(input: unknown[], step: Step): unknown[] {
  spend(input.length)
  const values: unknown[] = []
  for (const item of input) {
    const result = step(item)
    if (result !== undefined) values.push(result)
  }
  return values
}

function flatten(values: unknown[]): unknown[] {
  if (!values.some((value) => Array.isArray(value) && !(value as Sequence).cons)) return values
  const flat: unknown[] = []
  for (const result of values) {
    if (Array.isArray(result) && !(result as Sequence).cons) extend(flat, result)
    else flat.push(result)
  }
  return flat
}

/** Continues an accessor at `index`, where it met something other than an object. */
export function readNames(
  input: unknown,
  path: readonly string[],
  index: number,
  ends: boolean,
  keep: boolean,
): unknown {
  let value = index > 0 ? items(input) : input
  for (let at = index; at < path.length; at++) {
    if (value === undefined) return undefined
    const name = path[at] as string
    const isList = Array.isArray(value) && value.length !== 1
    const found = isList
      ? members(value as unknown[], name)
      : collapse(lookup(Array.isArray(value) ? value[0] : value, name))
    if (!ends || at < path.length - 1) value = isList ? flatten(found as unknown[]) : items(found)
    else value = isList ? pathResultOfAll(found as unknown[], keep) : pathResult(found, keep)
  }
  return value
}

/** The values of a name in the items of a list. */
function members(list: unknown[], name: string): unknown[] {
  spend(list.length)
  const values: unknown[] = []
  for (const item of list) {
    const value = collapse(lookup(item, name))
    if (value !== undefined) values.push(value)
  }
  return values
}

/** `value[index]`, as a sequence. */
export function at(value: unknown, index: number): unknown[] {
  const found = item(value, index)
  if (found === undefined) return sequence()
  return Array.isArray(found) ? found : sequence([found])
}

/** `value[index]`: an item, or the items of a list in a list. */
export function item(value: unknown, index: number): unknown {
  if (!Array.isArray(value)) return index === 0 || index === -1 ? value : undefined
  return value[index < 0 ? value.length + index : index]
}

/** `value[test]`, as a sequence: numbers select by index, anything else by truth. */
export function filter(value: unknown, test: Step): unknown[] {
  return sequence(selectItems(value, test) ?? [])
}

/** `value[test]`: an item, or a sequence of items. */
export function select(value: unknown, test: Step): unknown {
  const found = selectItems(value, test)
  if (found === undefined) return undefined
  const [first] = found
  return found.length === 1 && first !== undefined && !Array.isArray(first) ? first : sequence(found)
}

/** The items of a value that a predicate holds for; undefined if there are none. */
function selectItems(value: unknown, test: Step): unknown[] | undefined {
  const input = Array.isArray(value) ? value : [value]
  spend(input.length)
  let found: unknown[] | undefined
  for (let index = 0; index < input.length; index++) {
    const item = input[index]
    const result = test(item)
    if (result === false || result === undefined) continue
    const count = result === true ? 1 : times(result, index, input.length)
    for (let each = 0; each < count; each++) {
      found ??= []
      found.push(item)
    }
  }
  return found
}

/** Returns how often an item is chosen: as often as a list of numbers contains its index. */
function times(result: unknown, index: number, length: number): number {
  const positions = numbers(result)
  if (positions === undefined) return boolean(result) ? 1 : 0
  return positions.filter((position) => {
    const floor = Math.floor(position)
    return (floor < 0 ? length + floor : floor) === index
  }).length
}

function numbers(result: unknown): number[] | undefined {
  if (typeof result === 'number') return Number.isNaN(result) ? undefined : [finite(result)]
  if (!Array.isArray(result)) return undefined
  spend(result.length)
  return result.every((item) => typeof item === 'number' && !Number.isNaN(item)) ? result.map(finite) : undefined
}

function finite(value: number): number {
  if (!Number.isFinite(value)) throw new EvaluationError('D1001', undefined, { value })
  return value
}
