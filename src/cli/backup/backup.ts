import { resolve } from 'node:path'
import { writeBackup } from '../../store/sqlite/backup.ts'
import { StoreError } from '../../store/store-error.ts'
import { CommandError, jsonText, type Out, parseArguments, relativePath, runCommand, UsageError } from '../command.ts'
import { configuredStoreUrl } from '../store-command.ts'

/** The text of `inference-router backup --help`. */
export const help = `Copies the database to a file, also while a router runs with it.

  inference-router backup FILE [--without-content] [--config FILE] [--json]

  FILE               a file that does not exist yet; only you can read it
  --without-content  leave out what clients and providers wrote: stored responses, messages of providers, values of plugins
  --config FILE      the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json             print JSON

The copy is the state of one moment, and is checked before it gets its name. It has organizations, keys (as hashes), the ledger and the
log of changes. It does not have config.yaml, providers, catalog, plugins, files of log-payloads, and .env with its secrets.
restore puts it back.
`

const options = {
  'without-content': { type: 'boolean' },
  config: { type: 'string' },
  json: { type: 'boolean' },
} as const

/** Runs `inference-router backup`. Returns the exit code. */
export function run(args: string[], out: Out): Promise<number> {
  return runCommand(args, { help, out }, async () => {
    const { positionals, text, flag } = parseArguments(args, { options, positionals: 1 })
    const [named] = positionals
    if (!named) throw new UsageError('name the file: backup FILE')
    const file = resolve(named)
    const path = databaseIn(await configuredStoreUrl(text('config')))
    const contents = await orCommandError(() => writeBackup(path, file, { withoutContent: flag('without-content') }))
    out.stdout(flag('json') ? jsonText({ file, database: path, ...contents }) : asText(file, contents))
    return 0
  })
}

function asText(file: string, { bytes, newestCall, waitingRows }: Awaited<ReturnType<typeof writeBackup>>): string {
  const until = newestCall === undefined ? 'without calls' : `with calls until ${new Date(newestCall).toISOString()}`
  const waiting =
    waitingRows === 0
      ? ''
      : `${waitingRows} rows wait in the spill file for the database; they are not in the backup.\n`
  return `${relativePath(file)}: ${(bytes / 1e6).toFixed(1)} MB, ${until}\n${waiting}`
}

/** Returns the path of the file that a store's URL names. Throws CommandError for a database in memory. */
export function databaseIn(url: string): string {
  const path = url.slice('sqlite:'.length)
  if (path !== ':memory:') return path
  throw new CommandError('The database of this configuration is in memory: it ends with the router.')
}

/** Runs work on a database. Throws CommandError where that throws StoreError. */
export async function orCommandError<Result>(work: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (thrown) {
    throw thrown instanceof StoreError ? new CommandError(thrown.message) : thrown
  }
}
