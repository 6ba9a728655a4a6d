import type { Problem } from '../manifest/check/problem.ts'
import type { Environment } from '../manifest/read/environment.ts'
import type { Source } from '../manifest/read/source.ts'
import { type KitServices, noBudgets, valuesInMemory } from '../plugin/kit.ts'
import type { LoadedPlugins, LoadOptions } from '../plugin/load.ts'
import { maxTimeoutMs } from '../plugin/settings.ts'
import { openGuardedFetch } from '../upstream/files/guarded-fetch.ts'
import type { Config } from './config.ts'
import { pathsOf, shippedFolder } from './folders.ts'

/** Lists the folders in which plugins are searched, in this order. Those of the program can be listed from any folder. */
export function pluginFolders({ plugins }: Config['folders']): string[] {
  return [...new Set([...pathsOf(plugins), shippedFolder('plugins')])]
}

/** Services of the router that plugins are given; a command has neither a log nor values that last, nor budgets. */
export type PluginServices = Pick<KitServices, 'log' | 'values' | 'budgets'>

/**
 * Inputs with which plugins are set up, besides the configuration. `credentials` are the variables of the environment that they do not get,
 * `except` the names of those that are not set up.
 */
export type PluginsAround = Pick<LoadOptions, 'source' | 'previous' | 'texts'> & {
  env: Environment
  credentials: ReadonlySet<string>
  services?: PluginServices | undefined
  except?: ReadonlySet<string>
}

/** Sets up the plugins of a configuration. From then on the environment of the process has no credential of a provider. */
export async function pluginsOf(
  { plugins, folders }: Config,
  { env, credentials, services = ofCommands(), except = new Set(), ...around }: PluginsAround,
): Promise<LoadedPlugins> {
  if (plugins.length === 0) return { instances: [], broken: [], problems: [] }
  const problems = timeProblems(plugins, around.source)
  for (const name of credentials) delete process.env[name]
  const lent = { ...services, env, credentials, openFetch: openGuardedFetch }
  // Loaded on demand: most routers have no plugins.
  const { loadPlugins } = await import('../plugin/load.ts')
  const loaded = await loadPlugins(plugins, { ...around, folders: pluginFolders(folders), services: lent, except })
  return { ...loaded, problems: [...problems, ...loaded.problems] }
}

/** Finds times that no hook could keep, or no timer. */
function timeProblems(plugins: Config['plugins'], source: Source): Problem[] {
  return plugins.flatMap(({ timeoutMs = 1 }, index) => {
    if (timeoutMs > 0 && timeoutMs <= maxTimeoutMs) return []
    return [source.problem(['plugins', index, 'timeout'], '`timeout` must be more than 0 and at most 10m')]
  })
}

function ofCommands(): PluginServices {
  const silent = () => {}
  return {
    log: { debug: silent, info: silent, warn: silent, error: silent },
    values: valuesInMemory(),
    budgets: noBudgets,
  }
}
