import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Texts } from '../manifest/read/folder.ts'
import type { LoadedPlugin } from './loaded.ts'
import type { PluginSettings } from './settings.ts'

/** A plugin that is set up, for as long as neither its files nor its options change. */
export type PluginInstance = Pick<LoadedPlugin, 'name' | 'hooks' | 'onError'> & {
  /** What the plugin says itself. Milliseconds. */
  timeoutMs: number
  /** The file that it begins with. */
  entry: string
  /** All of its files so far, with their texts. */
  files: ReadonlyMap<string, string>
  /** What else it was set up with, as JSON. */
  about: string
  /** Ends it, and what it was lent. Never rejects. */
  close(): Promise<void>
}

/** The plugins with what config.yaml says of each. */
export function configured(instances: readonly PluginInstance[], settings: readonly PluginSettings[]): LoadedPlugin[] {
  return settings.flatMap(({ options: _, fetch: __, ...said }) => {
    const instance = instances.find(({ name }) => name === said.name)
    return instance
      ? [{ timeoutMs: instance.timeoutMs, onError: instance.onError, ...said, hooks: instance.hooks }]
      : []
  })
}

/** Ends plugins, all at once. */
export async function closeAll(instances: readonly PluginInstance[]): Promise<void> {
  await Promise.all(instances.map(({ close }) => close()))
}

/** Whether plugins still are what their files say. */
export async function areUnchanged(
  instances: readonly PluginInstance[],
  { folders, texts }: { folders: readonly string[]; texts?: Texts | undefined },
): Promise<boolean> {
  const same = instances.map(async ({ name, entry, files }) => {
    return entryOf(name, folders, texts)?.file === entry && (await isUnchanged(files, texts))
  })
  return (await Promise.all(same)).every(Boolean)
}

/** The file that a plugin begins with, and the folder of plugins that it is in. */
export function entryOf(
  name: string,
  folders: readonly string[],
  texts: Texts | undefined,
): { file: string; folder: string } | undefined {
  const places = folders.flatMap((folder) =>
    [join(folder, `${name}.ts`), join(folder, name, 'index.ts')].map((file) => ({ file, folder })),
  )
  return places.find(({ file }) => (texts ? texts.has(file) : existsSync(file)))
}

/** Whether files still have these texts. */
export async function isUnchanged(files: ReadonlyMap<string, string>, texts?: Texts): Promise<boolean> {
  const same = async ([file, text]: [string, string]) =>
    (texts?.get(file) ?? (await readFile(file, 'utf8').catch(() => undefined))) === text
  return (await Promise.all([...files].map(same))).every(Boolean)
}
