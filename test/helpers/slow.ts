import { describe, test } from 'vitest'

/**
 * The options of a test or suite that only the slow suite runs. `test.concurrent` writes its flag into the options it is given: pass it a
 * copy, or every later slow test of the worker would run concurrently.
 */
export const slow = Object.freeze({ tags: 'slow' })

type Each<T> = (name: string, run: (...one: T extends readonly unknown[] ? T : [T]) => void | Promise<void>) => void

/** Does what `describe.each` does, with some of the cases in the slow suite. */
export function describeEach<const T>(
  cases: readonly T[],
  { slowIf }: { slowIf: (one: T, index: number) => boolean },
): Each<T> {
  return (name, run) => {
    describe.each(cases.filter((one, index) => !slowIf(one, index)) as never[])(name, run as never)
    describe.each(cases.filter(slowIf) as never[])(name, slow, run as never)
  }
}

/** Does what `test.each` does, with some of the cases in the slow suite. */
export function testEach<const T>(
  cases: readonly T[],
  { slowIf }: { slowIf: (one: T, index: number) => boolean },
): Each<T> {
  return (name, run) => {
    test.each(cases.filter((one, index) => !slowIf(one, index)) as never[])(name, run as never)
    test.each(cases.filter(slowIf) as never[])(name, slow, run as never)
  }
}

/** Tests a property with few values in the fast suite and with many in the slow one. */
export function testInRuns(
  name: string,
  runs: { fast: number; slow: number },
  run: (numRuns: number) => void | Promise<void>,
): void {
  test(name, () => run(runs.fast))
  test(`${name}, ${runs.slow} times`, slow, () => run(runs.slow))
}
