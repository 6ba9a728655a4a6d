import { setImmediate } from 'node:timers/promises'

/** Size of work that is done in one step. Characters or bytes. */
export const maxInOneStep = 256 * 1024

/** Checks whether work of this size, in characters or bytes, is so long that other work should run before it. */
export function isLong(size: number): boolean {
  return size > maxInOneStep
}

/** Yields to the event loop, so that other calls run. */
export function yieldToEventLoop(): Promise<void> {
  return setImmediate()
}

/** Function for long work in steps: called between them, it yields to the event loop when others may have waited for a few milliseconds. */
export type YieldToOthers = () => Promise<void>

/** Function for work that nobody waits behind: it yields nothing. */
export const neverYield: YieldToOthers = async () => {}

/** Counts from now, and from each turn that was given. */
export function yieldBetween(): YieldToOthers {
  let since = performance.now()
  return async () => {
    if (performance.now() - since < maxMs) return
    await yieldToEventLoop()
    since = performance.now()
  }
}

const maxMs = 3

/**
 * Yields the values one by one, as a stream of them. A generator that a function makes anew has tables of its own for each call, which V8
 * keeps, with all of the call that they refer to, until it collects what is old; this one is made once.
 */
export async function* yieldEach<Value>(values: readonly Value[]): AsyncGenerator<Value, void> {
  yield* values
}
