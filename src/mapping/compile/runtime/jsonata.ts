import { createRequire } from 'node:module'

/** The library, as it is published in short: a quarter of the text, a megabyte less of memory. */
export const jsonata: typeof import('jsonata') = createRequire(import.meta.url)('jsonata/jsonata.min.js')
