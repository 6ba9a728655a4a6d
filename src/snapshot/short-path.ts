import { basename, dirname, join, relative } from 'node:path'

/** A file relative to the folder of the configuration; of files elsewhere, such as shipped dialects, the last two names. */
export function shortPath(file: string, config: string): string {
  const path = relative(dirname(config), file)
  return path.startsWith('..') ? join(basename(dirname(file)), basename(file)) : path
}
