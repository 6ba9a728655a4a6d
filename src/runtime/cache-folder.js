import { lstatSync, mkdirSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'

/**
 * The folder in which starts keep what later ones need not find out again: `INFERENCE_ROUTER_CACHE`, else one of the user's
 * cache. Undefined when it is `off`, or cannot be made, or when others may write to it: what is in it is run.
 *
 * @param {NodeJS.ProcessEnv} env
 * @returns {string | undefined}
 */
export function cacheFolder(env) {
  const { INFERENCE_ROUTER_CACHE: chosen, XDG_CACHE_HOME: caches } = env
  if (chosen === 'off') return undefined
  const folder = chosen || join(caches || join(homedir(), '.cache'), 'inference-router')
  return isPrivate(folder) ? folder : undefined
}

/**
 * Makes the folder where it is missing. One of the system's own, as in an image, is as private as one of the user.
 *
 * @param {string} folder
 */
function isPrivate(folder) {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const found = lstatSync(folder)
    const isOwn = found.uid === (process.getuid?.() ?? found.uid) || found.uid === 0
    return found.isDirectory() && isOwn && (found.mode & 0o022) === 0
  } catch {
    return false
  }
}

/** Makes Node keep compiled code for later starts; by the variable, threads use it too. */
export function keepCode() {
  const cache = cacheFolder(process.env)
  if (cache === undefined) return
  process.env.NODE_COMPILE_CACHE ||= join(cache, 'code')
  enableCompileCache()
}
