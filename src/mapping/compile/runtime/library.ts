import { type Callable, native } from './callables.ts'
import { borrowed, guarded } from './library-borrowed.ts'
import { higherOrderFunctions } from './library-functions.ts'
import { textFunctions } from './library-text.ts'
import { valueFunctions } from './library-values.ts'

/** The functions that mappings may name. */
export type Library = Readonly<Record<string, Callable>>

/** JSONata's functions and those of the kernel. `$eval` is not one: it would make a mapping of a text at run time. */
export function libraryWith(
  functions: Readonly<Record<string, { signature: string; run: (...args: never[]) => unknown }>>,
): Library {
  const own = Object.entries(functions).map(([name, { run, signature }]) => [name, native(run, signature)])
  return Object.assign(
    Object.create(null),
    borrowed,
    guarded,
    textFunctions,
    valueFunctions,
    higherOrderFunctions,
    Object.fromEntries(own),
  )
}
