import { extname } from 'node:path'

/** Ending of the project's own files: TypeScript in a checkout, JavaScript in what is built from it. */
const ending = extname(import.meta.filename)

/** Set in what is built from a checkout: a package, a single file, an image. */
export const isBuilt = ending === '.js'

/** Format of the project's own modules, for Node's hooks. */
export const sourceFormat = isBuilt ? 'module' : 'module-typescript'

/** Checks whether an import names one of the project's own files, relative to another one. */
export function isSourceImport(specifier: string): boolean {
  return /^\.\.?\//.test(specifier) && specifier.endsWith(ending)
}
