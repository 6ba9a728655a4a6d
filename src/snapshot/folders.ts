import { dirname, join, resolve } from 'node:path'
import type { Problem } from '../manifest/check/problem.ts'
import { type Earlier, readFolder } from '../manifest/read/folder.ts'
import type { Source } from '../manifest/read/source.ts'

/** The folder of the program: its own files and its own configuration. */
export const programFolder = resolve(import.meta.dirname, '../..')

/** The configuration of the program, which is used where there is no other. */
export const programConfig = join(programFolder, 'config.yaml')

/** Kinds of files that have folders. */
export type FolderKind = 'providers' | 'catalog' | 'plugins'

/** A folder in which files are searched; `isShipped` is set where a list names the shipped files. */
export type Folder = { path: string; isShipped: boolean }

/** Folders of each kind, in the order in which a file is searched. */
export type Folders = { readonly [kind in FolderKind]: readonly Folder[] }

/** A folder, or a list of them in which `shipped` stands for the files of the program. */
type FolderFile = string | string[]

/** Folders as a configuration writes them. */
export type FoldersFile = { [kind in FolderKind]?: FolderFile }

/** Returns the shipped files of a kind. */
export function shippedFolder(kind: FolderKind): string {
  return join(programFolder, kind)
}

/** Dialects of the program: every manifest can build on them. */
export const shippedDialects = join(shippedFolder('providers'), 'dialects')

/** Returns the folders of a configuration in `folder`. Without any, its own files go before the shipped ones. */
export function foldersOf(file: FoldersFile | null | undefined, folder: string): Folders {
  const usual: FoldersFile = file ?? (folder === programFolder ? {} : layered)
  const of = (kind: FolderKind) => listOf(usual[kind] ?? `./${kind}`, kind, folder)
  return { providers: of('providers'), catalog: of('catalog'), plugins: of('plugins') }
}

const layered: FoldersFile = {
  providers: ['./providers', 'shipped'],
  catalog: ['./catalog', 'shipped'],
  plugins: ['./plugins', 'shipped'],
}

function listOf(written: FolderFile, kind: FolderKind, folder: string): Folder[] {
  if (typeof written === 'string') return [{ path: resolve(folder, written), isShipped: false }]
  const all = written.map((one) =>
    one === 'shipped'
      ? { path: shippedFolder(kind), isShipped: true }
      : { path: resolve(folder, one), isShipped: false },
  )
  return all.filter(({ path }, index) => all.findIndex((one) => one.path === path) === index)
}

/** Returns the paths of folders. */
export function pathsOf(folders: readonly Folder[]): string[] {
  return folders.map(({ path }) => path)
}

/** Returns the first folder that is not the program's: new files go there. */
export function ownFolder(folders: readonly Folder[]): string | undefined {
  return folders.find(({ isShipped }) => !isShipped)?.path
}

/** The files of folders: of each name the first, and those behind it. */
type ReadFolders = { sources: Source[]; shadowed: Source[]; problems: Problem[] }

/** Reads the YAML files of several folders; of files with one name, the first is used. */
export async function readFolders(paths: readonly string[], earlier?: Earlier): Promise<ReadFolders> {
  const folders = await Promise.all(paths.map((path) => readFolder(path, earlier)))
  const taken = new Set<string>()
  const layers = folders.map(({ sources, problems }) => {
    const isFirst = (source: Source) => !taken.has(nameOf(source))
    const layer = { sources: sources.filter(isFirst), shadowed: sources.filter((one) => !isFirst(one)) }
    // A file that is not read because of its ending is no less meant to replace another.
    for (const one of [...sources, ...problems]) taken.add(nameOf(one))
    return layer
  })
  return {
    sources: layers.toReversed().flatMap(({ sources }) => sources),
    shadowed: layers.flatMap(({ shadowed }) => shadowed),
    problems: folders.flatMap(({ problems }) => problems),
  }
}

/** Returns a check whether a file is one that a list of folders names as shipped. */
export function isShippedIn(folders: readonly Folder[]): (source: Source) => boolean {
  const shipped = folders.find(({ isShipped }) => isShipped)?.path
  return ({ file }) => dirname(file) === shipped
}

/** Returns a file's name without its ending: the slug or dialect it is about. */
export function nameOf({ file }: Pick<Source, 'file'>): string {
  return file.replace(/^.*[\\/]/, '').replace(/\.ya?ml$/, '')
}
