import type { ModelEntry } from '../core/models/model.ts'
import type { Target } from '../manifest/target.ts'
import type { Directory } from './names/resolve.ts'

/** Model that served instead of the requested one; without an entry the catalog does not know it. */
export type ServedModel = { model: string; entry?: ModelEntry }

/**
 * Returns the model that served a call, where the provider's reply names another one than the requested: one of the catalog, or any
 * where the provider is known to choose models itself. Another name of the same model does not count.
 */
export function servedModel(
  { provider, model, entry, is = model }: Target,
  reported: unknown,
  { identify }: Pick<Directory, 'identify'>,
): ServedModel | undefined {
  // Providers may send anything.
  if (typeof reported !== 'string' || reported === '' || reported === model || reported === is) return undefined
  const known = identify(provider.slug, reported)
  if (known) return isSame(known.entry, entry) ? undefined : { model: known.model, entry: known.entry }
  return provider.reports?.has('model') && !isSameName(reported, is) ? { model: reported } : undefined
}

function isSame(one: ModelEntry, other: ModelEntry | undefined): boolean {
  return one === other || (one.model_canonical_name ?? one) === other?.model_canonical_name
}

/** Checks whether two names mean the same model: in another order, or with the date of a version. */
function isSameName(one: string, other: string): boolean {
  return wordsOf(one) === wordsOf(other)
}

function wordsOf(name: string): string {
  const undated = name.replace(/[-@](?:\d{8}|\d{4}-\d\d-\d\d)$/, '')
  return undated.toLowerCase().split(/[-/]/).sort().join(' ')
}
