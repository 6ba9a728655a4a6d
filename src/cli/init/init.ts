import { existsSync, readFileSync, statSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { listModels } from '../../../tools/discover/model-listing.ts'
import { splitModel } from '../../core/names.ts'
import { printableInLine } from '../../core/printable.ts'
import { didYouMean } from '../../manifest/check/did-you-mean.ts'
import type { Environment } from '../../manifest/read/environment.ts'
import { closeAll } from '../../plugin/instances.ts'
import { loadConfig } from '../../snapshot/config.ts'
import { programConfig } from '../../snapshot/folders.ts'
import { buildSnapshot, type Snapshot } from '../../snapshot/snapshot.ts'
import { openHttpClient } from '../../upstream/http/http-client.ts'
import { CommandError, jsonText, type Out, parseArguments, relativePath, runCommand } from '../command.ts'
import { cheapestModel } from '../live/live-model.ts'
import { dotEnvBeside } from '../read-config.ts'
import { earlierFiles } from '../read-snapshot.ts'
import { type FoundProvider, findProviders } from './found-providers.ts'
import { configText, dotEnvText, secretMode, variablesIn, type WrittenFiles, writeNewFiles } from './new-files.ts'

/** The text of `inference-router init --help`. */
export const help = `Writes what a router needs to start: config.yaml, a folder for providers of your own, and .env with the variables of providers.

  inference-router init [FOLDER] [--provider SLUG…] [--names-only] [--json]

  FOLDER           where to write (default: here)
  --provider SLUG  a provider whose variables are not set yet; repeatable. .env then has a line to fill in
  --names-only     write the names of variables to .env, without the values that they have in the environment
  --json           print JSON

It asks nothing: providers are those whose variables are set, in the environment or in .env, and the servers that answer on this
machine (Ollama, vLLM, SGLang, LM Studio, llama.cpp at their default ports); without any, it is the built-in demo. .env can be read and
written by you alone. A file that exists is left as it is.
`

const options = {
  provider: { type: 'string', multiple: true },
  'names-only': { type: 'boolean' },
  json: { type: 'boolean' },
} as const

/** A model that answers without an account, and its provider. */
const freeModel = 'demo/echo'
const simulator = splitModel(freeModel)?.provider ?? ''

/** Runs `inference-router init`. Returns the exit code. */
export function run(args: string[], out: Out): Promise<number> {
  return runCommand(args, { help, out }, async () => {
    const { positionals, texts, flag } = parseArguments(args, { options, positionals: 1 })
    const folder = resolve(positionals[0] ?? '.')
    const config = join(folder, 'config.yaml')
    const env = { ...dotEnvBeside(config), ...process.env }
    const snapshot = await shippedSnapshot(env)
    const found = await providersFor(snapshot, { env, named: texts('provider') })
    const values = flag('names-only') ? {} : env
    const files = writeNewFiles(folder, [
      { path: 'config.yaml', text: configText(found) },
      { path: 'providers/', text: '' },
      { path: '.env', text: dotEnvText(found, values), mode: secretMode },
      { path: '.gitignore', text: '.env\ndata/\n' },
    ])
    const { config: settings } = await loadConfig(config, env)
    const result = {
      ...{ folder, config, ...files, found },
      notes: notesOn(folder, found),
      url: `http://127.0.0.1:${settings?.server.port || 8787}`,
      trial: trialModel(snapshot, found),
    }
    out.stdout(flag('json') ? jsonText(asJson(result)) : asText(result))
    return 0
  })
}

type Result = WrittenFiles & {
  folder: string
  config: string
  found: readonly FoundProvider[]
  /** Observations about files that existed. */
  notes: readonly string[]
  /** The address of the router. */
  url: string
  trial: string | undefined
}

/** Builds the snapshot of the shipped files. */
async function shippedSnapshot(env: Environment): Promise<Snapshot> {
  const cache = earlierFiles(process.env)
  const { snapshot, problems } = await buildSnapshot(programConfig, env, { cache })
  await cache.written()
  await closeAll(snapshot?.instances ?? [])
  if (snapshot) return snapshot
  throw new CommandError(problems.map(({ message }) => message).join('\n'))
}

async function providersFor(
  snapshot: Snapshot,
  { env, named }: { env: Environment; named: readonly string[] },
): Promise<FoundProvider[]> {
  const unknown = named.find((slug) => !snapshot.providers.has(slug))
  if (unknown !== undefined) {
    const hint = didYouMean(unknown, [...snapshot.providers.keys()])
    throw new CommandError(`There is no provider '${unknown}'${hint || '; `inference-router providers` lists them.'}`)
  }
  const client = openHttpClient()
  try {
    const found = await findProviders(snapshot, { env, named, client, probe: listModels })
    if (found.length > 0) return found
    return [{ slug: simulator, reason: 'named', set: [], missing: [], mustBeNamed: true }]
  } finally {
    await client.close()
  }
}

/** Returns what files that existed lack. */
function notesOn(folder: string, found: readonly FoundProvider[]): string[] {
  const [dotEnv, ignored] = [join(folder, '.env'), join(folder, '.gitignore')]
  const written = variablesIn(dotEnv)
  const lacking = found
    .flatMap(({ set, missing }) => [...set, ...missing])
    .filter((name) => !Object.hasOwn(written, name))
  const isOpen = process.platform !== 'win32' && existsSync(dotEnv) && (statSync(dotEnv).mode & 0o077) !== 0
  const isIgnored = readFileSync(ignored, 'utf8')
    .split('\n')
    .some((line) => /^\/?\.env(?:\*|\b|$)/.test(line.trim()))
  return [
    ...(lacking.length === 0 ? [] : [`.env has no line for ${lacking.join(', ')}`]),
    ...(isOpen ? ['.env can be read by other users: chmod 600 .env'] : []),
    ...(isIgnored ? [] : ['.gitignore does not name .env, which has secrets']),
  ]
}

/** Returns a model for a first call: of a server that lists one, or the cheapest of a provider that is ready. */
function trialModel({ providers, catalog }: Snapshot, found: readonly FoundProvider[]): string | undefined {
  for (const { slug, missing, models } of found) {
    if (models?.[0] !== undefined) return `${slug}/${models[0]}`
    const provider = providers.get(slug)
    if (!provider || missing.length > 0) continue
    const listed = catalog
      .list()
      .flatMap(({ provider: one, model, entry }) => (one === slug ? [[model, entry] as const] : []))
    const chosen = cheapestModel(provider, listed)
    if (chosen) return `${slug}/${chosen.model}`
  }
  return found.some(({ slug }) => slug === simulator) ? freeModel : undefined
}

function asJson({ folder, config, written, kept, found, notes, url, trial }: Result) {
  return {
    ...{ folder, written, kept, notes: [...notes] },
    providers: found.map(({ mustBeNamed, ...one }) => one),
    next: serveCommand(config),
    base_url: `${url}/v1`,
    ...(trial !== undefined && { model: trial }),
  }
}

/** Returns the command that starts the router, as it works where this one was typed: in a checkout npm runs it. */
function serveCommand(config: string): string {
  const isByNpm = process.env.npm_lifecycle_event === 'inference-router'
  const serve = `${isByNpm ? 'npm run inference-router --' : 'inference-router'} serve`
  return relative('', config) === 'config.yaml' ? serve : `${serve} --config ${relativePath(config)}`
}

function asText({ folder, config, written, kept, found, notes, url, trial }: Result): string {
  const lines = found.map((one) => `  ${one.slug.padEnd(12)}  ${stateOf(one)}\n`)
  const inFolder = relative('', folder) === '' ? '' : ` in ${relativePath(folder)}`
  const wrote = written.length === 0 ? '' : `Written${inFolder}: ${written.join(', ')}\n`
  const left = kept.length === 0 ? '' : `Left as they are${inFolder}: ${kept.join(', ')}\n`
  return `${wrote}${left}${notes.map((note) => `Note: ${note}.\n`).join('')}
Providers:

${lines.join('')}
Start the router:

  ${serveCommand(config)}

Then point a client at it, with the key that the first start prints:

  export OPENAI_BASE_URL=${url}/v1 OPENAI_API_KEY=<key>
  export ANTHROPIC_BASE_URL=${url} ANTHROPIC_API_KEY=<key>
${trial === undefined ? '' : `\nA first call: the model ${printableInLine(trial)}\n`}`
}

function stateOf({ slug, reason, set, missing, address, models = [] }: FoundProvider): string {
  if (reason === 'server') {
    const shown = models.slice(0, maxShown).map(printableInLine).join(', ')
    const more = models.length > maxShown ? ` and ${models.length - maxShown} more` : ''
    return `answers at ${address}${shown === '' ? ', without models' : `: ${shown}${more}`}`
  }
  if (missing.length > 0) return `to be used, set ${missing.join(', ')} in .env`
  if (set.length > 0) return `${set.join(', ')} ${set.length === 1 ? 'is' : 'are'} set`
  return slug === simulator ? 'the built-in simulator, which needs no account' : 'needs no variable'
}

/** Number of models of a server that are listed. */
const maxShown = 5
