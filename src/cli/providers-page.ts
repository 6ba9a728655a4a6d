import { anyModel } from '../catalog/catalog.ts'
import type { ModelEntry } from '../core/model.ts'
import { canServe } from '../manifest/operation.ts'
import type { Provider } from '../manifest/provider.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { servedModels } from './served-models.ts'

/** The APIs of models, in the order of the columns. */
const apis = ['chat', 'embedding', 'image', 'speech', 'transcription', 'rerank', 'moderation', 'decision'] as const

/** The page of providers, in Markdown: what each can be asked for, and what becomes of what it is told. */
export function providersPage({
  providers,
  catalog,
  sources,
}: Pick<Snapshot, 'providers' | 'catalog' | 'sources'>): string {
  const served = servedModels({ catalog, providers })
  const listed = Map.groupBy(served, ({ provider }) => provider)
  const rows = [...providers.values()]
    .sort((one, other) => (one.slug < other.slug ? -1 : 1))
    .map((provider) => {
      const entries = (listed.get(provider.slug) ?? []).map(({ entry }) => entry)
      const variables = variablesIn(sources.get(provider.file ?? '')?.text ?? '')
      return rowOf(provider, variables, entries, catalog.find(provider.slug, anyModel))
    })
  const header = ['provider', 'variables', 'format', ...apis, 'web search', 'reasoning', 'data']
  const table = [header, header.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`)
  return `${introduction(providers.size, served.length)}\n\n${table.join('\n')}\n`
}

function introduction(providers: number, models: number): string {
  return `# Providers

${providers} providers and ${models.toLocaleString('en-US')} models, made by \`inference-router providers --markdown\` from \`providers/\` and \`catalog/\`.

Numbers are models by what they do; *any* stands for whatever the server has. *Format* is the dialect that the provider builds on; *own*
is one that its manifest describes. *Data* is what the catalog states of most of its models: how long contents are kept, whether they are used
for training, and where they are; what nobody states is listed as *kept*, *trains*.`
}

/** The variables without which the manifest with this text cannot be used. */
function variablesIn(text: string): string[] {
  const lines = text.split('\n').filter((line) => !line.trimStart().startsWith('#'))
  return [...new Set(lines.flatMap((line) => [...line.matchAll(/\$\{([A-Z0-9_]+)\}/g)].map(([, name = '']) => name)))]
}

function rowOf(
  provider: Provider,
  variables: readonly string[],
  entries: readonly ModelEntry[],
  any: ModelEntry | undefined,
): string[] {
  const counted = apis.map((api) => {
    const count = entries.filter((entry) => entry.api === api).length
    const isAny = any && [any.api, ...(any.also ?? [])].includes(api) && canServe(provider, { api })
    return count > 0 ? String(count) : isAny ? 'any' : ''
  })
  const can = (flag: 'supports_web_search' | 'supports_reasoning') =>
    entries.some((entry) => entry[flag]) ? 'yes' : ''
  return [
    `\`${provider.slug}\` ${provider.name}`,
    variables.map((name) => `\`${name}\``).join(' '),
    provider.dialect ?? 'own',
    ...counted,
    can('supports_web_search'),
    can('supports_reasoning'),
    any ? 'your own server' : dataOf(entries),
  ]
}

function dataOf(entries: readonly ModelEntry[]): string {
  const said = entries.map((entry) => {
    const days = entry.data_retention_days ?? 0
    const kept = entry.data_retention === false ? 'not kept' : days > 0 ? `${days} days` : 'kept'
    return [kept, ...(entry.data_used_for_training === false ? [] : ['trains']), entry.geolocation ?? 'global'].join(
      ', ',
    )
  })
  const counts = [...Map.groupBy(said, (one) => one)].sort(([, one], [, other]) => other.length - one.length)
  return counts[0]?.[0] ?? ''
}
