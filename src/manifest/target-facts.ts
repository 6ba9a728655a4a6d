import type { ModelEntry } from '../core/model.ts'
import type { TargetFacts } from '../core/request.ts'
import { lackedFields } from './abilities.ts'
import type { Provider } from './provider.ts'

/** The model that a request goes to; without an entry the catalog does not have it. Its family goes by `is`. */
export type ModelTarget = { model: string; entry?: ModelEntry; is?: string }

/** The facts about a model that mappings read as `target`. */
export function targetFacts(provider: Provider, { model, entry, is = model }: ModelTarget): TargetFacts {
  const { max_output_tokens, context_window } = entry ?? {}
  const lacks = entry ? lackedFields(entry) : []
  return {
    maker: provider.maker,
    ...(max_output_tokens !== undefined && { max_output_tokens }),
    ...(context_window !== undefined && { context_window }),
    ...(lacks.length > 0 && { lacks }),
    traits: traitsOf(provider, is),
  }
}

/** Cache limit: with `unknown_models: pass` clients choose the names. */
const maxCachedModels = 1_000
const traitsByModel = new WeakMap<Provider, Map<string, TargetFacts['traits']>>()

function traitsOf(provider: Provider, model: string): TargetFacts['traits'] {
  const known = traitsByModel.get(provider) ?? new Map<string, TargetFacts['traits']>()
  let traits = known.get(model)
  if (traits) return traits
  const matching = provider.traits.filter(({ match }) => match.test(model))
  traits = Object.freeze(Object.assign({}, ...matching.map(({ facts }) => facts)))
  if (known.size >= maxCachedModels) known.clear()
  traitsByModel.set(provider, known.set(model, traits as TargetFacts['traits']))
  return traits as TargetFacts['traits']
}
