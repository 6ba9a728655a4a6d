import type { Json } from '../core/json.ts'
import type { ModelDirectory } from '../management/names.ts'
import { formatProblem, type Problem } from '../manifest/check/problem.ts'
import { loadConfig } from '../snapshot/config.ts'
import { openStore, type Store } from '../store/open.ts'
import { isEngineError, StoreError, storeError } from '../store/store-error.ts'
import {
  type Args,
  actionNamed,
  CommandError,
  jsonText,
  type Out,
  parseArguments,
  runCommand,
  type Syntax,
} from './command.ts'
import { locateConfig } from './read-config.ts'

/** The result of an action: JSON for scripts, human-readable text for terminals. */
export type ActionResult = { json: Json; text: string }

/** The URL of the database that a configuration file names, or the one in the usual place. */
export type StoreUrl = (configPath: string | undefined) => string | Promise<string>

/** An action of a command on the database, such as `create`. */
export type StoreAction = Syntax & {
  /**
   * Checks the arguments before a database is opened, and returns what to do with it. `directory` loads the files of the
   * configuration, for arguments that name models. Throws UsageError, CommandError.
   */
  prepare(args: Args, directory: () => Promise<ModelDirectory>): StoreOperation | Promise<StoreOperation>
}

/** Work on an open database. */
export type StoreOperation = (store: Store) => ActionResult | Promise<ActionResult>

/** Runs one action of a command on the database of the configuration. Returns the exit code: 0 done, 1 failed, 2 wrong usage. */
export function runStoreAction(
  args: string[],
  actions: { readonly [name: string]: StoreAction },
  { help, out, storeUrl = configuredStoreUrl }: { help: string; out: Out; storeUrl?: StoreUrl | undefined },
): Promise<number> {
  return runCommand(args, { help, out }, async () => {
    const [name, ...rest] = args
    const action = actionNamed(actions, name)
    const parsed = parseArguments(rest, { ...action, options: { ...action.options, ...commonOptions } })
    const configPath = parsed.text('config')
    const operation = await action.prepare(parsed, () => loadDirectory(configPath))
    const { json, text } = await withStore(await storeUrl(configPath), operation)
    out.stdout(parsed.flag('json') ? jsonText(json) : `${text}\n`)
    return 0
  })
}

/** Runs work on the database of a URL and closes it. Throws CommandError when the database cannot be used. */
export async function withStore<Result>(
  url: string,
  work: (store: Store) => Result | Promise<Result>,
): Promise<Result> {
  try {
    const store = await openStore(url)
    try {
      return await work(store)
    } catch (thrown) {
      throw isEngineError(thrown) ? storeError(thrown, store.path) : thrown
    } finally {
      await store.close()
    }
  } catch (thrown) {
    throw thrown instanceof StoreError ? new CommandError(thrown.message) : thrown
  }
}

const commonOptions = { config: { type: 'string' }, json: { type: 'boolean' } } as const

/** Returns the URL of the database that a configuration file names. Throws CommandError. */
export async function configuredStoreUrl(configPath: string | undefined): Promise<string> {
  const { config, problems } = await loadConfig(locateConfig(configPath), process.env)
  if (!config) throw unreadable(problems)
  return config.store.url
}

async function loadDirectory(configPath: string | undefined): Promise<ModelDirectory> {
  // Loaded on demand: most actions need none of the files.
  const [{ readSnapshot }, { directoryOf }] = await Promise.all([
    import('./read-snapshot.ts'),
    import('../app/directory.ts'),
  ])
  const { snapshot, problems } = await readSnapshot(configPath)
  if (!snapshot) throw unreadable(problems)
  return directoryOf(snapshot)
}

function unreadable(problems: readonly Problem[]): CommandError {
  return new CommandError(problems.map(formatProblem).join('\n'))
}
