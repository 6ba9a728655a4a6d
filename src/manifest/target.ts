import type { ModelEntry } from '../core/model.ts'
import type { Provider } from './provider.ts'

/**
 * Where a call may go: a provider and its own id of the model; no entry means the catalog does not know the model. `is` is
 * the id that tells its family, where that is another one.
 */
export type Target = { provider: Provider; model: string; entry?: ModelEntry; is?: string }

/** The provider as it serves this model: the first variant that matches, else itself. */
export function servedBy(provider: Provider, model: string): Provider {
  return provider.variants?.find(({ match }) => match.test(model))?.provider ?? provider
}

/** The name of a target as clients know it. */
export function targetId({ provider, model }: Target): string {
  return `${provider.slug}/${model}`
}
