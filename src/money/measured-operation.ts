import type { ModelEntry } from '../core/models/model.ts'
import { completionTokens, promptTokens, type Usage } from '../core/usage.ts'
import { boundedUsage, type TokenBounds } from './meter.ts'

/** What is known of a call for an operation beside what its provider counted. */
export type CountedOperation = {
  /** What the router counted itself: characters, images, seconds. */
  counted: Usage
  /** Its tokens, where the provider counted none. */
  estimate: Usage
  /** The answer came to its end. */
  complete: boolean
  entry: ModelEntry | undefined
  most: TokenBounds
}

/**
 * The usage of a call: the provider's counts, within bounds; the router's own where it counted nothing of a class; tokens by an
 * estimate where a model that is priced by them was counted none.
 */
export function measuredOperation(reported: Usage, call: CountedOperation): { usage: Usage; estimated: boolean } {
  const { usage, estimated } = unboundedOperation(reported, call)
  // What was counted or estimated by the answer itself can be too much as well.
  const all = boundedUsage(usage, call.most)
  return { usage: all.usage, estimated: estimated || all.bounded }
}

function unboundedOperation(
  reported: Usage,
  { counted, estimate, complete, entry, most }: CountedOperation,
): { usage: Usage; estimated: boolean } {
  const { usage, bounded } = boundedUsage(reported, most)
  const known: Usage = withLeast({ ...counted, ...usage }, entry)
  if (known.seconds === undefined && estimate.seconds !== undefined && isBySecond(entry)) {
    return { usage: withLeast({ ...known, seconds: estimate.seconds }, entry), estimated: true }
  }
  if (known.megapixels === undefined && estimate.megapixels !== undefined && isByMegapixel(entry)) {
    return { usage: { ...known, megapixels: estimate.megapixels }, estimated: true }
  }
  const isByToken = (entry?.pricing ?? []).length > 0
  const hasTokens = promptTokens(usage) + completionTokens(usage) > 0
  const isPartial = !complete && completionTokens(usage) === 0
  if (!isByToken || (hasTokens && !isPartial)) return { usage: known, estimated: bounded }
  return { usage: { ...estimate, ...known }, estimated: true }
}

function isByMegapixel(entry: ModelEntry | undefined): boolean {
  return entry?.other_prices?.per_megapixel !== undefined
}

function isBySecond(entry: ModelEntry | undefined): boolean {
  return entry?.other_prices?.per_second !== undefined
}

/** The seconds that a call is billed for: at least as many as the model's price is for. */
function withLeast(usage: Usage, entry: ModelEntry | undefined): Usage {
  const { min_seconds: least = 0 } = entry ?? {}
  return usage.seconds === undefined || usage.seconds >= least ? usage : { ...usage, seconds: least }
}
