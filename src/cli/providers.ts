import type { Provider } from '../manifest/provider.ts'
import { buildSnapshot, type Snapshot } from '../snapshot/snapshot.ts'
import { columns, type Out, problemLine, readWords } from './args.ts'

/** What `inference-router providers --help` says. */
export const help = `The providers that are loaded, and what each still needs.

  inference-router providers [--config FILE] [--json]

  --config FILE   the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json          print JSON

STATE is ready, off (switched off in the configuration), or the environment variables that are not set.
`

/** Runs `inference-router providers`. Returns the exit code. */
export async function run(args: string[], out: Out): Promise<number> {
  const words = readWords(args, { positionals: 0, options: ['config'], flags: ['json'] }, help, out)
  if (typeof words === 'number') return words
  const { snapshot, problems } = await buildSnapshot(words.options.config, process.env)
  for (const problem of problems) out.stderr(problemLine(problem))
  if (!snapshot) return 1
  const rows = rowsOf(snapshot)
  out.stdout(words.flags.has('json') ? `${JSON.stringify(rows, null, 2)}\n` : asTable(rows))
  return 0
}

type Row = {
  slug: string
  state: 'ready' | 'unconfigured' | 'off'
  name?: string
  dialect?: string | null
  base_url?: string
  missing: string[]
  models: number
  unknown_models?: Provider['unknownModels']
}

function rowsOf({ config, providers, catalog }: Snapshot): Row[] {
  const loaded = [...providers.values()].map((provider): Row => {
    const { slug, name, baseUrl, missing, dialect = null, unknownModels } = provider
    return {
      slug,
      state: missing.length > 0 ? 'unconfigured' : 'ready',
      name,
      dialect,
      base_url: baseUrl,
      missing,
      models: catalog.list().filter((model) => model.provider === slug).length,
      unknown_models: unknownModels,
    }
  })
  const off = Object.entries(config.providers)
    .filter(([, { enabled }]) => enabled === false)
    .map(([slug]): Row => ({ slug, state: 'off', missing: [], models: 0 }))
  return [...loaded, ...off].sort((one, other) => (one.slug < other.slug ? -1 : 1))
}

function asTable(rows: readonly Row[]): string {
  const head = ['PROVIDER', 'NAME', 'DIALECT', 'MODELS', 'ADDRESS', 'STATE']
  const lines = rows.map((row) => {
    const state = row.state === 'unconfigured' ? `set ${row.missing.join(', ')}` : row.state
    const models = row.unknown_models === 'pass' ? `${row.models}+any` : String(row.models)
    return [row.slug, row.name ?? '', row.dialect ?? '', models, row.base_url ?? '', state]
  })
  return columns([head, ...lines])
}
