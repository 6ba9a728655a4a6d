import type { Hooks } from './contract.ts'

/** A plugin of a snapshot, set up and ready. */
export type LoadedPlugin = {
  name: string
  hooks: Hooks
  onError: 'open' | 'closed'
  /** How long a hook may take. Milliseconds. */
  timeoutMs: number
  /** Whether it is called where neither the organization nor the key says so. */
  enabled: boolean
  /** Calls of other organizations are never shown to it. */
  organizations: ReadonlySet<string> | 'all'
}

/** What an organization or a key says about plugins, by their names: `true` switches one on, `false` off. */
export type PluginRules = Readonly<Record<string, boolean>>

/** Whose call it is, and what is said there about plugins: the key overrules its organization. */
export type PluginCaller = { organization: string; rules: PluginRules; keyRules: PluginRules }

/** The plugins that a caller's calls are shown to, in their order. */
export function pluginsFor(plugins: readonly LoadedPlugin[], caller: PluginCaller): readonly LoadedPlugin[] {
  return plugins.length === 0 ? plugins : plugins.filter((plugin) => isOn(plugin, caller))
}

function isOn({ name, enabled, organizations }: LoadedPlugin, caller: PluginCaller): boolean {
  if (organizations !== 'all' && !organizations.has(caller.organization)) return false
  return said(caller.keyRules, name) ?? said(caller.rules, name) ?? enabled
}

/** Any name may be that of a plugin, also that of a member which every object has. */
function said(rules: PluginRules, name: string): boolean | undefined {
  return Object.hasOwn(rules, name) ? rules[name] : undefined
}
