import { enableCompileCache } from 'node:module'
import { join } from 'node:path'
import { cacheFolder } from './cache-folder.js'

/** Makes Node keep compiled code for later starts; by the variable, threads use it too. */
export function keepCode() {
  const cache = cacheFolder(process.env)
  if (cache === undefined) return
  process.env.NODE_COMPILE_CACHE ||= join(cache, 'code')
  enableCompileCache()
}
