import type { Key } from '../../access/keys.ts'
import type { JsonObject } from '../../core/json.ts'
import type { HookRuns, PluginActivity, PluginFault } from '../../observe/worker-metrics.ts'
import type { LoadedPlugin } from '../../plugin/loaded.ts'
import { hookNames } from '../../plugin/shape.ts'
import { shortPath } from '../../snapshot/config.ts'
import type { Snapshot } from '../../snapshot/snapshot.ts'
import type { Store } from '../../store/open.ts'
import { json, type ManagementContext, type ManageRoute, rulesOf } from '../manage.ts'
import { problemEntry } from '../providers.ts'
import { parametersOf } from '../read.ts'

/**
 * Serves `/v1/manage/plugins`: the plugins that may see the organization's calls, in the order in which they are called. How often they ran and
 * failed is known for all organizations together: only a key that may read all of them, or that of the only one, sees it.
 */
export function pluginListRoutes({ store, watch, pluginActivity }: ManagementContext): ManageRoute[] {
  return [
    {
      path: '/v1/manage/plugins',
      async handle({ key, organization, query }) {
        parametersOf(query, [])
        const isOfAll = await readsInstance(key, store)
        const snapshot = watch.current()
        const { plugins: rules } = await rulesOf(store, organization)
        const activity = isOfAll ? pluginActivity() : undefined
        const problems = watch.problems().filter(({ kind }) => kind === 'plugin')
        const plugins = snapshot.plugins.flatMap((plugin, index) => {
          const { name, enabled, organizations } = plugin
          const sees = organizations === 'all' || organizations.has(organization)
          if (!sees && !isOfAll) return []
          const rule = Object.hasOwn(rules, name) ? rules[name] : undefined
          const own = problems.filter(({ file }) => filesOf(name, snapshot).has(file))
          return {
            name,
            order: index + 1,
            enabled,
            rule: rule ?? null,
            active: sees && (rule ?? enabled),
            sees,
            organizations: organizations === 'all' ? 'all' : 'some',
            ...factsOf(plugin, snapshot),
            problems: own.map((problem) => problemEntry(problem, snapshot.config.path)),
            ...(activity && activityOf(name, activity)),
          }
        })
        return json({ plugins, counted: isOfAll })
      },
    },
  ]
}

/** Checks whether a key may read what belongs to all organizations: with `instance: read`, or as the key of the only one. */
export async function readsInstance(
  { permissions }: Key,
  { organizations }: Pick<Store, 'organizations'>,
): Promise<boolean> {
  return permissions.instance === 'read' || !(await organizations.areSeveral())
}

/** Returns the files of a plugin; of one that is not in use, the place of its error. */
function filesOf(name: string, { instances, unavailable }: Snapshot): ReadonlySet<string> {
  const instance = instances.find((one) => one.name === name)
  const broken = unavailable.plugins.get(name)?.problem.file
  return new Set([...(instance?.files.keys() ?? []), ...(broken === undefined ? [] : [broken])])
}

function factsOf(
  { name, hooks, guards, onError, timeoutMs, unavailable }: LoadedPlugin,
  snapshot: Snapshot,
): JsonObject {
  const entry = snapshot.instances.find((one) => one.name === name)?.entry
  return {
    loaded: entry !== undefined,
    ...(entry !== undefined && { file: shortPath(entry, snapshot.config.path) }),
    ...(unavailable !== undefined && { unavailable }),
    hooks: hookNames.filter((hook) => hook in hooks),
    guards: guards === true,
    on_error: onError,
    timeout_ms: timeoutMs,
  }
}

function activityOf(name: string, { runs, faults }: PluginActivity): JsonObject {
  return {
    runs: added(runs.filter(({ plugin }) => plugin === name)),
    faults: addedFaults(faults.filter(({ plugin }) => plugin === name)),
  }
}

/** Adds up the calls of hooks in all threads. */
function added(runs: readonly HookRuns[]): JsonObject[] {
  const sum = (of: readonly HookRuns[], name: 'calls' | 'failed') => of.reduce((total, one) => total + one[name], 0)
  return [...Map.groupBy(runs, ({ hook }) => hook)].map(([hook, same]) => ({
    hook,
    calls: sum(same, 'calls'),
    failed: sum(same, 'failed'),
  }))
}

function addedFaults(faults: readonly PluginFault[]): JsonObject[] {
  return [...Map.groupBy(faults, ({ hook, fault }) => `${hook} ${fault}`).values()].map((same) => {
    const [{ hook, fault }] = same as [PluginFault]
    return { hook, fault, count: same.reduce((total, { count }) => total + count, 0) }
  })
}
