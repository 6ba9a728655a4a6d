import { type ParseArgsConfig, parseArgs } from 'node:util'
import type { Json } from '../core/json.ts'
import type { Directory } from '../management/names.ts'
import { formatProblem, type Problem } from '../manifest/problem.ts'
import { findConfig, loadConfig } from '../snapshot/config.ts'
import { openStore, type Store } from '../store/open.ts'
import { isEngineError, StoreError, storeError } from '../store/store-error.ts'

/** Where a command prints. */
export type Out = { stdout: (text: string) => void; stderr: (text: string) => void }

/** The words after an action, parsed: `text` gives an option or undefined, `texts` all of a repeated one. */
export type Words = {
  positionals: readonly string[]
  text(name: string): string | undefined
  texts(name: string): readonly string[]
}

/** What an action says: as JSON for scripts, as text for people. */
export type Answer = { json: Json; text: string }

/** The address of the database: of the configuration in a file, or in the usual place. */
export type StoreUrl = (configPath: string | undefined) => string | Promise<string>

/** One action of a command, such as `create`. */
export type Action = {
  options: NonNullable<ParseArgsConfig['options']>
  /** How many words without a dash it takes at most. */
  positionals: number
  /**
   * Reads its words, before any database is opened, and gives what is to be done. `known` reads the files of the
   * configuration, for words that are names of models. Throws WrongUsage, CannotDo.
   */
  read(words: Words, known: () => Promise<Directory>): Act | Promise<Act>
}

/** What is to be done with the database. */
export type Act = (store: Store) => Answer

/** The command was written wrongly: exit code 2. */
export class WrongUsage extends Error {}

/** The command was understood and cannot be done: exit code 1. */
export class CannotDo extends Error {}

/** Runs one action of a command on the database that the configuration names. Returns the exit code: 0 done, 1 cannot be done, 2 wrong usage. */
export async function runAction(
  [name, ...words]: string[],
  actions: { readonly [name: string]: Action },
  help: string,
  out: Out,
  storeUrl: StoreUrl = configuredStoreUrl,
): Promise<number> {
  if (name === '--help' || name === '-h' || words.includes('--help') || words.includes('-h')) {
    out.stdout(help)
    return 0
  }
  try {
    const action = Object.hasOwn(actions, name ?? '') ? actions[name as string] : undefined
    if (!action)
      throw new WrongUsage(`${name ? `there is no '${name}'` : 'say what to do'}: ${Object.keys(actions).join(', ')}`)
    const { values, positionals } = parsed(words, action)
    const configPath = values.config as string | undefined
    const act = await action.read(wordsOf(values, positionals), () => configuredNames(configPath))
    const answer = withStore(await storeUrl(configPath), act)
    out.stdout(values.json ? `${JSON.stringify(answer.json, null, 2)}\n` : `${answer.text}\n`)
    return 0
  } catch (thrown) {
    if (thrown instanceof WrongUsage) {
      out.stderr(`${thrown.message}\n\n${help}`)
      return 2
    }
    if (!(thrown instanceof CannotDo || thrown instanceof StoreError)) throw thrown
    out.stderr(`${thrown.message}\n`)
    return 1
  }
}

/** Rows of text in columns, the first row being the head. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return rows.map((row) => line(row).trimEnd()).join('\n')
}

const commonOptions = { config: { type: 'string' }, json: { type: 'boolean' } } as const

type Values = { [name: string]: string | boolean | (string | boolean)[] | undefined }

function parsed(args: string[], action: Action): { values: Values; positionals: string[] } {
  try {
    const options = { ...action.options, ...commonOptions }
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true })
    const surplus = positionals[action.positionals]
    if (surplus !== undefined) throw new WrongUsage(`'${surplus}' is one word too many`)
    return { values: { ...values }, positionals }
  } catch (thrown) {
    // What parseArgs throws is about the words of the user; its codes begin alike.
    if (thrown instanceof Error && `${(thrown as NodeJS.ErrnoException).code}`.startsWith('ERR_PARSE_ARGS')) {
      throw new WrongUsage(thrown.message)
    }
    throw thrown
  }
}

function wordsOf(values: Values, positionals: string[]): Words {
  return {
    positionals,
    text: (name) => (typeof values[name] === 'string' ? values[name] : undefined),
    texts: (name) => [values[name] ?? []].flat().filter((value) => typeof value === 'string'),
  }
}

function withStore(url: string, act: Act): Answer {
  const store = openStore(url)
  try {
    return act(store)
  } catch (thrown) {
    throw isEngineError(thrown) ? storeError(thrown, store.path) : thrown
  } finally {
    store.close()
  }
}

async function configuredStoreUrl(configPath: string | undefined): Promise<string> {
  const { config, problems } = await loadConfig(findConfig(configPath, process.env), process.env)
  if (!config) throw unreadable(problems)
  return config.store.url
}

async function configuredNames(configPath: string | undefined): Promise<Directory> {
  // Most commands need none of the files.
  const [{ buildSnapshot }, { directoryOf }] = await Promise.all([
    import('../snapshot/snapshot.ts'),
    import('../directory.ts'),
  ])
  const { snapshot, problems } = await buildSnapshot(configPath, process.env)
  if (!snapshot) throw unreadable(problems)
  return directoryOf(snapshot)
}

function unreadable(problems: readonly Problem[]): CannotDo {
  return new CannotDo(problems.map(formatProblem).join('\n'))
}
