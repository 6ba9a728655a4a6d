import { anyModel } from '../../src/catalog/catalog.ts'
import {
  CommandError,
  jsonText,
  type Out,
  parseArguments,
  problemLine,
  runCommand,
  UsageError,
} from '../../src/cli/command.ts'
import { readSnapshot } from '../../src/cli/read-snapshot.ts'
import { asRouterError } from '../../src/core/errors.ts'
import { printableInLine } from '../../src/core/printable.ts'
import { openHttpClient } from '../../src/upstream/http/http-client.ts'
import { listModels } from './model-listing.ts'

/** The text of `inference-router discover --help`. */
export const help = `Asks a provider for its own list of models, with the credentials that are set, and compares it with the catalog.

  inference-router discover SLUG [--config FILE] [--json]

Models that the catalog lacks are listed first (all of them for a server of your own), then the models of the catalog that
the provider does not list. Nothing is written: add prices and capabilities to the catalog, or to the configuration
(providers.<slug>.models).

  --config FILE   the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json          print JSON
`

const options = { config: { type: 'string' }, json: { type: 'boolean' } } as const

/** Runs `inference-router discover`. Returns the exit code. */
export function run(args: string[], out: Out): Promise<number> {
  return runCommand(args, { help, out }, async () => {
    const { text, flag, positionals } = parseArguments(args, { options, positionals: 1 })
    const [slug] = positionals
    if (slug === undefined) throw new UsageError('name a provider')
    const { snapshot, problems } = await readSnapshot(text('config'))
    for (const problem of problems) out.stderr(problemLine(problem))
    if (!snapshot) return 1
    const provider = snapshot.providers.get(slug)
    if (!provider)
      throw new CommandError(`There is no provider '${slug}'. Known: ${[...snapshot.providers.keys()].join(', ')}`)
    if (provider.missing.length > 0)
      throw new CommandError(`'${slug}' needs ${provider.missing.join(', ')}: set it first.`)
    const listed = await ask(provider)
    const known = snapshot.catalog.list().flatMap(({ provider: one, model }) => (one === slug ? model : []))
    const any = snapshot.catalog.find(slug, anyModel)
    const isNew = (model: string) => [undefined, any].includes(snapshot.catalog.find(slug, model))
    // By whatever id the provider lists it.
    const found = new Set(listed.flatMap((model) => snapshot.catalog.identify(slug, model)?.name ?? []))
    const result = {
      provider: slug,
      listed: listed.length,
      new: listed.filter(isNew),
      unlisted: known.filter((model) => !found.has(model)),
    }
    out.stdout(flag('json') ? jsonText(result) : asText(result))
    return 0
  })
}

async function ask(provider: Parameters<typeof listModels>[0]): Promise<string[]> {
  const client = openHttpClient()
  try {
    return await listModels(provider, client, AbortSignal.timeout(maxMs))
  } catch (thrown) {
    throw new CommandError(`${provider.slug}: ${asRouterError(thrown).message}`)
  } finally {
    await client.close()
  }
}

const maxMs = 60_000

type Found = { provider: string; listed: number; new: string[]; unlisted: string[] }

function asText({ provider, listed, new: fresh, unlisted }: Found): string {
  const lines = [`${provider} lists ${listed} models: ${fresh.length} are not in the catalog.`]
  lines.push(...fresh.map((model) => `  ${provider}/${printableInLine(model)}`))
  if (unlisted.length > 0) lines.push(`${unlisted.length} of the catalog's models are not in its list:`)
  lines.push(...unlisted.map((model) => `  ${provider}/${model}`))
  return `${lines.join('\n')}\n`
}
