import { EvaluationError } from './evaluation-error.ts'

/** Limits of one run. A mapping comes from a file, so it must not be able to block the process. */
export type Bounds = {
  /** Nested function calls. */
  depth: number
  /** Items visited and functions called, weighted by size where a call does more than constant work. */
  steps: number
  /** Items in one list. */
  sequence: number
  /** Characters in one string, and in all strings of a result: more than the largest body that a provider accepts. */
  text: number
}

/** Limits far above the needs of a mapping, but low enough that a hostile one ends within about a second. */
export const defaultBounds: Readonly<Bounds> = { depth: 500, steps: 2_000_000, sequence: 100_000, text: 1 << 27 }

/** The remaining budget of the current run. Runs are synchronous, so there is only one at a time. */
export const budget = { ...defaultBounds, now: 0 }

/** Resets the budget for a new run. */
export function startRun(bounds: Readonly<Bounds>): void {
  budget.depth = bounds.depth
  budget.steps = bounds.steps
  budget.sequence = bounds.sequence
  budget.text = bounds.text
  budget.now = 0
}

/** Charges steps to the budget. Throws D1012. */
export function spend(steps: number): void {
  budget.steps -= steps
  if (budget.steps < 0) throw new EvaluationError('D1012')
}

/** Charges for visiting all of a value; shared parts count wherever they occur. Throws D1012. */
export function spendSize(value: unknown): void {
  if (typeof value === 'string') spend(1 + (value.length >> 8))
  else if (typeof value === 'object' && value !== null) {
    spend(1)
    if (Array.isArray(value)) for (const item of value) spendSize(item)
    // Unlike Object.values, this allocates nothing; Object.prototype has no enumerable members.
    else for (const name in value) spendSize((value as Record<string, unknown>)[name])
  }
}

/** Checks the length of a list. Throws D2015. */
export function boundedSize(size: number): number {
  if (size > budget.sequence) throw new EvaluationError('D2015', undefined, { value: budget.sequence })
  return size
}

/** Checks the length of a string. Throws D1014. */
export function boundedText(length: number): void {
  if (length > budget.text) throw new EvaluationError('D1014', undefined, { value: budget.text })
}

/** The time of the run in milliseconds: the same for every `$now()` and `$millis()` of one run. */
export function runTime(): number {
  if (budget.now === 0) budget.now = Date.now()
  return budget.now
}
