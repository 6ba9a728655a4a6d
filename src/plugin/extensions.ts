import type { Problem } from '../manifest/check/problem.ts'
import { type Extensions, noExtensions } from '../manifest/read/extensions.ts'
import type { Source } from '../manifest/read/source.ts'
import { ownFunctions } from '../mapping/own-functions.ts'
import type { PluginInstance } from './instances.ts'
import type { PluginSettings } from './settings.ts'

/** What plugins give to manifests. A name belongs to one plugin; `source` is the configuration file that lists them. */
export function extensionsOf(
  instances: readonly PluginInstance[],
  settings: readonly PluginSettings[],
  source: Source,
): { extensions: Extensions; problems: Problem[] } {
  const problems: Problem[] = []
  const merged = <Kind extends 'functions' | 'auth'>(kind: Kind, what: string) => {
    const found: Record<string, NonNullable<PluginInstance['hooks'][Kind]>[string]> = {}
    const owners = new Map<string, string>()
    for (const { name: plugin, hooks } of instances) {
      for (const [name, value] of Object.entries(hooks[kind] ?? {})) {
        const owner = owners.get(name)
        const at = ['plugins', settings.findIndex((one) => one.name === plugin), 'name']
        if (owner !== undefined) problems.push(source.problem(at, `${what} \`${name}\` is that of ${owner} already`))
        else found[name] = value as (typeof found)[string]
        owners.set(name, owner ?? plugin)
      }
    }
    return found
  }
  const functions = merged('functions', 'the function')
  const schemes = merged('auth', 'the scheme')
  const isNone = Object.keys(functions).length === 0
  if (isNone && Object.keys(schemes).length === 0) return { extensions: noExtensions, problems }
  return { extensions: { functions: isNone ? undefined : ownFunctions(functions), schemes }, problems }
}
