import { version } from './cli/version.ts'
import { printable } from './core/printable.ts'
import { keepCode } from './runtime/cache-folder.js'
import { resolveSources } from './runtime/resolve-sources.ts'
import { restartAsServer } from './runtime/restart.ts'

// Also where this file itself is started.
keepCode()
if (process.argv[2] === 'serve') restartAsServer()
resolveSources()

/** One command: `run` takes the arguments after its name and returns the exit code. */
type Command = {
  run(args: string[], out: { stdout: (text: string) => void; stderr: (text: string) => void }): Promise<number>
}

/** Each command is imported only when it is called: `check` needs no database, `key` no HTTP. */
const commands: Record<string, { about: string; load: () => Promise<Command> }> = {
  serve: { about: 'runs the server', load: () => import('./cli/serve.ts') },
  init: { about: 'writes a configuration to begin with', load: () => import('./cli/init/init.ts') },
  check: {
    about: 'validates configuration, manifests, catalog, plugins; runs their examples',
    load: () => import('./cli/check.ts'),
  },
  doctor: { about: 'checks what a router needs, and says what to fix', load: () => import('./cli/doctor/doctor.ts') },
  eject: { about: 'copies a shipped file to a folder of yours', load: () => import('./cli/eject.ts') },
  org: { about: 'organizations: create, list, credit, store', load: () => import('./cli/org.ts') },
  key: { about: 'keys: create, list, edit, rotate, revoke', load: () => import('./cli/key.ts') },
  group: { about: 'groups: keys that share a monthly limit', load: () => import('./cli/group.ts') },
  alias: { about: 'aliases: names for a model or a policy', load: () => import('./cli/alias.ts') },
  policy: {
    about: 'policies: names for several models, and how they are asked',
    load: () => import('./cli/policy.ts'),
  },
  ledger: {
    about: 'settled calls: show one, recount by prices, compare with bills',
    load: () => import('./cli/ledger/ledger.ts'),
  },
  backup: { about: 'copies the database, also while a router runs', load: () => import('./cli/backup/backup.ts') },
  restore: { about: 'puts a backup in the place of the database', load: () => import('./cli/backup/restore.ts') },
  upgrade: { about: 'upgrade --check: what this version would do', load: () => import('./cli/upgrade/upgrade.ts') },
  import: { about: 'imports the configuration of another gateway', load: () => import('./cli/import/import.ts') },
  compare: {
    about: 'sends requests to this router and another gateway',
    load: () => import('./cli/compare/compare.ts'),
  },
  models: {
    about: 'lists the models that can be called, with capabilities and prices',
    load: () => import('./cli/models.ts'),
  },
  catalog: { about: 'compares the catalog with public price lists', load: () => import('../tools/catalog/catalog.ts') },
  discover: {
    about: 'asks a provider for its own list of models',
    load: () => import('../tools/discover/discover.ts'),
  },
  providers: { about: 'lists the loaded providers', load: () => import('./cli/providers.ts') },
  provider: { about: 'provider new: writes a manifest to begin with', load: () => import('./cli/provider.ts') },
  plugin: { about: 'plugins: create one, run their tests', load: () => import('./cli/plugin.ts') },
  try: { about: 'shows the input and the output of a mapping side by side', load: () => import('./cli/try.ts') },
}

const usage = `usage: inference-router <command> [options]

${Object.entries(commands)
  .map(([name, { about }]) => `  ${name.padEnd(10)} ${about}`)
  .join('\n')}

inference-router <command> --help shows the help of a command.
`

// A closed pipe, as in `models | head`, is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit(0)
})

process.exitCode = await main(process.argv.slice(2))
// A plugin that leaves something open does not keep the process from its end.
setTimeout(() => process.exit(), 500).unref()

async function main([name, ...args]: string[]): Promise<number> {
  if (name === '--version') {
    console.log(version)
    return 0
  }
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    process.stdout.write(usage)
    return name === undefined ? 2 : 0
  }
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!command) {
    process.stderr.write(printable(`There is no command '${name}'.\n\n${usage}`))
    return 2
  }
  const { run } = await command.load()
  const out = {
    stdout: (text: string) => void process.stdout.write(printable(text)),
    stderr: (text: string) => void process.stderr.write(printable(text)),
  }
  return await run(args, out)
}
