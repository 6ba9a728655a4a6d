import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Environment } from '../manifest/read/environment.ts'
import { isBuilt } from '../runtime/source-files.ts'
import { programConfig } from './folders.ts'

/**
 * Finds the configuration file: the one that is named, else the one that `INFERENCE_ROUTER_CONFIG` names, else `config.yaml`
 * of the working folder, else the project's own. What is built from the project has no such file of its own: there, the one of the working
 * folder may be missing.
 */
export function findConfig(named: string | undefined, env: Environment): string {
  const chosen = named ?? env.INFERENCE_ROUTER_CONFIG
  if (chosen) return resolve(chosen)
  const here = resolve('config.yaml')
  return isBuilt || existsSync(here) ? here : programConfig
}

/** Checks whether a configuration may be missing: the program's own, and in what is built from it that of the working folder. */
export function isOptional(path: string): boolean {
  return path === programConfig || (isBuilt && path === resolve('config.yaml'))
}

/** Returns the settings of a configuration that is missing. Builds have the simulator, which serves only where it is named. */
export function absentText(path: string): string {
  return isBuilt && isOptional(path) ? 'providers: { demo: {} }\n' : ''
}
