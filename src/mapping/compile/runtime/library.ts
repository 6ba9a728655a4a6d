import { type Callable, native } from './callables.ts'
import { deepFreeze } from './deep-freeze.ts'
import { borrowed, guarded } from './library-borrowed.ts'
import { higherOrderFunctions } from './library-functions.ts'
import { textFunctions } from './library-text.ts'
import { valueFunctions } from './library-values.ts'
import { weigh } from './limits.ts'

/** The functions that mappings may name. */
export type Library = Readonly<Record<string, Callable>>

/** JSONata's functions and those of the kernel, for all mappings of the process: nothing can change them. `$eval` is not one: it would make a mapping of a text at run time. */
export function libraryWith(
  functions: Readonly<Record<string, { signature: string; run: (...args: never[]) => unknown }>>,
): Library {
  const own = Object.entries(functions).map(([name, { run, signature }]) => [name, native(weighed(run), signature)])
  return deepFreeze(
    Object.assign(
      Object.create(null),
      borrowed,
      guarded,
      textFunctions,
      valueFunctions,
      higherOrderFunctions,
      Object.fromEntries(own),
    ),
  )
}

/** The kernel's functions work in one go: what they are given is counted before. */
function weighed(run: (...args: never[]) => unknown): (...args: unknown[]) => unknown {
  return (...args) => {
    for (const argument of args) weigh(argument)
    return run(...(args as never[]))
  }
}
