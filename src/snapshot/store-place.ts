import { accessSync, constants, existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { Problem } from '../manifest/check/problem.ts'
import type { Environment } from '../manifest/read/environment.ts'
import type { Source } from '../manifest/read/source.ts'
import { programConfig, programFolder } from './folders.ts'

/** The database where a configuration names none. */
export const usualStore = 'sqlite:data/router.sqlite'

/**
 * Returns the URL of a database with an absolute path. It is relative to the configuration; where that is the program's own, used from
 * another folder, to the user's data: an update of the program may replace everything in it. A database that is in the program stays.
 */
export function storeUrl(url: string, config: string, env: Environment): string {
  const path = url.slice('sqlite:'.length)
  if (path === ':memory:') return url
  const beside = resolve(dirname(config), path)
  if (!isBorrowed(config) || beside === path || existsSync(beside)) return `sqlite:${beside}`
  return `sqlite:${placeFor(url, env)}`
}

/** Warns of a database inside the program, used from another folder. */
export function storeProblems(
  { path, store }: { path: string; store: { url: string } },
  source: Source,
  env: Environment,
): Problem[] {
  const file = store.url.slice('sqlite:'.length)
  if (!isBorrowed(path) || dirname(file) !== join(programFolder, 'data')) return []
  const message = `the database is inside the program, where an update may delete it: stop the router and move ${dirname(file)} to ${dirname(placeFor(usualStore, env))}, or name a place with \`store.url\``
  return [{ ...source.problem(['store', 'url'], message), severity: 'warning' }]
}

/** Checks whether a configuration is the program's own and is used from another folder. */
function isBorrowed(config: string): boolean {
  return config === programConfig && process.cwd() !== programFolder
}

function placeFor(url: string, env: Environment): string {
  const folder = dataFolder(env)
  return url === usualStore ? join(folder, 'router.sqlite') : resolve(folder, url.slice('sqlite:'.length))
}

/** Returns the folder of the router in the user's data; where the user has no folder, one in the working folder. */
function dataFolder({ XDG_DATA_HOME: data }: Environment): string {
  if (data) return join(data, 'inference-router')
  try {
    const home = homedir()
    accessSync(home, constants.W_OK)
    return join(home, '.local/share/inference-router')
  } catch {
    return resolve('data')
  }
}
