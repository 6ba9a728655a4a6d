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
  'page_visits',
] as const

/**
 * The name of one class: tokens, except searches, page visits, file searches, code runs, groundings, containers (in gigabytes of
 * memory), images, megapixels, input images, seconds, characters and queries of a rerank. `citations` are tokens of sources that are part of neither the prompt nor the
 * reply; those of `drawing` were read and written by an image model that is a tool.
 */
export type UsageClass = (typeof usageClasses)[number]

/**
 * Counts by class; a class that is missing was not counted. `reported_cost` is the provider's own figure in USD, `modes`
 * are the ways of serving that it billed: a service tier, a speed, a region (`priority`, `fast`, `us`), the quality and size of images. `corrected` counts
 * could not be as they were reported; the last report of the totals in `unread` could not be read.
 */
export type Usage = { [name in UsageClass]?: number } & {
  reported_cost?: number
  modes?: string[]
  corrected?: true
  unread?: Total[]
}

/** The tokens of the prompt or of the reply together. */
export type Total = 'input' | 'output'

/**
 * Counts as a provider reports them: `cache_write` is a sum of writes whose lifetimes are not reported, `total` its own sum of all tokens.
 */
export type ReportedUsage = Usage & { cache_write?: number; total?: number }

/**
 * Merges counts: later ones replace earlier ones class by class, unless fewer tokens of a prompt or of a reply would be left, and so do
 * the modes of serving, of which the ordinary one is omitted. Of a sum of cache writes, those not reported to live 1 h live 5 min. Values
 * that cannot be counts are absent, so that the meter estimates them.
 */
export function mergeUsage(earlier: Usage, reported: ReportedUsage): Usage {
  const { counts, isCorrected } = plausibleCounts(reported)
  const merged: Usage = { ...earlier }
  for (const group of tokenGroups) replaceTokens(merged, group, counts)
  for (const name in counts) {
    const count = counts[name as UsageClass] as number
    if (otherCounts.has(name)) merged[name as UsageClass] = Math.max(count, merged[name as UsageClass] ?? 0)
  }
  addHidden(merged, reported.total)
  if (earlier.unread || reported.unread)
    setUnread(merged, earlier.unread ?? [], { ...counts, unread: reported.unread ?? [] })
  // Events of a stream may report parts before their whole: only the last ones must fit.
  const isWhole = merged.input !== undefined && merged.output !== undefined && !merged.unread
  if (isCorrected) merged.corrected = true
  else if (merged.corrected && isWhole) delete merged.corrected
  const { modes } = reported
  const served = Array.isArray(modes) ? modes.filter(isModeName) : none
  if (served.length > 0) {
    const special = [...new Set(served)].filter((mode) => !plainModes.has(mode))
    if (special.length > 0) merged.modes = special.slice(0, maxModes)
    else delete merged.modes
  }
  return merged
}

/** Sets the totals that could not be read and were not reported again. */
function setUnread(
  merged: Usage,
  earlier: readonly Total[],
  { unread, ...counts }: Usage & { unread: readonly Total[] },
): void {
  const totals = totalNames.filter(
    (total) => unread.includes(total) || (earlier.includes(total) && counts[total] === undefined),
  )
  if (totals.length > 0) merged.unread = totals
  else delete merged.unread
}

const totalNames = ['input', 'output'] as const satisfies readonly Total[]

/** Returns the totals that are higher by one report than by another one, as that has counted none of a class of theirs. */
export function totalsMissing(counted: ReportedUsage, fuller: ReportedUsage): Total[] {
  return totalNames.filter((total) => {
    const names = total === 'input' ? ([...promptClasses, 'cache_write'] as const) : completionClasses
    const of = (counts: ReportedUsage) => names.reduce((sum, name) => sum + (Number(counts[name]) || 0), 0)
    const isMissing = names.some((name) => !Number.isFinite(counted[name]) && Number(fuller[name]) > 0)
    return isMissing && of(fuller) > of(counted)
  })
}

/** Returns the totals of which a report has no count. */
export function totalsUncounted(counted: ReportedUsage): Total[] {
  return totalNames.filter((total) => counted[total] === undefined)
}

/** Replaces the counts of a prompt or a reply, unless the reported ones are fewer tokens. */
function replaceTokens(merged: Usage, group: readonly UsageClass[], counts: ReportedUsage): void {
  const later: Usage = {}
  for (const name of group) if (counts[name] !== undefined) later[name] = counts[name]
  if (counts.cache_write !== undefined && group === promptClasses) {
    const longLived = counts.cache_write_1h ?? merged.cache_write_1h ?? 0
    later.cache_write_5m = Math.max(0, counts.cache_write - longLived)
  }
  if (sum({ ...merged, ...later }, group) >= sum(merged, group)) Object.assign(merged, later)
}

/**
 * Counts as tokens of the reply what a provider's sum has beyond all parts: reasoning that it does not report. Where no reply is counted,
 * none is billed, or its count could not be read.
 */
function addHidden(usage: Usage, total: unknown): void {
  const prompt = promptTokens(usage)
  if (!isCount(total) || prompt === 0 || usage.output === undefined) return
  const hidden = Math.floor(total) - prompt - completionTokens(usage) - (usage.citations ?? 0)
  if (hidden > 0) usage.output += hidden
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

/**
 * Returns the counts that can be. Mappings subtract parts from the totals of a prompt and of a reply: a part that is negative, or more
 * than its total, is no count, and its total stays as it was. Reasoning of more tokens than the reply was counted beside it.
 */
function plausibleCounts(reported: ReportedUsage): { counts: ReportedUsage; isCorrected: boolean } {
  const counts: ReportedUsage = {}
  let isCorrected = reported.corrected === true
  let hasDeficit = false
  for (const name in reported) {
    const count: unknown = reported[name as UsageClass]
    if (!reportedCounts.has(name) || count === undefined || count === null) continue
    if (isCount(count) && (fractional.has(name) || Number.isInteger(count))) {
      counts[name as UsageClass] = count
      hasDeficit ||= count < 0
    } else isCorrected = true
  }
  if (!hasDeficit) return { counts, isCorrected }
  for (const [total, parts] of partsOfTotals) resolveDeficits(counts, total, parts)
  for (const name in counts) if ((counts[name as UsageClass] as number) < 0) delete counts[name as UsageClass]
  return { counts, isCorrected: true }
}

/** Adds parts to their total again that cannot be: negative ones, and as many as it takes until the total is not negative. */
function resolveDeficits(counts: ReportedUsage, total: 'input' | 'output', parts: readonly TokenPart[]): void {
  const reply = completionTokens(counts)
  for (const wanted of ['negative', 'any'] as const) {
    for (const part of parts) {
      const [whole, count] = [counts[total], counts[part]]
      if (whole === undefined || count === undefined || (wanted === 'negative' ? count >= 0 : whole >= 0)) continue
      counts[total] = whole + count
      const isBeside = part === 'reasoning' && count > reply
      if (!isBeside) delete counts[part]
    }
  }
}

const none: readonly string[] = []

/** Counts that mappings subtract from the totals of a prompt and of a reply, those that cost least first. */
const partsOfTotals = [
  [
    'input',
    ['cache_read', 'cache_read_audio', 'input_image', 'input_audio', 'cache_write', 'cache_write_5m', 'cache_write_1h'],
  ],
  ['output', ['reasoning', 'output_image', 'output_audio']],
] as const

type TokenPart = (typeof partsOfTotals)[number][1][number]

/** Counts that may have fractions. */
export const fractional: ReadonlySet<string> = new Set(['seconds', 'megapixels', 'reported_cost'])

/** Count that no request reaches: it is a provider's mistake, and billing it would empty the balance. */
export const impossibleCount = 1e10

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

const tokenGroups: readonly (readonly UsageClass[])[] = [promptClasses, completionClasses]

/** The members of a usage that are counts, and those of them that are tokens of neither the prompt nor the reply. */
const reportedCounts: ReadonlySet<string> = new Set([...usageClasses, 'cache_write', 'reported_cost'])
const otherCounts: ReadonlySet<string> = new Set(
  [...usageClasses, 'reported_cost'].filter((name) => !tokenGroups.flat().includes(name as UsageClass)),
)

/** The classes that are not tokens. */
export const unitClasses: readonly UsageClass[] = usageClasses.filter(
  (name) => ![...promptClasses, ...completionClasses, 'citations', 'drawing_input', 'drawing_output'].includes(name),
)

function sum(usage: Usage, names: readonly UsageClass[]): number {
  return names.reduce((total, name) => total + (usage[name] ?? 0), 0)
}
