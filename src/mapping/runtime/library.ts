import { functions } from '../functions.ts'
import { type Callable, native } from './callables.ts'
import { borrowed, guarded } from './library-borrowed.ts'
import { higherOrderFunctions } from './library-functions.ts'
import { textFunctions } from './library-text.ts'
import { valueFunctions } from './library-values.ts'

/** Every function a compiled mapping may name, the kernel's own among them. `$eval` is not one. */
export const library: Readonly<Record<string, Callable>> = Object.assign(
  Object.create(null),
  borrowed,
  guarded,
  textFunctions,
  valueFunctions,
  higherOrderFunctions,
  Object.fromEntries(Object.entries(functions).map(([name, { run, signature }]) => [name, native(run, signature)])),
)
