/** Disjoint classes of what is counted, so that price × count is a sum. */
export const usageClasses = [
  'input',
  'cache_read',
  'cache_write_5m',
  'cache_write_1h',
  'output',
  'reasoning',
  'input_audio',
  'output_audio',
  'input_image',
  'output_image',
  'searches',
  'images',
  'seconds',
  'characters',
] as const

/** The name of one class: tokens, except searches, images, seconds and characters. */
export type UsageClass = (typeof usageClasses)[number]

/**
 * Counts by class; a class that is missing was not counted. `reported_cost` is the provider's own figure in USD, `modes`
 * are the ways of serving that it says it billed: a service tier, a speed, a region (`priority`, `fast`, `us`).
 */
export type Usage = { [name in UsageClass]?: number } & { reported_cost?: number; modes?: string[] }

/** Counts as a provider tells them: `cache_write` is a sum of writes whose lifetimes are not told. */
export type ToldUsage = Usage & { cache_write?: number }

/**
 * Later counts replace earlier ones class by class; of a sum of cache writes, what is not known to live 1 h lives 5 min.
 * What cannot be a count is left out, so that the meter estimates it.
 */
export function mergeUsage(earlier: Usage, later: ToldUsage): Usage {
  const merged: Usage = { ...earlier }
  for (const name of [...usageClasses, 'reported_cost'] as const) {
    const count = later[name]
    if (isCount(count)) merged[name] = Math.max(0, count)
  }
  const { cache_write } = later
  if (isCount(cache_write)) merged.cache_write_5m = Math.max(0, cache_write - (merged.cache_write_1h ?? 0))
  return merged
}

/** No request is that large: such a number would only empty somebody's balance. */
const impossibleCount = 1e10

function isCount(count: unknown): count is number {
  return typeof count === 'number' && Math.abs(count) < impossibleCount
}

/** Tokens of the prompt, cached or not. */
export function promptTokens(usage: Usage): number {
  return sum(usage, ['input', 'cache_read', 'cache_write_5m', 'cache_write_1h', 'input_audio', 'input_image'])
}

/** Tokens of the answer, visible or not. */
export function completionTokens(usage: Usage): number {
  return sum(usage, ['output', 'reasoning', 'output_audio', 'output_image'])
}

function sum(usage: Usage, names: UsageClass[]): number {
  return names.reduce((total, name) => total + (usage[name] ?? 0), 0)
}
