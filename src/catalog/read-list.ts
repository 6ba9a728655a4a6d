import type { ModelEntry, PriceChange, PricingTier } from '../core/models/model.ts'
import { mergeEntries } from './catalog.ts'
import { type Finding, findingsIn } from './findings.ts'

/** An entry as files write it: prices of one tier may be `{input, output}`, USD per token. */
export type WrittenEntry = Partial<Omit<ModelEntry, 'pricing' | 'price_changes'>> & {
  pricing?: WrittenPricing
  price_changes?: WrittenChange[]
}

type WrittenPricing = PricingTier[] | { input: number; output?: number }
type WrittenChange = Omit<PriceChange, 'pricing'> & { pricing?: WrittenPricing }

/** Entries by model. */
export type WrittenEntries = { readonly [model: string]: WrittenEntry }

type Section = { defaults?: WrittenEntry; models: WrittenEntries }

/** A catalog file: models with the facts that hold for them, and those of other APIs with theirs. */
export type CatalogFile = Section & { provider: string; by_api?: { readonly [api: string]: Section } }

/** Facts in the defaults of a file that describe the provider itself: they hold for the models of other APIs as well. */
const ofProvider = [
  'updated',
  'data_retention',
  'data_retention_days',
  'data_used_for_training',
  'privacy_comments',
  'geolocation',
] as const satisfies (keyof ModelEntry)[]

/** All models of a catalog file with the defaults that hold for them, and what is wrong with them. */
export function readList(file: CatalogFile): { models: { [model: string]: ModelEntry }; findings: Finding[] } {
  const { defaults = {}, by_api: others = {} } = file
  const ofAll = Object.fromEntries(ofProvider.flatMap((name) => (name in defaults ? [[name, defaults[name]]] : [])))
  const sections: [path: string[], section: Section][] = [
    [['models'], file],
    ...Object.entries(others).map(([api, { defaults: own, models }]): [string[], Section] => [
      ['by_api', api, 'models'],
      { defaults: { ...ofAll, ...own, api }, models },
    ]),
  ]
  const all: { [model: string]: ModelEntry } = {}
  const findings: Finding[] = []
  for (const [path, { defaults: given, models }] of sections) {
    const read = readEntries(models, given)
    for (const { path: inside, message } of findingsIn(read)) findings.push({ path: [...path, ...inside], message })
    for (const model of Object.keys(read)) {
      if (!Object.hasOwn(all, model)) continue
      findings.push({ path: [...path, model], message: `\`${model}\` is listed already: a model has one \`api\`` })
    }
    Object.assign(all, read)
  }
  findings.push(...namesNowhere(sections, all))
  return { models: all, findings }
}

/** Models that an entry names as its successor or snapshot, and the list does not have. */
function namesNowhere(sections: readonly [path: string[], section: Section][], all: WrittenEntries): Finding[] {
  const known = new Set(Object.entries(all).flatMap(([model, { aliases = [] }]) => [model, ...aliases]))
  return sections.flatMap(([path, { models }]) =>
    Object.entries(models).flatMap(([model, entry]) =>
      (['successor', 'snapshot'] as const).flatMap((name) => {
        const named = entry[name]
        if (named === undefined || known.has(named)) return []
        return [{ path: [...path, model, name], message: `\`${name}\` names \`${named}\`, which is not listed here` }]
      }),
    ),
  )
}

/** Entries with their defaults, in the form in which they are used. */
export function readEntries(models: WrittenEntries, defaults?: WrittenEntry): { [model: string]: ModelEntry } {
  const given = defaults && readEntry(defaults)
  return Object.fromEntries(
    Object.entries(models).map(([model, entry]) => [model, mergeEntries(given, readEntry(entry))]),
  )
}

function readEntry({ pricing, price_changes, ...entry }: WrittenEntry): Partial<ModelEntry> {
  return {
    ...entry,
    ...(pricing !== undefined && { pricing: tiersOf(pricing) }),
    ...(price_changes !== undefined && { price_changes: price_changes.map(readChange) }),
  }
}

function readChange({ pricing, ...change }: WrittenChange): PriceChange {
  return pricing === undefined ? change : { ...change, pricing: tiersOf(pricing) }
}

function tiersOf(pricing: WrittenPricing): PricingTier[] {
  return Array.isArray(pricing) ? pricing : [oneTier(pricing)]
}

function oneTier({ input, output = 0 }: { input: number; output?: number }): PricingTier {
  return { prompt_tokens_threshold: 0, input_price: input, output_price: output }
}
