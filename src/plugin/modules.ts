import { existsSync, readFileSync } from 'node:fs'
import { type ModuleFormat, registerHooks } from 'node:module'
import { extname, join, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Texts } from '../manifest/read/folder.ts'
import { sourceFormat } from '../runtime/source-files.ts'

/** The modules of one plugin as they were at one time: all of them are loaded anew for the next one. */
export type PluginModules = {
  /** The files of the plugins folder that it consists of so far, with their texts. */
  files: ReadonlyMap<string, string>
  /** Loads the file that the plugin begins with. Rejects with whatever is wrong with it. */
  load(entry: string): Promise<{ default?: unknown }>
}

/** An import that the router refuses or cannot follow. */
export class ImportError extends Error {
  readonly file: string
  readonly specifier: string

  constructor(file: string, specifier: string, message: string) {
    super(message)
    this.file = file
    this.specifier = specifier
  }
}

/** Opens the modules of a plugin below a folder; files that `texts` has are not read. */
export function openModules(folder: string, texts?: Texts): PluginModules {
  if (lastVersion === 0) registerHooks({ resolve, load })
  const version = `plugin-${++lastVersion}`
  const files = new Map<string, string>()
  const own = texts && new Map([...texts].filter(([path]) => isBelow(path, folder)))
  opened.set(version, { folder, texts: own, files })
  return { files, load: (entry) => import(versioned(entry, version)) }
}

/** Returns the file that a module of a plugin was loaded from; undefined for the address of any other. */
export function pluginFile(url: string): string | undefined {
  return openedBy(url) && fileURLToPath(url)
}

type Opened = { folder: string; texts: Texts | undefined; files: Map<string, string> }

/** Versions that are open: a module that loads later, by a dynamic import, belongs to the same version. */
const opened = new Map<string, Opened>()
let lastVersion = 0

function versioned(path: string, version: string): string {
  return `${pathToFileURL(path).href}?${version}`
}

function versionOf(url: string | undefined): string {
  return url?.startsWith('file:') ? url.slice(url.indexOf('?') + 1) : ''
}

function openedBy(url: string | undefined): Opened | undefined {
  return opened.get(versionOf(url))
}

const contract = new URL('./contract.ts', import.meta.url).href
const sources = fileURLToPath(new URL('..', import.meta.url))

type Hooks = Parameters<typeof registerHooks>[0]

const resolve: NonNullable<Hooks['resolve']> = (specifier, context, next) => {
  const { parentURL = '' } = context
  if (openedBy(specifier)) return ownModule(specifier)
  const from = openedBy(parentURL)
  if (!from) return next(specifier, context)
  if (specifier === 'inference-router/plugin') return { url: contract, format: sourceFormat, shortCircuit: true }
  const refuse = (message: string): never => {
    throw new ImportError(fileURLToPath(parentURL), specifier, message)
  }
  if (/^(?:\.{0,2}\/|file:)/.test(specifier)) {
    const path = fileURLToPath(new URL(specifier, parentURL))
    if (!isBelow(path, from.folder)) return refuse(`a plugin may only import files below ${from.folder}`)
    if (!isThere(path, from)) return refuse(`there is no file ${path}${endingHint(path, from)}`)
    return ownModule(versioned(path, versionOf(parentURL)))
  }
  let found: ReturnType<typeof next>
  try {
    found = next(specifier, context)
  } catch (thrown) {
    return refuse((thrown as Error).message.replace(/ imported from .*/s, ''))
  }
  const isOwn = found.url.startsWith('file:') && isBelow(fileURLToPath(found.url), sources)
  return isOwn ? refuse('from the router, a plugin may only import `inference-router/plugin`') : found
}

const load: NonNullable<Hooks['load']> = (url, context, next) => {
  const from = openedBy(url)
  if (!from) return next(url, context)
  const path = fileURLToPath(url)
  const source = from.texts?.get(path) ?? readFileSync(path, 'utf8')
  from.files.set(path, source)
  return { format: formats[extname(path)] as ModuleFormat, source, shortCircuit: true }
}

const formats: { readonly [ending: string]: ModuleFormat } = {
  '.ts': 'module-typescript',
  '.mts': 'module-typescript',
  '.js': 'module',
  '.mjs': 'module',
  '.json': 'json',
}

function ownModule(url: string) {
  const path = fileURLToPath(url)
  const format = formats[extname(path)]
  if (format) return { url, format, shortCircuit: true }
  throw new ImportError(path, '', `a plugin consists of ${Object.keys(formats).join(', ')} files`)
}

/** Checks whether a file belongs to a folder. Packages in the folder are not its own files. */
function isBelow(path: string, folder: string): boolean {
  const within = folder.endsWith(sep) ? folder : folder + sep
  return path.startsWith(within) && !path.slice(within.length - 1).includes(join(sep, 'node_modules', sep))
}

function isThere(path: string, { texts }: Opened): boolean {
  return texts?.has(path) || existsSync(path)
}

function endingHint(path: string, from: Opened): string {
  return isThere(`${path}.ts`, from) ? '; add its extension .ts' : ''
}
