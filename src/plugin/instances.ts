import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Problem } from '../manifest/check/problem.ts'
import { type Extensions, noExtensions } from '../manifest/provider.ts'
import type { Texts } from '../manifest/read/folder.ts'
import type { Source } from '../manifest/read/source.ts'
import { ownFunctions } from '../mapping/library.ts'
import type { LoadedPlugin } from './loaded.ts'
import type { PluginSettings } from './settings.ts'

/** A plugin that is set up, for as long as neither its files nor its options change. */
export type PluginInstance = Pick<LoadedPlugin, 'name' | 'hooks' | 'onError'> & {
  /** Clients get only what it has seen of an answer. */
  guards: boolean
  /** Time limit that the plugin itself sets. Milliseconds. */
  timeoutMs: number
  /** The file that it begins with. */
  entry: string
  /** All of its files so far, with their texts. */
  files: ReadonlyMap<string, string>
  /** Other inputs that it was set up with, as JSON. */
  about: string
  /** Ends it and everything it was given. Never rejects. */
  close(): Promise<void>
}

/**
 * Returns the plugins with the settings that config.yaml has for each. One that is unavailable has no hooks, and a place of its error unless
 * calls go on without it.
 */
export function configured(
  instances: readonly PluginInstance[],
  settings: readonly PluginSettings[],
  unavailable: ReadonlyMap<string, string | undefined> = new Map(),
): LoadedPlugin[] {
  return settings.flatMap(({ options: _, fetch: __, ...said }) => {
    const instance = instances.find(({ name }) => name === said.name)
    if (instance) {
      const { timeoutMs, onError, guards, hooks } = instance
      return [{ timeoutMs, onError, ...said, ...(guards && { guards: true }), hooks }]
    }
    if (!unavailable.has(said.name)) return []
    const place = unavailable.get(said.name)
    const isMissing = place !== undefined && { unavailable: place }
    return [{ timeoutMs: 0, onError: 'closed' as const, ...said, hooks: {}, ...isMissing }]
  })
}

/** Ends plugins, all at once. */
export async function closeAll(instances: readonly PluginInstance[]): Promise<void> {
  await Promise.all(instances.map(({ close }) => close()))
}

/** Checks whether plugins are still up to date with their files. */
export async function areUnchanged(
  instances: readonly PluginInstance[],
  { folders, texts }: { folders: readonly string[]; texts?: Texts | undefined },
): Promise<boolean> {
  const same = instances.map(async ({ name, entry, files }) => {
    return entryOf(name, folders, texts)?.file === entry && (await isUnchanged(files, texts))
  })
  return (await Promise.all(same)).every(Boolean)
}

/** Returns the file that a plugin begins with, and the folder of plugins that it is in. */
export function entryOf(
  name: string,
  folders: readonly string[],
  texts: Texts | undefined,
): { file: string; folder: string } | undefined {
  const places = folders.flatMap((folder) =>
    [`${name}.ts`, join(name, 'index.ts'), `${name}.js`, join(name, 'index.js')].map((file) => ({
      file: join(folder, file),
      folder,
    })),
  )
  return places.find(({ file }) => (texts ? texts.has(file) : existsSync(file)))
}

/** Checks whether files still have these texts. */
export async function isUnchanged(files: ReadonlyMap<string, string>, texts?: Texts): Promise<boolean> {
  const same = async ([file, text]: [string, string]) =>
    (texts?.get(file) ?? (await readFile(file, 'utf8').catch(() => undefined))) === text
  return (await Promise.all([...files].map(same))).every(Boolean)
}

/** Returns the extensions of plugins for manifests. A name belongs to one plugin; `source` is the configuration file that lists them. */
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
        if (owner !== undefined) problems.push(source.problem(at, `${what} \`${name}\` already belongs to ${owner}`))
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
