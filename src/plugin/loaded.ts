import { RouterError } from '../core/errors.ts'
import type { Hooks } from './contract.ts'

/** A plugin of a snapshot, set up and ready. */
export type LoadedPlugin = {
  name: string
  hooks: Hooks
  onError: 'open' | 'closed'
  /** Clients get only what it has seen of an answer. */
  guards?: boolean
  /** Maximum time of a hook. Milliseconds. */
  timeoutMs: number
  /** True where it is called unless the organization or the key says otherwise. */
  enabled: boolean
  /** Calls of other organizations are never shown to it. */
  organizations: ReadonlySet<string> | 'all'
  /** Place of the error because of which it could not be set up: calls that it would see are refused. */
  unavailable?: string
}

/** Rules of an organization or a key about plugins, by their names: `true` switches one on, `false` off. */
export type PluginRules = Readonly<Record<string, boolean>>

/** Caller of a call, and the rules about plugins there: the key overrules its organization. */
export type PluginCaller = { organization: string; rules: PluginRules; keyRules: PluginRules }

/** Returns the plugins that a caller's calls are shown to, in their order. */
export function pluginsFor(plugins: readonly LoadedPlugin[], caller: PluginCaller): readonly LoadedPlugin[] {
  return plugins.length === 0 ? plugins : plugins.filter((plugin) => isOn(plugin, caller))
}

/** Returns the error of a call without a plugin that could not be set up. */
export function unavailablePlugin({ name, unavailable }: LoadedPlugin): RouterError {
  const message = `The plugin '${name}' is unavailable: the router has left out ${unavailable}. It refuses calls without the plugin.`
  return new RouterError('plugin_unavailable', message)
}

/** Checks whether the calls of a caller are shown to a plugin. */
export function isOn({ name, enabled, organizations }: LoadedPlugin, caller: PluginCaller): boolean {
  if (organizations !== 'all' && !organizations.has(caller.organization)) return false
  return ruleFor(caller.keyRules, name) ?? ruleFor(caller.rules, name) ?? enabled
}

/** Finds the rule about a plugin. Any name may be that of a plugin, also that of a member which every object has. */
function ruleFor(rules: PluginRules, name: string): boolean | undefined {
  return Object.hasOwn(rules, name) ? rules[name] : undefined
}
