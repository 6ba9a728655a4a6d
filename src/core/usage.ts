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
  'cache_read_audio',
  'citations',
  'file_searches',
] as const

/**
 * The name of one class: tokens, except searches, file searches, images, seconds and characters. `citations` are tokens
 * of sources that stand neither in the prompt nor in the answer.
 */
export type UsageClass = (typeof usageClasses)[number]

/**
 * Counts by class; a class that is missing was not counted. `reported_cost` is the provider's own figure in USD, `modes`
 * are the ways of serving that it says it billed: a service tier, a speed, a region (`priority`, `fast`, `us`).
 */
export type Usage = { [name in UsageClass]?: number } & { reported_cost?: number; modes?: string[] }

/** Counts as a provider tells them: `cache_write` is a sum of writes whose lifetimes are not told. */
export type ReportedUsage = Usage & { cache_write?: number }

/**
 * Later counts replace earlier ones class by class, and so do the ways of serving, of which only those that are not the
 * ordinary one are kept; of a sum of cache writes, what is not known to live 1 h lives 5 min. What cannot be a count is
 * left out, so that the meter estimates it.
 */
export function mergeUsage(earlier: Usage, later: ReportedUsage): Usage {
  const merged: Usage = { ...earlier }
  for (const name of [...usageClasses, 'reported_cost'] as const) {
    const count = later[name]
    if (isCount(count)) merged[name] = Math.max(0, fractional.has(name) ? count : Math.round(count))
  }
  const { cache_write, modes } = later
  if (isCount(cache_write)) merged.cache_write_5m = Math.max(0, Math.round(cache_write) - (merged.cache_write_1h ?? 0))
  const told = Array.isArray(modes) ? modes.filter(isWord) : []
  if (told.length > 0) {
    const special = [...new Set(told)].filter((mode) => !plainModes.has(mode))
    if (special.length > 0) merged.modes = special.slice(0, mostModes)
    else delete merged.modes
  }
  return merged
}

/** What may have a fraction; of all else rows keep whole counts, and those are paid. */
const fractional: ReadonlySet<string> = new Set(['seconds', 'reported_cost'])

/** No request is that large: such a number would only empty somebody's balance. */
const impossibleCount = 1e10

function isCount(count: unknown): count is number {
  return typeof count === 'number' && Math.abs(count) < impossibleCount
}

/** What providers call the ordinary way of serving, which costs what the price list says. */
const plainModes: ReadonlySet<string> = new Set(['default', 'standard', 'auto', 'on_demand', 'global', 'not_available'])

/** A call is served in one tier, at one speed, in one region; the rest is room. Their names are words. */
const mostModes = 8
const longestMode = 64

function isWord(mode: unknown): mode is string {
  return typeof mode === 'string' && mode.length > 0 && mode.length <= longestMode
}

/** Tokens of the prompt, cached or not. */
export function promptTokens(usage: Usage): number {
  return sum(usage, promptClasses)
}

/** Tokens of the prompt that were read from a cache. */
export function cachedTokens(usage: Usage): number {
  return sum(usage, ['cache_read', 'cache_read_audio'])
}

/** Tokens of the answer, visible or not. */
export function completionTokens(usage: Usage): number {
  return sum(usage, ['output', 'reasoning', 'output_audio', 'output_image'])
}

/** The classes of the tokens of a prompt, in the order in which it is laid out: a cache holds its beginning. */
export const promptClasses = [
  'cache_read',
  'cache_read_audio',
  'cache_write_1h',
  'cache_write_5m',
  'input',
  'input_audio',
  'input_image',
] as const satisfies readonly UsageClass[]

function sum(usage: Usage, names: readonly UsageClass[]): number {
  return names.reduce((total, name) => total + (usage[name] ?? 0), 0)
}
