import type { FSWatcher } from 'chokidar'
import { formatProblem, type Problem } from '../manifest/check/problem.ts'
import type { Environment } from '../manifest/read/environment.ts'
import { type Config, needRestart } from './config.ts'
import { pathsOf, shippedDialects } from './folders.ts'
import { pluginFolders } from './load-plugins.ts'
import { PluginHost } from './plugin-host.ts'
import { buildSnapshot, type Snapshot } from './snapshot.ts'

/** The current snapshot, and the problems of a rejected one since. */
export type Watch = {
  current(): Snapshot
  /** Returns why the newest state of the files is not in use; empty when it is. */
  problems(): readonly Problem[]
  /** Returns the number of refused changes. */
  refusals(): number
  close(): Promise<void>
}

/** `notes` are warnings, and settings that need a restart. */
export type WatchListeners = {
  /** Asks others that must have the same snapshot before it is used, and returns their problems. */
  prepare?(next: Snapshot): Promise<readonly Problem[]>
  onSwap?(snapshot: Snapshot, notes: string[]): void
  /** Called with new problems, or with none when they are gone. */
  onProblems?(problems: readonly Problem[]): void
}

/** Files are read when nothing has changed for this long: an editor or a copy writes in several steps. */
const quietMs = 100

/**
 * Builds a new snapshot whenever the configuration, a manifest, a dialect, the catalog or a plugin changes. One that
 * has an error changes nothing and is reported; one without replaces the old one at once and as a whole.
 */
export function watchSnapshot(
  initial: Snapshot,
  env: Environment,
  listeners: WatchListeners = {},
  plugins: PluginHost = new PluginHost(),
): Watch {
  let snapshot = initial
  let problems: readonly Problem[] = []
  let refused = 0
  let building: Promise<void> | undefined
  let isStale = false
  let isClosed = false
  let quiet: NodeJS.Timeout | undefined
  let watched = watchFiles(initial.config, notice)

  function notice(): void {
    clearTimeout(quiet)
    if (!isClosed) quiet = setTimeout(rebuild, quietMs)
  }

  /** Runs one build at a time; files that change meanwhile are read by the next one. */
  function rebuild(): void {
    isStale = building !== undefined
    building ??= build().finally(() => {
      building = undefined
      if (isStale && !isClosed) rebuild()
    })
  }

  async function build(): Promise<void> {
    const built = await buildOrExplain(snapshot, env, plugins)
    if (isClosed) {
      if (built.snapshot) plugins.discard(built.snapshot, snapshot)
    } else if (!built.snapshot) report(built.problems)
    else if (built.snapshot === snapshot) report([])
    else await prepareAndSwap(built.snapshot, built.problems)
  }

  async function prepareAndSwap(next: Snapshot, warnings: readonly Problem[]): Promise<void> {
    const found = (await listeners.prepare?.(next)) ?? []
    if (found.length > 0) report(found)
    if (found.length > 0 || isClosed) plugins.discard(next, snapshot)
    else await swap(next, warnings)
  }

  async function swap(next: Snapshot, warnings: readonly Problem[]): Promise<void> {
    const { config: before } = snapshot
    plugins.replace(snapshot, next)
    snapshot = next
    problems = []
    const waiting = needRestart(initial.config, next.config)
    const notes = waiting.map((name) => `${name} has changed: restart the router to use it`)
    listeners.onSwap?.(next, [...warnings.map(formatProblem), ...notes])
    if (watchedPaths(before).join('\n') === watchedPaths(next.config).join('\n')) return
    await watched.close()
    if (!isClosed) watched = watchFiles(next.config, notice)
  }

  function report(found: readonly Problem[]): void {
    if (found.length > 0) refused++
    if (found.length > 0 || problems.length > 0) listeners.onProblems?.(found)
    problems = found
  }

  return {
    current: () => snapshot,
    problems: () => problems,
    refusals: () => refused,
    async close() {
      isClosed = true
      clearTimeout(quiet)
      await building
      await watched.close()
    },
  }
}

async function buildOrExplain(
  previous: Snapshot,
  env: Environment,
  { services }: PluginHost,
): ReturnType<typeof buildSnapshot> {
  const { path } = previous.config
  try {
    return await buildSnapshot(path, env, { previous, services })
  } catch (error) {
    // A file that breaks the reading itself must not take the running router down.
    const message = `the files cannot be read: ${(error as Error).message}`
    return { problems: [{ file: path, line: 1, column: 1, message, severity: 'error' }] }
  }
}

function watchedPaths({ path, folders }: Config): string[] {
  const yaml = [...pathsOf(folders.providers), ...pathsOf(folders.catalog)]
  return [path, ...new Set([...yaml, ...pluginFolders(folders), shippedDialects])]
}

/** The watcher begins a moment later, when the first call has been answered: it looks at every file. */
const beginsAfterMs = 300

function watchFiles(config: Config, notice: () => void): Pick<FSWatcher, 'close'> {
  let isClosed = false
  let files: FSWatcher | undefined
  const begin = async () => {
    const chokidar = await import('chokidar')
    if (!isClosed) files = openWatcher(chokidar, config, notice)
  }
  const timer = setTimeout(begin, beginsAfterMs).unref()
  return {
    async close() {
      isClosed = true
      clearTimeout(timer)
      await files?.close()
    },
  }
}

/** Opens the watcher. Files and folders that do not exist yet are seen when they appear. */
function openWatcher({ watch }: typeof import('chokidar'), config: Config, notice: () => void): FSWatcher {
  const paths = watchedPaths(config)
  const isHidden = (path: string) => /[\\/](?:\.[^\\/]+|node_modules)$/.test(path) && !paths.includes(path)
  const files = watch(paths, { ignoreInitial: true, ignored: isHidden })
  // What changed before the watcher knew all files is seen by looking once more.
  files.on('all', notice).on('ready', notice)
  // Without a watcher the router keeps serving the current snapshot; the next start reads everything.
  return files.on('error', () => {})
}
