import { Fault } from './fault.ts'
import { spend } from './limits.ts'
import { collapse, extend, isSequence, lookup, type Sequence, sequence } from './sequence.ts'

/*
 * Between two steps of a path the items travel loosely: undefined is none, a list is its items, anything else is the
 * one item. A list that is itself one item (an array constructor in a path) travels inside another list.
 */

type Step = (item: unknown) => unknown

/** What a step made of one item, as input of the next step. */
export function items(result: unknown): unknown {
  return Array.isArray(result) && (result as Sequence).cons ? [result] : result
}

/** The first step of a path: the context itself, or each item of a context that is a list. */
export function start(context: unknown, step: Step): unknown {
  return Array.isArray(context) ? each(context, step) : items(step(context))
}

/** What is left of a list at the start of a path, as the library walks it: by its length, which one left item has not. */
export function walked(left: unknown): unknown[] {
  if (Array.isArray(left)) return left
  return typeof left === 'string' ? left.split('') : []
}

/** A step between others. */
export function each(input: unknown, step: Step): unknown {
  if (!Array.isArray(input)) return input === undefined ? undefined : items(step(input))
  return flatten(results(input, step))
}

/** The first step of a path of one step. */
export function only(context: unknown, step: Step, keep: boolean): unknown {
  return Array.isArray(context) ? last(context, step, keep) : one(step(context), keep)
}

/** The last step of a path, and the path's value. */
export function last(input: unknown, step: Step, keep: boolean): unknown {
  if (!Array.isArray(input)) return input === undefined ? undefined : one(step(input), keep)
  const made = results(input, step)
  return made.length === 1 ? one(made[0], keep) : collapse(sequence(flatten(made)), keep)
}

/** The value of a path whose last step gave this one result: a plain list stays as it is. */
export function one(result: unknown, keep: boolean): unknown {
  if (!Array.isArray(result)) return keep && result !== undefined ? kept([result]) : result
  if (isSequence(result)) return collapse(sequence(result.slice()), keep)
  return keep && (result as Sequence).cons ? kept([result]) : result
}

function kept(list: unknown[]): Sequence {
  const made = sequence(list)
  made.keepSingleton = true
  return made
}

function results(input: unknown[], step: Step): unknown[] {
  spend(input.length)
  const made: unknown[] = []
  for (const item of input) {
    const result = step(item)
    if (result !== undefined) made.push(result)
  }
  return made
}

function flatten(made: unknown[]): unknown[] {
  const flat: unknown[] = []
  for (const result of made) {
    if (Array.isArray(result) && !(result as Sequence).cons) extend(flat, result)
    else flat.push(result)
  }
  return flat
}

/** A run of plain names from the name at `index` on, where the short way met a list or nothing. */
export function names(input: unknown, path: readonly string[], index: number, ends: boolean, keep: boolean): unknown {
  let value = index > 0 ? items(input) : input
  for (let at = index; at < path.length; at++) {
    if (value === undefined && at > 0) return undefined
    const name = path[at] as string
    const step = (item: unknown): unknown => collapse(lookup(item, name))
    const final = ends && at === path.length - 1
    if (at === 0) value = final ? only(value, step, keep) : start(value, step)
    else value = final ? last(value, step, keep) : each(value, step)
  }
  return value
}

/** `value[index]`: a list that may be empty. */
export function at(value: unknown, index: number): unknown[] {
  const input = Array.isArray(value) ? value : [value]
  const item = input[index < 0 ? input.length + index : index]
  if (item === undefined) return sequence()
  return Array.isArray(item) ? item : sequence([item])
}

/** `value[test]`: numbers choose by position, anything else by truth. */
export function filter(value: unknown, test: Step, holds: (value: unknown) => boolean | undefined): unknown[] {
  const input = Array.isArray(value) ? value : [value]
  const chosen = sequence()
  spend(input.length)
  for (let index = 0; index < input.length; index++) {
    const item = input[index]
    const result = test(item)
    if (result === true) chosen.push(item)
    else if (result === false || result === undefined) continue
    else {
      const positions = numbers(result)
      if (positions === undefined) {
        if (holds(result)) chosen.push(item)
      } else {
        for (const position of positions) {
          const floor = Math.floor(position)
          if ((floor < 0 ? input.length + floor : floor) === index) chosen.push(item)
        }
      }
    }
  }
  return chosen
}

function numbers(result: unknown): number[] | undefined {
  if (typeof result === 'number') return Number.isNaN(result) ? undefined : [finite(result)]
  if (!Array.isArray(result)) return undefined
  spend(result.length)
  return result.every((item) => typeof item === 'number' && !Number.isNaN(item)) ? result.map(finite) : undefined
}

function finite(value: number): number {
  if (!Number.isFinite(value)) throw new Fault('D1001', undefined, { value })
  return value
}
