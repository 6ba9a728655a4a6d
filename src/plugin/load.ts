import { existsSync, readdirSync } from 'node:fs'
import type { JsonObject } from '../core/json.ts'
import { didYouMean } from '../manifest/check/did-you-mean.ts'
import { hasErrors, type Problem } from '../manifest/check/problem.ts'
import type { Texts } from '../manifest/read/folder.ts'
import type { Place } from '../manifest/read/position.ts'
import { memberOf, type Source } from '../manifest/read/source.ts'
import type { Hooks, Plugin } from './contract.ts'
import { catchUncaughtErrors, inPlugin } from './faults.ts'
import { entryOf, isUnchanged, type PluginInstance } from './instances.ts'
import { type KitServices, openKit } from './kit.ts'
import type { LoadedPlugin } from './loaded.ts'
import { ImportError, openModules, pluginFile } from './modules.ts'
import { checkOptions, type PluginSettings } from './settings.ts'
import { hooksProblem, pluginProblem } from './shape.ts'
import { within } from './within.ts'

/** `previous` are those of the last generation: unchanged ones are not set up again. With `texts` the disk is not read. */
export type LoadOptions = {
  /** Folders of the plugins: one of the first folder goes before one of the same name in the next. */
  folders: readonly string[]
  /** The configuration file, in which wrong options stand. */
  source: Source
  services: KitServices
  previous?: readonly PluginInstance[]
  texts?: Texts | undefined
  /** Plugins that are not set up. */
  except?: ReadonlySet<string>
  /** Maximum time of loading, setting up and ending a plugin, each. Milliseconds. */
  maxMs?: number
}

/** A plugin whose files cannot be used, and what it says itself about its failures, as far as that is known. */
export type BrokenPlugin = Pick<Loaded, 'problems' | 'onError' | 'isAbsent'> & { name: string }

/** Plugins that are set up, those that cannot be, and the problems of all of them, besides those of config.yaml. */
export type LoadedPlugins = { instances: PluginInstance[]; broken: BrokenPlugin[]; problems: Problem[] }

/** Sets up all plugins, one after the other. */
export async function loadPlugins(settings: readonly PluginSettings[], options: LoadOptions): Promise<LoadedPlugins> {
  const instances: PluginInstance[] = []
  const broken: BrokenPlugin[] = []
  const problems: Problem[] = []
  for (const [index, one] of settings.entries()) {
    const { name } = one
    if (options.except?.has(name)) continue
    const loaded = await loadPlugin(one, index, settings, options)
    problems.push(...loaded.problems)
    if (loaded.instance) instances.push(loaded.instance)
    else if (loaded.isBroken) broken.push({ name, ...loaded })
  }
  return { instances, broken, problems }
}

/**
 * A plugin that is set up, if it could be, and its problems. `isBroken`: its own files are the reason why not, and `onError` is what it says
 * about its failures.
 */
type Loaded = {
  instance?: PluginInstance
  problems: Problem[]
  isBroken?: boolean
  /** Set where the plugin has no file. */
  isAbsent?: boolean
  onError?: LoadedPlugin['onError'] | undefined
}

async function loadPlugin(
  settings: PluginSettings,
  index: number,
  all: readonly PluginSettings[],
  { folders, source, services, previous = [], texts, maxMs = usualMaxMs }: LoadOptions,
): Promise<Loaded> {
  const { name, options, fetch } = settings
  const refused = (message: string) => ({ problems: [source.problem(['plugins', index, 'name'], message)] })
  if (all.findIndex((one) => one.name === name) < index) return refused(`the plugin \`${name}\` is listed twice`)
  const found = entryOf(name, folders, texts)
  if (found === undefined) return { ...refused(absent(name, folders)), isBroken: true, isAbsent: true }
  const { file: entry, folder } = found
  const about = JSON.stringify([options, fetch])
  const same = previous.find((one) => one.name === name && one.entry === entry && one.about === about)
  if (same && (await isUnchanged(same.files, texts))) return { instance: same, problems: [] }
  const modules = openModules(folder, texts)
  const { files } = modules
  let plugin: Plugin<JsonObject>
  try {
    const { default: exported } = await within(
      inPlugin(name, () => modules.load(entry)),
      maxMs,
      `it was not loaded within ${maxMs} ms`,
    )
    const wrong = pluginProblem(exported)
    if (wrong) return { problems: [problemAt(entry, files.get(entry) ?? '', wrong.at, wrong.message)], isBroken: true }
    plugin = exported as Plugin<JsonObject>
  } catch (thrown) {
    return { problems: [problemOf(thrown, entry, files)], isBroken: true }
  }
  const place = memberOf(source, ['plugins', index, 'options'])
  const blame = (message: string) => problemAt(entry, files.get(entry) ?? '', /\boptions\b/, message)
  const { renamedOptions: renamed, options: schema } = plugin
  const checked = checkOptions(options, { schema, renamed, source: place, name, problemOf: blame })
  const { onError } = plugin
  if (hasErrors(checked.problems)) {
    // Options that were accepted before are wrong because of the plugin.
    const isBroken = checked.problems.some(({ file }) => file === entry) || same !== undefined
    return { problems: checked.problems, isBroken, onError }
  }
  const made = await setUp(plugin, { name, entry, files, about, fetch, options: checked.options, services, maxMs })
  const problems = [...checked.problems, ...made.problems]
  return made.instance ? { problems, instance: made.instance } : { problems, isBroken: true, onError }
}

type SetUp = Pick<PluginInstance, 'name' | 'entry' | 'files' | 'about'> & {
  fetch: readonly string[]
  options: JsonObject
  services: KitServices
  maxMs: number
}

async function setUp(plugin: Plugin<JsonObject>, own: SetUp): Promise<Loaded> {
  const { name, entry, files, about, fetch, options, services, maxMs } = own
  const { kit, close: closeKit } = openKit(name, fetch, services)
  const end = async (hooks?: Hooks) => {
    try {
      const dispose = hooks?.[Symbol.asyncDispose]
      if (dispose)
        await within(
          inPlugin(name, () => dispose.call(hooks)),
          maxMs,
          `it did not end within ${maxMs} ms`,
        )
    } catch (err) {
      kit.log.error({ err }, 'the plugin failed to end')
    }
    await closeKit()
  }
  catchUncaughtErrors()
  const setting = inPlugin(name, async () => await plugin.setup(options, kit))
  let hooks: Hooks
  try {
    hooks = (await within(setting, maxMs, `it was not set up within ${maxMs} ms`)) ?? {}
    const wrong = hooksProblem(hooks)
    if (wrong) {
      await end()
      return { problems: [problemAt(entry, files.get(entry) ?? '', wrong.at, wrong.message)] }
    }
  } catch (thrown) {
    // A plugin that is ready after all is not used.
    setting.then(end, () => end())
    return { problems: [problemOf(thrown, entry, files, '`setup`: ')] }
  }
  let ended: Promise<void> | undefined
  const close = () => {
    ended ??= end(hooks)
    return ended
  }
  const { timeoutMs = usualTimeoutMs, onError = 'open', guards = false } = plugin
  return { instance: { name, hooks, timeoutMs, onError, guards, entry, files, about, close }, problems: [] }
}

const usualMaxMs = 5_000
const usualTimeoutMs = 1_000

function absent(name: string, folders: readonly string[]): string {
  const [folder = ''] = folders
  return `there is no plugin \`${name}\`: neither ${name}.ts nor ${name}/index.ts in ${folder}${didYouMean(name, folders.flatMap(namesIn))}`
}

function namesIn(folder: string): string[] {
  const files = existsSync(folder) ? readdirSync(folder) : []
  return files
    .filter((file) => !/\.test\.[jt]s$|\.json$|^\.|^node_modules$/.test(file))
    .map((file) => file.replace(/\.[jt]s$/, ''))
}

/** Returns the problem of a plugin, at the place in its files that an error names; else at the beginning of `file`. */
function problemOf(thrown: unknown, file: string, files: ReadonlyMap<string, string>, what = ''): Problem {
  const blame = (place: Place & { file: string }, message: string): Problem => ({
    file: place.file,
    line: place.line,
    column: place.column,
    message: what + firstLine(message),
    severity: 'error',
  })
  if (thrown instanceof ImportError) {
    const text = files.get(thrown.file) ?? ''
    return blame({ file: thrown.file, ...placeOf(text, importIn(text, thrown.specifier)) }, thrown.message)
  }
  if (!(thrown instanceof Error)) return blame({ file, ...start }, `it threw ${String(thrown)}`)
  return blame(syntaxPlace(thrown) ?? framePlace(thrown) ?? { file, ...start }, thrown.message)
}

/** Returns a problem at the first match of a pattern in a text; else at its beginning. */
function problemAt(file: string, text: string, pattern: RegExp, message: string): Problem {
  return { file, ...placeOf(text, Math.max(0, text.search(pattern))), message, severity: 'error' }
}

const start: Place = { line: 1, column: 1 }
const maxLength = 300

function firstLine(message: string): string {
  const line = message.split('\n', 1)[0] ?? ''
  return line.length > maxLength ? `${line.slice(0, maxLength)}…` : line
}

/** Finds the place at which Node could not parse the text: the first line of the stack is the place, and a caret points to the column. */
function syntaxPlace({ stack = '' }: Error): (Place & { file: string }) | undefined {
  const [, url = '', line] = /^(file:\S+):(\d+)\n/.exec(stack) ?? []
  const file = pluginFile(url)
  if (file === undefined) return undefined
  const column = (/^( *)\^+ *$/m.exec(stack)?.[1]?.length ?? 0) + 1
  return { file, line: Number(line), column }
}

/** Returns the innermost frame that is in a file of a plugin. */
function framePlace({ stack = '' }: Error): (Place & { file: string }) | undefined {
  for (const [, url = '', line, column] of stack.matchAll(/(file:[^\s()]+):(\d+):(\d+)/g)) {
    const file = pluginFile(url)
    if (file !== undefined) return { file, line: Number(line), column: Number(column) }
  }
  return undefined
}

function importIn(text: string, specifier: string): number {
  const quoted = ["'", '"', '`'].map((quote) => text.indexOf(quote + specifier + quote)).filter((at) => at >= 0)
  return specifier === '' ? 0 : Math.min(...quoted, text.length)
}

function placeOf(text: string, offset: number): Place {
  const before = text.slice(0, offset)
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') }
}
