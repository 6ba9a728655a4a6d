import { join } from 'node:path'
import { type FileCache, noCache, openFileCache } from '../manifest/read/file-cache.ts'
import { cacheFolder } from '../runtime/cache-folder.js'

/** What earlier starts and commands found out about files. */
export function earlierFiles(env: NodeJS.ProcessEnv): FileCache {
  const folder = cacheFolder(env)
  return folder === undefined ? noCache : openFileCache(join(folder, 'files'))
}
