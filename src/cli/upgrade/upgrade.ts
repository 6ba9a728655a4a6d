import { existsSync } from 'node:fs'
import type { Problem } from '../../manifest/check/problem.ts'
import { loadConfig } from '../../snapshot/config.ts'
import { openStore } from '../../store/open.ts'
import { rehearseMigrations } from '../../store/sqlite/backup.ts'
import { pendingMigrations } from '../../store/sqlite/inspect.ts'
import { StoreError } from '../../store/store-error.ts'
import { run as check } from '../check.ts'
import { jsonText, type Out, parseArguments, problemLine, runCommand, UsageError } from '../command.ts'
import { locateConfig } from '../read-config.ts'
import { version } from '../version.ts'
import { type UpgradeNote, upgradeNotes, usedNames } from './changes.ts'

/** The text of `inference-router upgrade --help`. */
export const help = `Says what this version would do with a configuration, its files and its database. It changes nothing.

  inference-router upgrade --check [--rehearse] [--config FILE] [--json]

  --check        required: an upgrade itself is a start of the new version
  --rehearse     migrate a copy of the database as well, which is deleted afterwards, to see that it works and how long it takes
  --config FILE  the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json         print JSON: {version, state, database, problems, notes}

Run it with the new version, where the old one runs. The exit code is

  0  this version starts, and changes nothing for good
  3  it starts, but there is something to do first: tables that the start would change for good, names that are going to end
  1  it does not start, or leaves out files: errors in files, a database of a newer version, a damaged one
`

const flag = { type: 'boolean' } as const
const options = { check: flag, rehearse: flag, config: { type: 'string' }, json: flag } as const

/** Runs `inference-router upgrade`. Returns the exit code. */
export function run(args: string[], out: Out): Promise<number> {
  return runCommand(args, { help, out }, async () => {
    const { text, flag } = parseArguments(args, { options })
    if (!flag('check'))
      throw new UsageError('write upgrade --check: the router itself changes its database when a newer version starts')
    const path = locateConfig(text('config'))
    const { config, source } = await loadConfig(path, process.env)
    const problems = await problemsOf(path)
    const database = config ? await databaseState(config.store.url, flag('rehearse')) : { state: 'unknown' as const }
    const notes = upgradeNotes(usedNames(source.value, process.env))
    const found: Found = { problems, database, notes }
    const state = stateOf(found)
    out.stdout(flag('json') ? jsonText({ version, state, ...found }) : asText(found, state))
    return exitCodes[state]
  })
}

/** `act`: there is something to do before the start. */
type State = 'ready' | 'act' | 'refused'

const exitCodes: { readonly [state in State]: number } = { ready: 0, act: 3, refused: 1 }

type DatabaseState = {
  state: 'unknown' | 'new' | 'current' | 'older' | 'refused'
  path?: string
  migrations?: string[]
  isServing?: boolean
  rehearsedMs?: number
  reason?: string
}

type Found = { problems: Problem[]; database: DatabaseState; notes: UpgradeNote[] }

/** Returns all problems that this version finds in the files of a configuration. */
async function problemsOf(path: string): Promise<Problem[]> {
  let printed = ''
  const collect = {
    stdout: (text: string) => {
      printed += text
    },
    stderr: () => {},
  }
  await check(['--json', '--config', path], collect)
  return (JSON.parse(printed) as { problems: Problem[] }).problems
}

async function databaseState(url: string, rehearse: boolean): Promise<DatabaseState> {
  const path = url.slice('sqlite:'.length)
  if (path === ':memory:' || !existsSync(path)) return { state: 'new', path }
  try {
    const { names, isServing } = pendingMigrations(path)
    if (names.length === 0) return { state: 'current', path, isServing }
    const rehearsed = rehearse
      ? await rehearseMigrations(path, async (copy) => (await openStore(`sqlite:${copy}`)).close())
      : undefined
    const rehearsal = rehearsed === undefined ? {} : { rehearsedMs: Math.ceil(rehearsed) }
    return { state: 'older', path, migrations: names, isServing, ...rehearsal }
  } catch (thrown) {
    if (!(thrown instanceof StoreError)) throw thrown
    return { state: 'refused', path, reason: thrown.message }
  }
}

function stateOf({ problems, database }: Found): State {
  if (database.state === 'refused' || problems.some(({ severity }) => severity !== 'warning')) return 'refused'
  return database.state === 'older' || problems.some(isDeprecation) ? 'act' : 'ready'
}

/** Checks whether a warning is about something that a later version takes differently: an old name, or a copy of an older file. */
function isDeprecation({ message }: Problem): boolean {
  return /has been renamed to|is the old name of|older than the shipped|is no longer shipped/.test(message)
}

function asText({ problems, database, notes }: Found, state: State): string {
  const concerning = notes.filter(({ concerns }) => concerns.length > 0)
  const others = notes.filter(({ concerns }) => concerns.length === 0)
  const sections = [
    ['Database', databaseText(database)],
    ['Files', problems.length === 0 ? 'no problems\n' : problems.map(problemLine).join('')],
    [
      'Changes that name settings, plugins or variables of yours',
      concerning.map(({ text, concerns }) => `${text} (you use ${concerns.join(', ')})\n`).join(''),
    ],
    [
      notes.length === 0 ? 'Changes' : 'Other changes',
      notes.length === 0
        ? 'see CHANGELOG.md of this version, which is not here\n'
        : others.map(({ title }) => `${title}\n`).join(''),
    ],
  ].filter(([, text]) => text !== '')
  const body = sections.map(([title = '', text = '']) => `${title}:\n${text.replace(/^(?=.)/gm, '  ')}\n`).join('')
  return `${body}inference-router ${version} ${conclusions[state]}\n`
}

const conclusions: { readonly [state in State]: string } = {
  ready: 'starts with this, and changes nothing for good.',
  act: 'starts with this. Do what stands above first: there is no way back but a backup.',
  refused: 'does not start with this, or leaves out what has errors.',
}

function databaseText({ state, path, migrations = [], isServing, rehearsedMs, reason }: DatabaseState): string {
  if (state === 'unknown') return 'not known: the configuration has errors\n'
  if (state === 'refused') return `${reason}\n`
  if (state === 'new') return `${path} will be created\n`
  if (state === 'current') return `${path} has the tables of this version\n`
  const rehearsal = rehearsedMs === undefined ? '' : `A copy was migrated in ${rehearsedMs} ms.\n`
  const stop = isServing ? 'A router runs with it: stop that one, serve --takeover cannot change tables.\n' : ''
  return `${path} has older tables, which the start changes for good: ${migrations.join('; ')}
Make a backup first: inference-router backup FILE. An older version needs it to start again.
${stop}${rehearsal}`
}
