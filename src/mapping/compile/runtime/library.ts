import { type Callable, native } from './callables.ts'
import { deepFreeze } from './deep-freeze.ts'
import { higherOrderFunctions } from './library-higher-order.ts'
import { guardedFunctions, libraryFunctions, numberFunctions } from './library-native.ts'
import { stringFunctions } from './library-strings.ts'
import { valueFunctions } from './library-values.ts'
import { spendSize } from './limits.ts'

/** Functions by name. */
export type Library = Readonly<Record<string, Callable>>

/**
 * JSONata's functions and the given ones, deeply frozen because all mappings share them; one without a signature gets all arguments that
 * it is called with. `$eval` has to be interpreted.
 */
export function libraryWith(
  functions: Readonly<Record<string, { signature: string | undefined; run: (...args: never[]) => unknown }>>,
): Library {
  const own = Object.entries(functions).map(([name, { run, signature }]) => [name, native(charged(run), signature)])
  return deepFreeze(
    Object.assign(
      Object.create(null),
      libraryFunctions,
      guardedFunctions,
      numberFunctions,
      stringFunctions,
      valueFunctions,
      higherOrderFunctions,
      Object.fromEntries(own),
    ),
  )
}

/** Charges for the size of the arguments, which these functions process without further checks. */
function charged(run: (...args: never[]) => unknown): (...args: unknown[]) => unknown {
  return (...args) => {
    for (const argument of args) spendSize(argument)
    return run(...(args as never[]))
  }
}
