import { durationMs } from '../core/duration.ts'
import type { JsonObject } from '../core/json.ts'
import type { LoadedPlugin } from './loaded.ts'

/** What config.yaml says of a plugin, with the defaults filled in; `timeoutMs` and `onError` are missing where the plugin's own hold. */
export type PluginSettings = Omit<LoadedPlugin, 'hooks' | 'timeoutMs' | 'onError'> & {
  options: JsonObject
  timeoutMs?: number
  onError?: LoadedPlugin['onError']
  /** Hosts, or `host:port`, that its `fetch` may reach whatever their address is. */
  fetch: readonly string[]
}

/** The same as the file writes it, after its schema has accepted it. */
export type PluginFile = {
  name: string
  options?: JsonObject | null
  on_error?: 'open' | 'closed'
  timeout?: string
  fetch?: string[]
  organizations?: string[] | 'all'
  enabled?: boolean
}

export function pluginSettings(file: PluginFile): PluginSettings {
  const { name, options, on_error, timeout, fetch = [], organizations = 'all', enabled = true } = file
  return {
    name,
    options: options ?? {},
    ...(on_error !== undefined && { onError: on_error }),
    ...(timeout !== undefined && { timeoutMs: durationMs(timeout) as number }),
    fetch,
    organizations: organizations === 'all' ? 'all' : new Set(organizations),
    enabled,
  }
}

/** The most that a hook may be given. */
export const longestTimeoutMs = 600_000
