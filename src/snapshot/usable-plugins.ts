import { type FileProblem, hasErrors, type Problem } from '../manifest/check/problem.ts'
import type { Extensions } from '../manifest/provider.ts'
import { extensionsOf, type PluginInstance } from '../plugin/instances.ts'
import type { BrokenPlugin } from '../plugin/load.ts'
import type { LoadedPlugin } from '../plugin/loaded.ts'
import { pluginsFor, type Reading, type SourcesByKind } from './load-files.ts'
import type { Unavailable } from './unavailable.ts'

/** The plugins in use, and those that cannot be used; `refused` are errors of config.yaml, which concern all of it. */
export type UsablePlugins = {
  instances: readonly PluginInstance[]
  extensions: Extensions
  unavailable: Unavailable['plugins']
  problems: FileProblem[]
  warnings: Problem[]
  refused: Problem[]
}

/** The plugins before a change. */
type PluginsBefore = { instances: readonly PluginInstance[]; unavailable: Unavailable }

function hasPlugin({ instances, unavailable }: PluginsBefore, name: string): boolean {
  return unavailable.plugins.has(name) || instances.some((one) => one.name === name)
}

/**
 * Sets up the plugins of a configuration. One whose files have errors stays as it was before; where it was not in use before, it is
 * unavailable, and calls that it would see are refused unless its failures let calls go on. A change of config.yaml that names a plugin
 * without any file is an error of config.yaml.
 */
export async function usablePlugins(
  reading: Reading,
  sources: SourcesByKind,
  { previous, given }: { previous: PluginsBefore | undefined; given: Unavailable | undefined },
): Promise<UsablePlugins> {
  const { config, source } = reading
  const running = previous?.instances ?? []
  const more = { previous: running, ...(given && { except: new Set(given.plugins.keys()) }) }
  const loaded = await pluginsFor(reading, sources, more)
  const isKnown = (name: string) => !previous || hasPlugin(previous, name)
  const broken = given ? [] : loaded.broken.filter(({ name, isAbsent }) => !isAbsent || isKnown(name))
  const ofBroken = new Set(broken.flatMap(({ problems }) => problems))
  const others = loaded.problems.filter((problem) => !ofBroken.has(problem))
  const found = config.plugins.flatMap(({ name }): PluginInstance[] => {
    const before = broken.some((one) => one.name === name) ? running : loaded.instances
    return before.filter((one) => one.name === name).slice(0, 1)
  })
  const instances = [...new Set(found)]
  const { extensions, problems: clashes } = extensionsOf(instances, config.plugins, source)
  const left = broken.filter(({ name }) => !instances.some((one) => one.name === name))
  return {
    instances,
    extensions,
    unavailable: new Map([...(given?.plugins ?? []), ...left.map((one) => unavailable(one, onErrorOf(one, reading)))]),
    problems: broken.flatMap((one) => problemsOf(one, left.includes(one) ? onErrorOf(one, reading) : undefined)),
    warnings: others.filter(({ severity }) => severity === 'warning'),
    refused: [...others.filter((one) => hasErrors([one])), ...clashes],
  }
}

/** Returns what a failure of a plugin means that could not be asked, or has not said it: calls are refused. */
function onErrorOf({ name, onError }: BrokenPlugin, { config }: Reading): LoadedPlugin['onError'] {
  return config.plugins.find((one) => one.name === name)?.onError ?? onError ?? 'closed'
}

function unavailable({ name, problems }: BrokenPlugin, onError: LoadedPlugin['onError']) {
  return [name, { problem: problems.find((one) => hasErrors([one])) as Problem, onError }] as const
}

/** `onError` is missing where the plugin stays as it was. */
function problemsOf({ problems }: BrokenPlugin, onError: LoadedPlugin['onError'] | undefined): FileProblem[] {
  const effect =
    onError === undefined
      ? 'the previous version stays in use'
      : onError === 'open'
        ? 'calls go on without the plugin'
        : 'calls that the plugin would see are refused'
  return problems.filter((one) => hasErrors([one])).map((problem) => ({ ...problem, kind: 'plugin', effect }))
}
