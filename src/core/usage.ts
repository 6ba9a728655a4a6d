/** Disjoint classes of what is counted, so that the cost is the sum of price × count. */
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
  'code_runs',
  'x_searches',
  'maps_groundings',
  'containers',
  'drawing_input',
  'drawing_output',
  'megapixels',
  'queries',
  'input_images',
] as const

/**
 * The name of one class: tokens, except searches, file searches, code runs, groundings, containers (in gigabytes of
 * memory), images, megapixels, input images, seconds, characters and queries of a rerank. `citations` are tokens of sources that are part of neither the prompt nor the
 * reply; those of `drawing` were read and written by an image model that is a tool.
 */
export type UsageClass = (typeof usageClasses)[number]

/**
 * Counts by class; a class that is missing was not counted. `reported_cost` is the provider's own figure in USD, `modes`
 * are the ways of serving that it billed: a service tier, a speed, a region (`priority`, `fast`, `us`), the quality and size of images. `corrected` counts
 * could not be as they were reported.
 */
export type Usage = { [name in UsageClass]?: number } & { reported_cost?: number; modes?: string[]; corrected?: true }

/** Counts as a provider reports them: `cache_write` is a sum of writes whose lifetimes are not reported. */
export type ReportedUsage = Usage & { cache_write?: number }

/**
 * Merges counts: later ones replace earlier ones class by class, and so do the modes of serving, of which the ordinary one is omitted. Of
 * a sum of cache writes, those not reported to live 1 h live 5 min. Values that cannot be counts are ignored, so that the meter estimates
 * them.
 */
export function mergeUsage(earlier: Usage, reported: ReportedUsage): Usage {
  const merged: Usage = { ...earlier }
  const later = withoutDeficits(reported)
  // Events of a stream may report parts before their whole: only the last ones must fit.
  if (later !== reported) merged.corrected = true
  else if (merged.corrected && (isCount(later.input) || isCount(later.output))) delete merged.corrected
  for (const name in later) {
    const count = later[name as UsageClass]
    if (!counts.has(name) || !isCount(count)) continue
    merged[name as UsageClass] = Math.max(0, fractional.has(name) ? count : Math.round(count))
  }
  const { cache_write, modes } = later
  if (isCount(cache_write)) merged.cache_write_5m = Math.max(0, Math.round(cache_write) - (merged.cache_write_1h ?? 0))
  const served = Array.isArray(modes) ? modes.filter(isModeName) : none
  if (served.length > 0) {
    const special = [...new Set(served)].filter((mode) => !plainModes.has(mode))
    if (special.length > 0) merged.modes = special.slice(0, maxModes)
    else delete merged.modes
  }
  return merged
}

/** The counts of two calls together. */
export function addUsage(one: Usage, other: Usage): Usage {
  const sum: Usage = { ...one, ...other }
  for (const name of [...usageClasses, 'reported_cost'] as const) {
    if (one[name] !== undefined && other[name] !== undefined) sum[name] = one[name] + other[name]
  }
  const modes = [...new Set([...(one.modes ?? []), ...(other.modes ?? [])])]
  return modes.length > 0 ? { ...sum, modes } : sum
}

/** Resolves totals that are less than a part of them: the part is then as large as the whole. */
function withoutDeficits(reported: ReportedUsage): ReportedUsage {
  if (!hasDeficit(reported)) return reported
  const mended: ReportedUsage = { ...reported }
  for (const [whole, parts] of partsOfTotals) {
    let missing = -Math.min(numberOf(mended[whole]), 0)
    for (const part of parts) {
      const taken = Math.min(missing, Math.max(numberOf(mended[part]), 0))
      if (taken > 0) mended[part] = numberOf(mended[part]) - taken
      missing -= taken
    }
  }
  return mended
}

function hasDeficit(reported: ReportedUsage): boolean {
  for (const name in reported) {
    if ((name === 'cache_write' || classes.has(name)) && isDeficit(reported[name as UsageClass])) return true
  }
  return false
}

const classes: ReadonlySet<string> = new Set(usageClasses)
/** The members of a usage that are counts. */
const counts: ReadonlySet<string> = new Set([...usageClasses, 'reported_cost'])
const none: readonly string[] = []

/** Counts that mappings subtract from the totals of a prompt and of a reply. */
const partsOfTotals = [
  ['input', ['cache_read', 'cache_write', 'cache_write_5m', 'cache_write_1h', 'input_audio', 'input_image']],
  ['output', ['reasoning', 'output_audio', 'output_image']],
] as const

function isDeficit(count: unknown): boolean {
  return typeof count === 'number' && count < 0
}

function numberOf(count: unknown): number {
  return isCount(count) ? count : 0
}

/** Counts that may have fractions; all others are rounded to whole ones before they are billed. */
export const fractional: ReadonlySet<string> = new Set(['seconds', 'megapixels', 'reported_cost'])

/** Count that no request reaches: it is a provider's mistake, and billing it would empty the balance. */
const impossibleCount = 1e10

function isCount(count: unknown): count is number {
  return typeof count === 'number' && Math.abs(count) < impossibleCount
}

/** Providers' names for the ordinary way of serving, at list prices. */
const plainModes: ReadonlySet<string> = new Set(['default', 'standard', 'auto', 'on_demand', 'global', 'not_available'])

/** Checks whether a name stands for the ordinary way of serving, at list prices. */
export function isPlainMode(mode: string): boolean {
  return plainModes.has(mode)
}

/** A call is served in one tier, at one speed, in one region: these bounds are generous. */
const maxModes = 8
const maxModeLength = 64

function isModeName(mode: unknown): mode is string {
  return typeof mode === 'string' && mode.length > 0 && mode.length <= maxModeLength
}

/** Checks whether there is anything to bill. */
export function countsAnything(usage: Usage): boolean {
  return (usage.reported_cost ?? 0) > 0 || usageClasses.some((name) => (usage[name] ?? 0) > 0)
}

/** Tokens of the prompt, cached or not. */
export function promptTokens(usage: Usage): number {
  return sum(usage, promptClasses)
}

/** Tokens of the prompt that were read from a cache. */
export function cachedTokens(usage: Usage): number {
  return sum(usage, ['cache_read', 'cache_read_audio'])
}

/** Tokens of the reply, visible or not. */
export function completionTokens(usage: Usage): number {
  return sum(usage, completionClasses)
}

/** The classes of tokens of the reply. */
export const completionClasses = [
  'output',
  'reasoning',
  'output_audio',
  'output_image',
] as const satisfies readonly UsageClass[]

/** The classes of prompt tokens in the order of the prompt, whose beginning is cached. */
export const promptClasses = [
  'cache_read',
  'cache_read_audio',
  'cache_write_1h',
  'cache_write_5m',
  'input',
  'input_audio',
  'input_image',
] as const satisfies readonly UsageClass[]

/** The classes that are not tokens. */
export const unitClasses: readonly UsageClass[] = usageClasses.filter(
  (name) => ![...promptClasses, ...completionClasses, 'citations', 'drawing_input', 'drawing_output'].includes(name),
)

function sum(usage: Usage, names: readonly UsageClass[]): number {
  return names.reduce((total, name) => total + (usage[name] ?? 0), 0)
}
