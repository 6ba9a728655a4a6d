import { Fault } from './fault.ts'

/** Bounds of one run. A mapping is data from a file, so nothing in it may hold the process. */
export type Bounds = {
  /** Nested calls of functions written in the mapping. */
  depth: number
  /** Items visited and functions called, weighted by size where one call does more than constant work. */
  steps: number
  /** Items in one list. */
  sequence: number
  /** Characters in one text: above the largest base64 body a provider takes. */
  text: number
}

/** Far above what a mapping needs, low enough that a hostile one ends within about a second. */
export const defaultBounds: Readonly<Bounds> = { depth: 500, steps: 2_000_000, sequence: 100_000, text: 1 << 27 }

/** What is left of the bounds in the run under way: runs are synchronous, so there is only ever one. */
export const budget = { ...defaultBounds, now: 0 }

/** Starts a run with full bounds. */
export function begin(bounds: Readonly<Bounds>): void {
  budget.depth = bounds.depth
  budget.steps = bounds.steps
  budget.sequence = bounds.sequence
  budget.text = bounds.text
  budget.now = 0
}

/** Counts work against the bound on steps. Throws D1012. */
export function spend(steps: number): void {
  budget.steps -= steps
  if (budget.steps < 0) throw new Fault('D1012')
}

/** Counts a value for work that visits all of it: a part that stands in many places counts at each of them. */
export function weigh(value: unknown): void {
  if (typeof value === 'string') spend(1 + (value.length >> 8))
  else if (typeof value === 'object' && value !== null) {
    spend(1)
    for (const member of Object.values(value))
      if (typeof member === 'object' || typeof member === 'string') weigh(member)
  }
}

/** Refuses a list that would be longer than the bound. Throws D2015. */
export function boundedSize(size: number): number {
  if (size > budget.sequence) throw new Fault('D2015', undefined, { value: budget.sequence })
  return size
}

/** Refuses a text that would be longer than the bound. Throws D1014. */
export function boundedText(length: number): void {
  if (length > budget.text) throw new Fault('D1014', undefined, { value: budget.text })
}

/** The time of the run in milliseconds: the same for every `$now()` and `$millis()` of one run. */
export function runTime(): number {
  if (budget.now === 0) budget.now = Date.now()
  return budget.now
}
