import { chatFacts, type ModelEntry } from '../core/models/model.ts'
import { isShutDown } from '../core/models/shutdown.ts'
import type { Finding } from './findings.ts'

/** What every chat model states; flags may be missing. */
const facts = ['created', ...chatFacts] as const

/**
 * The facts that chat models of a list lack, one finding for each model, with the path from the list. A price may be missing, but not be
 * empty, unless `priced` says that calls are charged by the catalog. Deployments have the facts of their model, and of models that are shut down nothing is shown.
 */
export function gapsIn(models: { readonly [model: string]: ModelEntry }, { priced }: { priced: boolean }): Finding[] {
  return Object.entries(models).flatMap(([model, entry]) => {
    if (entry.api !== 'chat' || entry.is !== undefined || isShutDown(entry, Date.now())) return []
    const missing: string[] = facts.filter((name) => entry[name] === undefined)
    const isPriced =
      entry.pricing === undefined ? !priced || entry.price_changes !== undefined : entry.pricing.length > 0
    if (!isPriced) missing.push('pricing')
    return missing.length === 0
      ? []
      : [{ path: [model], message: `\`${model}\` says nothing of ${missing.join(', ')}` }]
  })
}
