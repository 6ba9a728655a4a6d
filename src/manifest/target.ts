import type { ModelEntry } from '../core/models/model.ts'
import type { TargetFacts } from '../core/request.ts'
import type { FamilyRules } from './limits.ts'
import type { Provider } from './provider.ts'
import { lackedFields } from './run/abilities.ts'
import type { HistoryRules } from './run/repair-history.ts'
import { type RequestFacts, servesNeed } from './run/variant-needs.ts'

/**
 * Destination of a call: a provider and its own id of the model; no entry means the catalog does not know the model. `is` is the id that
 * determines its family, where that is another one.
 * `isUnknown`: no catalog lists the model; an entry is then only the operator's price for such models.
 */
export type Target = { provider: Provider; model: string; entry?: ModelEntry; is?: string; isUnknown?: true }

/** Name of a target. */
export type NamedTarget = { provider: Pick<Provider, 'slug'>; model: string }

/** The provider as it serves this model: the first variant that fits, else itself. */
export function servedBy(provider: Provider, model: string, asked?: RequestFacts): Provider {
  return provider.variants?.[variantOf(provider, model, asked)]?.provider ?? provider
}

/** The place of the first variant that fits a model, and what it is asked for; without a request those for requests do not. */
export function variantOf(provider: Provider, model: string, asked?: RequestFacts): number {
  const { variants } = provider
  if (!variants) return -1
  const place = variantsFor(provider, model).find((at) => {
    const { when, provider: variant } = variants[at] as (typeof variants)[number]
    return !when || (asked !== undefined && when.some((need) => servesNeed(need, asked, variant)))
  })
  return place ?? -1
}

/** Returns the places of the variants whose `match` fits a model, in their order. */
const variantsFor = oncePerModel(({ variants = [] }, model) =>
  [...variants.keys()].filter((at) => variants[at]?.match?.test(model) ?? true),
)

/** The name of a target as clients know it. */
export function targetId({ provider, model }: NamedTarget): string {
  return `${provider.slug}/${model}`
}

/** The model that a request goes to; without an entry the catalog does not have it. Its family goes by `is`. */
export type ModelTarget = { model: string; entry?: ModelEntry; is?: string }

/** The facts about a model that mappings read as `target`: frozen, since all calls of the model share them. */
export function targetFacts(provider: Provider, { model, entry, is = model }: ModelTarget): TargetFacts {
  const known = factsByModel.get(provider) ?? new Map<string, KnownFacts>()
  const found = known.get(is)
  if (found && found.entry === entry) return found.facts
  const facts = Object.freeze(factsOf(provider, entry, is))
  if (known.size >= maxCachedModels) known.clear()
  factsByModel.set(provider, known.set(is, { entry, facts }))
  return facts
}

/** The limits of a provider for the family of a target, and its requirements on conversations. */
export function familyRules(provider: Provider, { model, is = model }: Pick<ModelTarget, 'model' | 'is'>): FamilyRules {
  return rulesFor(provider, is)
}

const rulesFor = oncePerModel(rulesOf)

function rulesOf({ traits = [], chat }: Partial<Provider>, family: string): FamilyRules {
  const matching = traits.filter(({ match }) => match.test(family))
  const limits = Object.assign({}, ...matching.map((trait) => trait.limits))
  const history: HistoryRules = Object.assign({}, ...matching.map((trait) => trait.history))
  const { pair_tools, results_first, tool_id, no_empty_text, max_cache_hints } = chat?.history ?? {}
  const needed = { pair_tools, results_first, tool_id, no_empty_text, max_cache_hints }
  const given = Object.fromEntries(Object.entries(needed).filter(([, rule]) => rule !== undefined)) as HistoryRules
  return { limits, history: { ...chat?.history, ...history }, editedHistory: { ...given, ...history } }
}

type KnownFacts = { entry: ModelEntry | undefined; facts: TargetFacts }

/** Cache limit: with `unknown_models: pass` clients choose the names. */
const maxCachedModels = 1_000
const factsByModel = new WeakMap<Provider, Map<string, KnownFacts>>()

function factsOf(provider: Provider, entry: ModelEntry | undefined, model: string): TargetFacts {
  const { max_output_tokens, context_window } = entry ?? {}
  const lacks = entry ? lackedFields(entry) : []
  const matching = provider.traits.filter(({ match }) => match.test(model))
  return {
    signer: provider.signer,
    maker: provider.signer,
    ...(max_output_tokens !== undefined && { max_output_tokens }),
    ...(context_window !== undefined && { context_window }),
    ...(lacks.length > 0 && { lacks }),
    traits: Object.freeze(Object.assign({}, ...matching.map(({ facts }) => facts))),
  }
}

/** Returns a function that does something once for each model of a provider. */
function oncePerModel<Value>(
  make: (provider: Provider, model: string) => Value,
): (provider: Provider, model: string) => Value {
  const made = new WeakMap<Provider, Map<string, Value>>()
  return (provider, model) => {
    const values = made.get(provider) ?? new Map<string, Value>()
    const known = values.get(model)
    if (known !== undefined) return known
    const value = make(provider, model)
    if (values.size >= maxCachedModels) values.clear()
    made.set(provider, values.set(model, value))
    return value
  }
}
