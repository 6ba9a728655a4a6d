import type { CatalogedModel } from '../catalog/catalog.ts'
import type { ModelEntry } from '../core/models/model.ts'
import { entryAt } from '../core/models/price-times.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { CommandError, jsonText, type Out, parseArguments, problemLine, runCommand, table } from './command.ts'
import { readSnapshot, servedModels } from './read-snapshot.ts'

/** The text of `inference-router models --help`. */
export const help = `Lists the models that can be called, with capabilities and prices.

  inference-router models [--provider SLUG] [--config FILE] [--json]

  --provider SLUG   the models of one provider only
  --config FILE     the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json            print JSON: prices in USD per token, as in the catalog

Prices are current; price_changes in the JSON lists those of other times. In the table they are USD per million
tokens, of the lowest tier; + means that there are more tiers.
RETIRES is the day for which the provider has announced the end of a model. Models whose day has come can be called as long
as the provider serves them, unless refuse_retired is set; clients do not see them in lists.
SET names the environment variables without which a model cannot be called; clients do not see it until they are set.
`

const options = { provider: { type: 'string' }, config: { type: 'string' }, json: { type: 'boolean' } } as const

/** Runs `inference-router models`. Returns the exit code. */
export function run(args: string[], out: Out): Promise<number> {
  return runCommand(args, { help, out }, async () => {
    const { text, flag } = parseArguments(args, { options })
    const { snapshot, problems } = await readSnapshot(text('config'))
    for (const problem of problems) out.stderr(problemLine(problem))
    if (!snapshot) return 1
    const provider = text('provider')
    if (provider !== undefined && !snapshot.providers.has(provider))
      throw new CommandError(`There is no provider '${provider}'. Known: ${[...snapshot.providers.keys()].join(', ')}`)
    const models = loadedModels(snapshot, Date.now()).filter(
      (model) => provider === undefined || model.provider === provider,
    )
    out.stdout(flag('json') ? jsonText(models.map(asJson)) : asTable(models))
    return 0
  })
}

/** A model, and the variables that its provider misses. */
type LoadedModel = CatalogedModel & { missing: readonly string[] }

function loadedModels(snapshot: Snapshot, at: number): LoadedModel[] {
  return servedModels(snapshot).map(({ provider, model, entry }) => {
    const { price_changes } = entry
    const priced = { ...entryAt(entry, at), ...(price_changes && { price_changes }) }
    return { provider, model, entry: priced, missing: snapshot.providers.get(provider)?.missing ?? [] }
  })
}

function asJson({ provider, model, entry, missing }: LoadedModel) {
  return { id: `${provider}/${model}`, provider, model, configured: missing.length === 0, missing, ...entry }
}

function asTable(models: readonly LoadedModel[]): string {
  const header = ['MODEL', 'API', 'CONTEXT', 'OUTPUT', 'IN $/M', 'CACHED $/M', 'OUT $/M', 'CAN', 'RETIRES', 'SET']
  const rows = models.map(({ provider, model, entry, missing }) => {
    const [tier, ...more] = entry.pricing ?? []
    const price = (usd: number | null | undefined) => (typeof usd === 'number' ? perMillion(usd) : '')
    return [
      `${provider}/${model}`,
      entry.api,
      String(entry.context_window ?? ''),
      String(entry.max_output_tokens ?? ''),
      `${price(tier?.input_price)}${more.length > 0 ? '+' : ''}`,
      price(tier?.cached_price),
      price(tier?.output_price),
      abilities(entry),
      entry.shutdown ?? '',
      missing.join(', '),
    ]
  })
  return `${table([header, ...rows])}\n`
}

/** Formats a price per million tokens. It has at most six decimals; further digits of a float are noise. */
function perMillion(usdPerToken: number): string {
  return String(Number((usdPerToken * 1e6).toFixed(6)))
}

const abilityNames = {
  supports_vision: 'vision',
  supports_tool_calling: 'tools',
  supports_reasoning: 'reasoning',
  supports_output_json_schema: 'schema',
  supports_web_search: 'search',
  supports_caching: 'caching',
  supports_image_generation: 'images',
  supports_computer_use: 'computer',
} as const satisfies { [flag in keyof ModelEntry]?: string }

function abilities(entry: ModelEntry): string {
  const flags = Object.keys(abilityNames) as (keyof typeof abilityNames)[]
  return flags.flatMap((flag) => (entry[flag] ? [abilityNames[flag]] : [])).join(' ')
}
