import { resolve } from 'node:path'
import { type Restored, restoreBackup } from '../../store/sqlite/backup.ts'
import { jsonText, type Out, parseArguments, relativePath, runCommand, UsageError } from '../command.ts'
import { configuredStoreUrl } from '../store-command.ts'
import { databaseIn, orCommandError } from './backup.ts'

/** The text of `inference-router restore --help`. */
export const help = `Puts a backup in the place of the database. No router may run with it.

  inference-router restore FILE [--force] [--config FILE] [--json]

  --force        also where the database is newer than the backup, cannot be read, or was written by a newer version
  --config FILE  the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json         print JSON

The backup is checked first. The database that it replaces is not deleted: it gets another name in the same folder. What happened since the
backup is not in the restored one: calls, credit, limits, and the end of keys. Keys that were revoked or rotated since work again; they are listed.
`

const options = { force: { type: 'boolean' }, config: { type: 'string' }, json: { type: 'boolean' } } as const

/** Runs `inference-router restore`. Returns the exit code. */
export function run(args: string[], out: Out): Promise<number> {
  return runCommand(args, { help, out }, async () => {
    const { positionals, text, flag } = parseArguments(args, { options, positionals: 1 })
    const [named] = positionals
    if (!named) throw new UsageError('name the backup: restore FILE')
    const path = databaseIn(await configuredStoreUrl(text('config')))
    const restored = await orCommandError(() => restoreBackup(resolve(named), path, { force: flag('force') }))
    const { contents, replaced, revivedKeys } = restored
    const json = {
      database: path,
      ...contents,
      ...(replaced !== undefined && { replaced }),
      keys_that_work_again: revivedKeys,
    }
    out.stdout(flag('json') ? jsonText(json) : asText(path, restored))
    return 0
  })
}

function asText(path: string, { contents: { newestCall }, replaced, revivedKeys }: Restored): string {
  const until = newestCall === undefined ? 'no calls' : `calls until ${new Date(newestCall).toISOString()}`
  const aside = replaced === undefined ? '' : `The database before is ${relativePath(replaced)}.\n`
  const keys =
    revivedKeys.length === 0
      ? ''
      : `These keys work again; revoke them with \`inference-router key revoke <id>\`:\n${revivedKeys.map((id) => `  ${id}\n`).join('')}`
  return `${relativePath(path)} is restored, with ${until}.\n${aside}${keys}`
}
