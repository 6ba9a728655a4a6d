import type { ModelEntry } from '../core/models/model.ts'
import type { Provider } from './provider.ts'
import { type Asked, servesNeed } from './run/variant-needs.ts'

/**
 * Where a call may go: a provider and its own id of the model; no entry means the catalog does not know the model. `is` is
 * the id that tells its family, where that is another one.
 */
export type Target = { provider: Provider; model: string; entry?: ModelEntry; is?: string }

/** What names a target. */
export type NamedTarget = { provider: Pick<Provider, 'slug'>; model: string }

/** The provider as it serves this model: the first variant that fits, else itself. */
export function servedBy(provider: Provider, model: string, asked?: Asked): Provider {
  return provider.variants?.[variantOf(provider, model, asked)]?.provider ?? provider
}

/** The place of the first variant that fits a model, and what it is asked for; without a request those for requests do not. */
export function variantOf({ variants = [] }: Provider, model: string, asked?: Asked): number {
  return variants.findIndex(({ match, when, provider }) => {
    if (match && !match.test(model)) return false
    return !when || (asked !== undefined && when.some((need) => servesNeed(need, asked, provider)))
  })
}

/** The name of a target as clients know it. */
export function targetId({ provider, model }: NamedTarget): string {
  return `${provider.slug}/${model}`
}
