import { type Library, libraryWith } from './compile/runtime/library.ts'
import { functions } from './functions.ts'

/** What compiled mappings may call. */
export const library: Library = libraryWith(functions)

/** All that a mapping may call; `$eval` would make a mapping of a text at run time, so it is interpreted. */
export const libraryNames: readonly string[] = [...Object.keys(library), 'eval']
