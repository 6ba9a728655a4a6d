import type { Json, JsonObject } from '../../core/json.ts'
import { addressInUse } from '../../snapshot/provider-address.ts'
import { type SettingInUse, settingsInUse } from '../../snapshot/settings-in-use.ts'
import type { Snapshot } from '../../snapshot/snapshot.ts'
import { timeText } from '../key-entry.ts'
import { json, type ManagementContext, type ManageRoute } from '../manage.ts'
import { knownProviders } from '../providers.ts'
import { parametersOf } from '../read.ts'

/**
 * Serves `/v1/manage/instance/settings`: the settings of the server as they are in use, and what they change of providers and plugins. No
 * secret is sent.
 */
export function usedSettingsRoutes({ watch }: ManagementContext): ManageRoute[] {
  return [
    {
      path: '/v1/manage/instance/settings',
      readsInstance: true,
      handle({ query }) {
        parametersOf(query, [])
        const snapshot = watch.current()
        const { config, generation, builtAt } = snapshot
        return json({
          file: config.path,
          generation,
          reloaded_at: timeText(builtAt),
          settings: settingsInUse(snapshot).map(settingEntry),
          providers: providersWithSettings(snapshot),
          plugins: config.plugins.map(({ name, options }) => ({ name, options: withoutTexts(options) })),
        })
      },
    },
  ]
}

function settingEntry({ needsRestart, ...setting }: SettingInUse): JsonObject {
  return { ...setting, needs_restart: needsRestart }
}

/** The variable with the address of the built-in simulator, which the router sets itself. */
const simulatorVariable = 'INFERENCE_ROUTER_DEMO_URL'

/** Returns the providers of which a setting or a variable changes something. */
function providersWithSettings(snapshot: Snapshot): JsonObject[] {
  return knownProviders(snapshot, [], []).providers.flatMap(({ slug, enabled, provider, file }) => {
    const settings = Object.keys(snapshot.config.providers[slug] ?? {})
    const address = provider && addressInUse(provider, file, snapshot)
    const isSimulator = address?.variables.includes(simulatorVariable) === true
    if (settings.length === 0 && (isSimulator || address?.overriddenBy === undefined)) return []
    return [
      {
        slug,
        enabled,
        settings,
        ...(address && {
          base_url: address.baseUrl,
          variables: address.variables,
          ...(address.usual !== undefined && { usual_base_url: address.usual }),
          ...(address.overriddenBy !== undefined && { overridden_by: address.overriddenBy }),
        }),
      },
    ]
  })
}

/** Returns options with their numbers and flags: a text may be a secret, whatever its name. */
function withoutTexts(options: Json): Json {
  if (typeof options === 'string') return hiddenText
  if (Array.isArray(options)) return options.map(withoutTexts)
  if (options === null || typeof options !== 'object') return options
  return Object.fromEntries(Object.entries(options).map(([name, value]) => [name, withoutTexts(value as Json)]))
}

const hiddenText = '(text)'
