import { group } from './grouping.ts'
import { mergeSort } from './library-functions.ts'
import { spend } from './limits.ts'
import { filter as filterItems } from './paths.ts'
import { append, collapse, listed, sequence } from './sequence.ts'

/** An item of a path (`@`) with what the steps before bound to names. */
export type Tuple = { '@': unknown; [name: string]: unknown }

/** Tuples between two steps; `tupleStream` marks one that a nested path hands to the path around it. */
export type Stream = Tuple[] & { tupleStream?: boolean }

type Of = (item: unknown, tuple: Tuple) => unknown

/** What a step binds, by name: the item and keeping the context, the position, the context as parent. */
export type Bound = { focus?: string; index?: string; ancestor?: string }

/** Items at the beginning of a stream. A path that ends before its first binding is no stream: nothing is marked. */
export function stream(items: unknown, first: boolean): Stream {
  const list = first && !Array.isArray(items) ? [items] : listed(items)
  return !first && list.length === 0 ? [] : marked(list.map((item) => tuple({ '@': item })))
}

function marked(tuples: Tuple[]): Stream {
  const made = tuples as Stream
  made.tupleStream = true
  return made
}

/** Names may be any text, so a tuple inherits nothing. */
function tuple(...parts: object[]): Tuple {
  return Object.assign(Object.create(null), ...parts)
}

/** A step: each of its results with the names of the tuple it came from. */
export function tupleStep(tuples: Stream, step: Of, { focus, index, ancestor }: Bound): Stream {
  if (!tuples.tupleStream) return tuples
  const made: Tuple[] = []
  spend(tuples.length)
  for (const from of tuples) {
    const result = step(from['@'], from)
    if (result === undefined) continue
    const results = (Array.isArray(result) ? result : [result]) as Stream
    spend(results.length)
    results.forEach((item: unknown, position) => {
      if (results.tupleStream) {
        made.push(tuple(from, item as Tuple))
        return
      }
      const next = tuple(from)
      if (focus === undefined) next['@'] = item
      else next[focus] = item
      if (index !== undefined) next[index] = position
      if (ancestor !== undefined) next[ancestor] = from['@']
      made.push(next)
    })
  }
  return marked(made)
}

/** `[index]` on a stream. */
export function tupleAt(tuples: Stream, index: number): Stream {
  if (!tuples.tupleStream) return tuples
  const found = tuples[index < 0 ? tuples.length + index : index]
  return marked(found === undefined ? [] : [found])
}

/** `[test]` on a stream. */
export function tupleFilter(tuples: Stream, test: Of, holds: (value: unknown) => boolean | undefined): Stream {
  if (!tuples.tupleStream) return tuples
  return marked(filterItems(tuples, (each) => test((each as Tuple)['@'], each as Tuple), holds) as Tuple[])
}

/** `#$name` after predicates. */
export function tupleIndex(tuples: Stream, name: string): Stream {
  tuples.forEach((each, position) => {
    each[name] = position
  })
  return tuples
}

/** Tuples in the order of terms. */
export function tupleSort(tuples: Stream, swaps: (left: Tuple, right: Tuple) => boolean): Stream {
  return tuples.tupleStream ? marked(mergeSort([...tuples], swaps)) : tuples
}

/** The path's value at the end of a stream. */
export function tupleItems(tuples: Stream, keep: boolean): unknown {
  return collapse(sequence(tuples.map((each) => each['@'])), keep)
}

/** Tuples grouped by computed keys: a group's names hold what its tuples bound, joined. */
export function tupleGroup(tuples: Stream, pairs: readonly (readonly [Of, Of])[], position: number): object {
  if (tuples.length === 0 && tuples.tupleStream) return {}
  const ofTuples = pairs.map(
    ([key, value]) =>
      [
        (each: unknown) => key((each as Tuple | undefined)?.['@'], (each ?? none) as Tuple),
        (data: unknown) => {
          const reduced = reduce((data ?? none) as Tuple | Tuple[])
          return value(reduced['@'], reduced)
        },
      ] as const,
  )
  return group(tuples, ofTuples, position)
}

const none = Object.freeze(tuple({ '@': undefined }))

function reduce(tuples: Tuple | Tuple[]): Tuple {
  if (!Array.isArray(tuples)) return tuples
  const made = tuple(tuples[0] as Tuple)
  for (const each of tuples.slice(1)) {
    for (const name of Object.keys(each)) made[name] = append(made[name], each[name])
  }
  return made
}
