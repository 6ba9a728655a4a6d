import type { Key } from '../../access/keys.ts'
import type { JsonObject } from '../../core/json.ts'
import { CallPlugins, type PluginServices } from '../../plugin/call-plugins.ts'
import type { CallFacts } from '../../plugin/call-view.ts'
import { type LoadedPlugin, pluginsFor } from '../../plugin/loaded.ts'
import type { CallStart } from '../admission/settlement.ts'
import type { Services } from '../handle-call.ts'

/** The plugins of a snapshot, and what they have in common with those of others. */
export type RouterPlugins = PluginServices & { loaded: readonly LoadedPlugin[] }

/** What plugins are told of a call beside its start. */
export type ToldCall = {
  key: Key
  headers: CallFacts['headers'] | undefined
  body(): JsonObject
  signal: AbortSignal
  /** Its tokens are counted, no more. */
  isCounted?: boolean
}

/** The plugins that see a call; undefined where none does. */
export function pluginsOf(
  start: CallStart,
  { key, headers = {}, body, signal, isCounted }: ToldCall,
  { plugins, rulesOf }: Pick<Services, 'plugins' | 'rulesOf'>,
): CallPlugins | undefined {
  if (!plugins) return undefined
  const { organization } = key
  const caller = { organization, rules: rulesOf(organization).plugins, keyRules: key.plugins }
  const seeing = pluginsFor(plugins.loaded, caller)
  if (seeing.length === 0) return undefined
  const operation = isCounted ? 'count' : start.operation
  return new CallPlugins(seeing, { ...start, operation, headers, body, signal }, plugins)
}
