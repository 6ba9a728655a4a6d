import type { FSWatcher } from 'chokidar'
import {
  type FileProblem,
  formatFileProblem,
  formatProblem,
  hasErrors,
  isFileProblem,
  type Problem,
} from '../manifest/check/problem.ts'
import type { Environment } from '../manifest/read/environment.ts'
import { type Config, needRestart } from './config.ts'
import { pathsOf, shippedDialects } from './folders.ts'
import { pluginFolders } from './load-plugins.ts'
import { PluginHost } from './plugin-host.ts'
import { type After, type Built, buildSnapshot, type Snapshot } from './snapshot.ts'

/** The current snapshot, and the problems of files that it does not have in their newest version. */
export type Watch = {
  current(): Snapshot
  /** Returns why files are not in use, or not in their newest version; empty when all are. */
  problems(): readonly FileProblem[]
  /** Returns the number of changes that were refused, as a whole or for one file. */
  refusals(): number
  close(): Promise<void>
}

/** `notes` are warnings, and settings that need a restart. */
export type WatchListeners = {
  /** Asks others that must have the same snapshot before it is used, and returns their problems. */
  prepare?(next: Snapshot): Promise<readonly Problem[]>
  onSwap?(snapshot: Snapshot, notes: string[]): void
  /** Called when the problems have changed, with all of them and with those that are new. */
  onProblems?(problems: readonly FileProblem[], added: readonly FileProblem[]): void
}

/** `problems` are those of the first snapshot; with `strict` one file with an error holds back every change. */
export type WatchOptions = {
  plugins?: PluginHost
  problems?: readonly FileProblem[]
  strict?: boolean | undefined
}

/**
 * Files are read when nothing has changed for this long: an editor or a copy writes in several steps. A file that changes all the time does
 * not keep the others waiting for longer than `maxQuietMs`.
 */
const quietMs = 100
const maxQuietMs = 2_000

/**
 * Builds a new snapshot whenever the configuration, a manifest, a dialect, the catalog or a plugin changes, which replaces the old one at once
 * and as a whole. A file with an error stays as it was, or is left out, and is reported.
 */
export function watchSnapshot(
  initial: Snapshot,
  env: Environment,
  listeners: WatchListeners = {},
  { plugins = new PluginHost(), problems: first = [], strict }: WatchOptions = {},
): Watch {
  let snapshot = initial
  const reports = new ProblemReports(first, listeners)
  const { report } = reports
  let building: Promise<void> | undefined
  let isStale = false
  let isClosed = false
  const quiet = new QuietTimer(rebuild)
  const notice = () => !isClosed && quiet.restart()
  let watched = watchFiles(initial.config, notice)

  /** Runs one build at a time; files that change meanwhile are read by the next one. */
  function rebuild(): void {
    isStale = building !== undefined
    building ??= build().finally(() => {
      building = undefined
      if (isStale && !isClosed) rebuild()
    })
  }

  async function build(): Promise<void> {
    const built = await buildOrExplain(snapshot, env, { previous: snapshot, services: plugins.services, strict })
    if (isClosed) {
      if (built.snapshot) plugins.discard(built.snapshot, snapshot)
    } else if (!built.snapshot) report(built.problems.filter((one) => hasErrors([one])).map(ofAll))
    else if (built.snapshot === snapshot) report(built.problems.filter(isFileProblem))
    else await prepareAndSwap(built.snapshot, built.problems)
  }

  async function prepareAndSwap(next: Snapshot, found: Built['problems']): Promise<void> {
    const failed = (await listeners.prepare?.(next)) ?? []
    if (failed.length > 0) report([...failed.map(ofAll), ...found.filter(isFileProblem)])
    if (failed.length > 0 || isClosed) plugins.discard(next, snapshot)
    else await swap(next, found)
  }

  async function swap(next: Snapshot, found: Built['problems']): Promise<void> {
    const { config: before } = snapshot
    plugins.replace(snapshot, next)
    snapshot = next
    const waiting = needRestart(initial.config, next.config)
    const notes = waiting.map((name) => `${name} has changed: restart the router to use it`)
    const warnings = found.filter((one) => !isFileProblem(one))
    listeners.onSwap?.(next, [...warnings.map(formatProblem), ...notes])
    report(found.filter(isFileProblem))
    if (watchedPaths(before).join('\n') === watchedPaths(next.config).join('\n')) return
    await watched.close()
    if (!isClosed) watched = watchFiles(next.config, notice)
  }

  return {
    current: () => snapshot,
    problems: () => reports.problems,
    refusals: () => reports.refusals,
    async close() {
      isClosed = true
      quiet.stop()
      await building
      await watched.close()
    },
  }
}

/** The problems of the files, and how many changes were refused. */
class ProblemReports {
  problems: readonly FileProblem[]
  refusals = 0
  readonly #listeners: WatchListeners

  constructor(first: readonly FileProblem[], listeners: WatchListeners) {
    this.problems = first
    this.#listeners = listeners
  }

  /** Reports problems once: one that is still there is not reported again. */
  readonly report = (found: readonly FileProblem[]): void => {
    const known = new Set(this.problems.map(formatFileProblem))
    const added = found.filter((one) => !known.has(formatFileProblem(one)))
    const isSame = added.length === 0 && found.length === this.problems.length
    if (added.length > 0) this.refusals++
    this.problems = found
    if (!isSame) this.#listeners.onProblems?.(found, added)
  }
}

/** Calls a function when it has not been restarted for a while. */
class QuietTimer {
  readonly #call: () => void
  #timer: NodeJS.Timeout | undefined
  #since: number | undefined

  constructor(call: () => void) {
    this.#call = call
  }

  restart(): void {
    this.#since ??= performance.now()
    clearTimeout(this.#timer)
    const left = this.#since + maxQuietMs - performance.now()
    this.#timer = setTimeout(() => this.#end(), Math.max(0, Math.min(quietMs, left)))
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #end(): void {
    this.#since = undefined
    this.#call()
  }
}

/** Returns a problem because of which all files stay as they were. */
function ofAll(problem: Problem): FileProblem {
  return isFileProblem(problem) ? problem : { ...problem, kind: 'config', effect: 'the previous files stay in use' }
}

async function buildOrExplain({ config: { path } }: Snapshot, env: Environment, after: After): Promise<Built> {
  try {
    return await buildSnapshot(path, env, after)
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
