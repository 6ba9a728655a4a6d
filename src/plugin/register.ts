import { registerHooks } from 'node:module'
import { sourceFormat } from '../runtime/source-files.ts'

/** Modules of the router that plugins and their tests import, by name from any folder. For `node --import`. */
const modules: { readonly [name: string]: string } = {
  'inference-router/plugin': new URL('./contract.ts', import.meta.url).href,
  'inference-router/plugin/test': new URL('./test-kit.ts', import.meta.url).href,
}

registerHooks({
  resolve(specifier, context, next) {
    const url = modules[specifier]
    return url === undefined ? next(specifier, context) : { url, format: sourceFormat, shortCircuit: true }
  },
})
