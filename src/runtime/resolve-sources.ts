import { registerHooks } from 'node:module'
import { isSourceImport, sourceFormat } from './source-files.ts'

/**
 * Resolves imports between the project's own files by their name alone. Node would look at every file, its links and its
 * package first, which takes a twentieth of a start and some megabytes.
 */
export function resolveSources(): void {
  registerHooks({
    resolve(specifier, context, next) {
      const { parentURL } = context
      if (!parentURL?.startsWith(sources) || !isSourceImport(specifier)) return next(specifier, context)
      return { url: new URL(specifier, parentURL).href, format: sourceFormat, shortCircuit: true }
    },
  })
}

const sources = new URL('..', import.meta.url).href
