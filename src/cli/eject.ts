import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ejectedText, isShippedPath } from '../snapshot/ejected.ts'
import { type FolderKind, ownFolder, programFolder } from '../snapshot/folders.ts'
import { CommandError, type Out, parseArguments, relativePath, runCommand, UsageError } from './command.ts'
import { configOf } from './read-config.ts'
import { version } from './version.ts'

/** The text of `inference-router eject --help`. */
export const help = `Copies a shipped manifest, dialect or catalog file into a folder of yours, where you can change it.

  inference-router eject <file…> [--force] [--config FILE]

  file            providers/<slug>.yaml, providers/dialects/<name>.yaml or catalog/<slug>.yaml
  --force         replace a file that exists
  --config FILE   the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)

The copy goes to the first folder of yours in folders.providers or folders.catalog, and is used instead of the shipped file.
Its first line has the version it was copied from: inference-router check says when the shipped file has changed since.
`

const options = { config: { type: 'string' }, force: { type: 'boolean' } } as const

/** Runs `inference-router eject`. Returns the exit code. */
export function run(args: string[], out: Out): Promise<number> {
  return runCommand(args, { help, out }, async () => {
    const { positionals, text, flag } = parseArguments(args, { options, positionals: Number.POSITIVE_INFINITY })
    if (positionals.length === 0) throw new UsageError('name a file: eject providers/<slug>.yaml')
    const copies = positionals.map((path) => ({ path, shipped: shippedText(path) }))
    const { folders } = await configOf(text('config'))
    for (const { path, shipped } of copies) {
      const [kind, ...rest] = path.split('/')
      const folder = ownFolder(folders[kind as FolderKind])
      const target = join(folder ?? '', ...rest)
      if (folder === undefined || target === join(programFolder, path)) throw new CommandError(noOwnFolder(kind ?? ''))
      write(target, ejectedText(path, shipped, version), flag('force'))
      out.stdout(`${relativePath(target)}\n`)
    }
    return 0
  })
}

function shippedText(path: string): string {
  if (!isShippedPath(path))
    throw new UsageError(
      `'${path}' is not the name of a shipped file: write providers/<slug>.yaml, providers/dialects/<name>.yaml or catalog/<slug>.yaml`,
    )
  try {
    return readFileSync(join(programFolder, path), 'utf8')
  } catch {
    throw new CommandError(`There is no shipped file ${path}.`)
  }
}

function noOwnFolder(kind: string): string {
  return `The configuration has no folder of yours for ${kind}: write \`folders: { ${kind}: [./my-${kind}, shipped] }\` in it.`
}

function write(file: string, text: string, mayReplace: boolean): void {
  try {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text, { flag: mayReplace ? 'w' : 'wx' })
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException
    if (code !== 'EEXIST') throw new CommandError(message)
    throw new CommandError(`${relativePath(file)} exists: --force replaces it.`)
  }
}
