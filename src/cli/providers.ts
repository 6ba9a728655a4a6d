import { providersPage } from '../../tools/providers-page.ts'
import { anyModel } from '../catalog/catalog.ts'
import { hasErrors, isFileProblem } from '../manifest/check/problem.ts'
import type { Provider } from '../manifest/provider.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { redact } from '../upstream/auth/secrets.ts'
import { fileProblemLine, jsonText, type Out, parseArguments, problemLine, runCommand, table } from './command.ts'
import { readSnapshot, servedModels } from './read-snapshot.ts'

/** The text of `inference-router providers --help`. */
export const help = `Lists the loaded providers, and the settings that each still needs.

  inference-router providers [--config FILE] [--json | --markdown]

  --config FILE   the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json          print JSON
  --markdown      print docs/providers.md: what each provider supports

STATE is ready, off (switched off in the configuration), the environment variables that are not set, or the place of the
error because of which the provider is unavailable. Errors of files are printed to standard error; then the exit code is 1.
`

const options = { config: { type: 'string' }, json: { type: 'boolean' }, markdown: { type: 'boolean' } } as const

/** Runs `inference-router providers`. Returns the exit code. */
export function run(args: string[], out: Out): Promise<number> {
  return runCommand(args, { help, out }, async () => {
    const { text, flag } = parseArguments(args, { options })
    const { snapshot, problems } = await readSnapshot(text('config'))
    for (const one of problems) out.stderr(isFileProblem(one) ? fileProblemLine(one) : problemLine(one))
    if (!snapshot) return 1
    const rows = flag('markdown') ? [] : rowsOf(snapshot)
    out.stdout(flag('markdown') ? providersPage(snapshot) : flag('json') ? jsonText(rows) : asTable(rows))
    return hasErrors(problems) ? 1 : 0
  })
}

type Row = {
  slug: string
  state: 'ready' | 'unconfigured' | 'off' | 'unavailable'
  /** The error because of which it is unavailable: `file:line:column: message`. */
  problem?: string
  name?: string
  dialect?: string | null
  base_url?: string
  missing: string[]
  models: number
  unknown_models?: Provider['unknownModels']
  /** Set where any other name is a model too: passed on unknown, or by an entry for all of them. */
  any_model?: boolean
}

function rowsOf({ config, providers, off: switchedOff, unavailable, catalog }: Snapshot): Row[] {
  const served = Map.groupBy(servedModels({ catalog, providers }), (model) => model.provider)
  const loaded = [...providers.values()].map((provider): Row => {
    const { slug, name, baseUrl, missing, dialect = null, unknownModels } = provider
    return {
      slug,
      state: missing.length > 0 ? 'unconfigured' : 'ready',
      name,
      dialect,
      base_url: redact(provider, baseUrl),
      missing,
      models: served.get(slug)?.length ?? 0,
      unknown_models: unknownModels,
      any_model: unknownModels === 'pass' || catalog.find(slug, anyModel) !== undefined,
    }
  })
  const off = [...switchedOff.keys()].map((slug): Row => ({ slug, state: 'off', missing: [], models: 0 }))
  const broken = [...unavailable.providers].flatMap(([slug, problem]): Row[] => {
    if (switchedOff.has(slug)) return []
    if (config.providers[slug]?.enabled === false) return [{ slug, state: 'off', missing: [], models: 0 }]
    return [{ slug, state: 'unavailable', problem: problemLine(problem).trimEnd(), missing: [], models: 0 }]
  })
  return [...loaded, ...off, ...broken].sort((one, other) => (one.slug < other.slug ? -1 : 1))
}

function asTable(rows: readonly Row[]): string {
  const header = ['PROVIDER', 'NAME', 'DIALECT', 'MODELS', 'ADDRESS', 'STATE']
  const lines = rows.map((row) => {
    const state = row.state === 'unconfigured' ? `set ${row.missing.join(', ')}` : (row.problem ?? row.state)
    const models = row.any_model ? `${row.models}+any` : String(row.models)
    return [row.slug, row.name ?? '', row.dialect ?? '', models, row.base_url ?? '', state]
  })
  return `${table([header, ...lines])}\n`
}
