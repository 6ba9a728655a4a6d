import { didYouMean } from '../check/did-you-mean.ts'
import type { Problem } from '../check/problem.ts'
import { type Layer, sharedTraits } from './layer.ts'
import { type GivenDefinitions, textAt } from './mapping-reader.ts'
import type { ManifestFile, Names, Surroundings } from './references.ts'
import type { Source } from './source.ts'

/** Returns the layers that a manifest, or a variant in it, builds on: its dialect, and the facts about models that it shares. */
export function foundation(
  source: Source,
  { dialect, traits_of }: Pick<ManifestFile, 'dialect' | 'traits_of'>,
  around: Surroundings,
): { layers: Layer[]; problems: Problem[] } {
  const below = dialect === undefined ? nothing : dialectLayer(source, dialect, around)
  const shared = traits_of === undefined ? nothing : traitsLayer(source, traits_of, around)
  return { layers: [...below.layers, ...shared.layers], problems: [...below.problems, ...shared.problems] }
}

/** The definitions that mappings of a file see because of the dialect on which it builds. */
export function exportsOf(name: string | undefined, { dialects }: Pick<Surroundings, 'dialects'>): GivenDefinitions[] {
  const dialect = name === undefined ? undefined : dialects.get(name)
  return dialect && dialect !== 'unusable' ? [{ source: dialect.layer.source, path: ['exports'] }] : []
}

/** All that the mappings of a manifest see because of its dialects, as one text, which is empty where that is nothing. */
export function seenOf({ value }: Source, around: Pick<Surroundings, 'dialects'>): string {
  const texts = [...dialectsIn(value)].flatMap((name) =>
    exportsOf(name as string | undefined, around).map((given) => [name, textAt(given)]),
  )
  const seen = texts.filter(([, text]) => text !== '')
  return seen.length === 0 ? '' : JSON.stringify(seen)
}

/** Finds the faults of the provider whose models a manifest offers. */
export function modelsOfProblems(source: Source, { slug, models_of }: ManifestFile, around: Surroundings): Problem[] {
  if (models_of === undefined || !around.manifests) return []
  const message = unknownManifest(slug, models_of, around.manifests) ?? chained(models_of, around.manifests)
  return message === undefined ? [] : [source.problem(['models_of'], message)]
}

/** The names of all dialects that a manifest, as it was read, builds on. */
export function dialectsIn(value: unknown): Set<unknown> {
  const { dialect, variants } = (value ?? {}) as { dialect?: unknown; variants?: unknown }
  return new Set([dialect, ...(Array.isArray(variants) ? variants.map((variant) => variant?.dialect) : [])])
}

type Foundation = ReturnType<typeof foundation>
const nothing: Foundation = { layers: [], problems: [] }

function dialectLayer(source: Source, name: string, { dialects }: Surroundings): Foundation {
  const dialect = dialects.get(name)
  const say = (message: string) => ({ layers: [], problems: [source.problem(['dialect'], message)] })
  if (dialect === 'unusable') return say(`the dialect \`${name}\` has errors of its own`)
  if (dialect) return { layers: [dialect.layer], problems: [] }
  const known = [...dialects.keys()]
  const choice = didYouMean(name, known) || (known.length > 0 ? `; there are ${known.join(', ')}` : '')
  return say(`there is no dialect \`${name}\`${choice}`)
}

function traitsLayer(source: Source, slug: string, { manifests = new Map() }: Surroundings): Foundation {
  const shared = manifests.get(slug)
  if (shared) return { layers: [sharedTraits(shared)], problems: [] }
  return { layers: [], problems: [source.problem(['traits_of'], noManifest(slug, manifests.keys()))] }
}

function unknownManifest(own: string, slug: string, manifests: Names<Source>): string | undefined {
  if (slug === own) return `\`models_of\` names the provider itself: list its models under \`models\``
  return manifests.has(slug) ? undefined : noManifest(slug, manifests.keys())
}

/** Returns the message about a provider that has no manifest. */
export function noManifest(slug: string, known: Iterable<string>): string {
  return `there is no provider \`${slug}\`${didYouMean(slug, known)}`
}

/** Returns a message if a manifest itself has its models from another one: one step is enough, and cannot go round in circles. */
function chained(slug: string, manifests: Names<Source>): string | undefined {
  const further = (manifests.get(slug)?.value as Partial<ManifestFile> | undefined)?.models_of
  return further === undefined ? undefined : `\`${slug}\` takes its models from \`${further}\`: name that one`
}
