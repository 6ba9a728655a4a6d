import type { ModelEntry } from '../catalog/model.ts'
import type { Provider } from './provider.ts'

/** Where a call may go: a provider and its own id of the model; no entry means the catalog does not know the model. */
export type Target = { provider: Provider; model: string; entry?: ModelEntry }

/** The name of a target as clients know it. */
export function targetId({ provider, model }: Target): string {
  return `${provider.slug}/${model}`
}
