import { flag, object, required } from '../api/check.ts'
import type { JsonObject } from '../core/json.ts'
import type { PluginRules } from '../plugin/loaded.ts'
import type { OrganizationRules } from '../store/rules.ts'
import { type ModelDirectory, pluginCheck } from './names.ts'
import { invalid } from './read.ts'

/** The one field of the rules about plugins. */
export const pluginFields = ['plugins']

/** Returns the rules of plugins in the API. */
export function pluginsEntry({ plugins }: Pick<OrganizationRules, 'plugins'>): JsonObject {
  return { plugins: { ...plugins } }
}

/**
 * Returns the rules as a body changes them, which names plugins with true, false, or null for what config.yaml says. Throws RouterError
 * 400.
 */
export function pluginsFrom(body: JsonObject, directory: ModelDirectory): (before: PluginRules) => PluginRules {
  const named = required(body.plugins, 'plugins', 'an object of true, false or null', object)
  if (Object.keys(named).length === 0) throw invalid("'plugins' is empty: name a plugin.", 'plugins')
  const check = pluginCheck(directory)
  for (const [name, value] of Object.entries(named)) {
    // Rules for a plugin that is gone can still be removed.
    if (value === null || value === undefined) continue
    check(name, `plugins.${name.slice(0, 60)}`)
    flag(value, `plugins.${name}`)
  }
  return (before) => {
    const rules = Object.entries({ ...before, ...named }).filter(([, value]) => typeof value === 'boolean')
    return Object.fromEntries(rules) as PluginRules
  }
}
