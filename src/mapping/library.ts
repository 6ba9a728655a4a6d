import { type Library, libraryWith } from './compile/runtime/library.ts'
import { functions } from './functions.ts'

/** Functions of compiled mappings. */
export const library: Library = libraryWith(functions)

/** Names of all functions; `$eval` is only there in interpreted mappings. */
export const libraryNames: readonly string[] = [...Object.keys(library), 'eval']
