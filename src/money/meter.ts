import type { ModelEntry } from '../core/models/model.ts'
import type { Reply } from '../core/reply.ts'
import type { NeutralRequest } from '../core/request.ts'
import {
  completionClasses,
  completionTokens,
  promptClasses,
  promptTokens,
  type Total,
  type Usage,
  type UsageClass,
  unitClasses,
} from '../core/usage.ts'
import { estimateOutputTokens, estimateTokens } from './estimate-tokens.ts'

/** Facts about a call whose usage is measured. */
type Measured = {
  /** The estimated prompt. */
  promptTokens: number
  /** The reply came to its end. */
  complete: boolean
  /** Share of a streamed reply that came after its tokens were last counted. */
  early?: number
  /** Number of its choices; the parts of a reply are those of the first one. */
  choices: number
  /** Upper bounds of its tokens. */
  bounds: TokenBounds
  /** Estimated tokens of a part whose text was not kept. */
  unseenTokens?: number
  /** Estimate of what the provider may have used and not counted, where its count is not final. */
  hidden?(): Usage
}

/**
 * The most tokens of a prompt and of all that is written, the most of each class in `units`, which are not tokens, and the highest figure
 * of a provider's own.
 */
export type TokenBounds = { prompt: number; output: number; units?: Usage; reportedUsd?: number }

/**
 * The usage of a call: the provider's counts where it reported them and they can be, else an estimate. Where some could not be read, the
 * others are no less than the estimate.
 */
export function measuredUsage(reply: Reply, call: Measured): { usage: Usage; estimated: boolean } {
  const { usage, bounded } = boundedUsage(reply.usage, call.bounds)
  const measured = readPart(usage)
  const prompt = promptTokens(usage)
  const promptCounted = prompt > 0
  const promptEstimate = promptCounted && !isMissing(usage, 'input') ? 0 : call.promptTokens
  if (prompt < promptEstimate) measured.input = (usage.input ?? 0) + promptEstimate - prompt
  const counted = completionTokens(usage)
  const { early = 0 } = call
  // Counts of a stream that broke may cover only its beginning, as may those before its content: the output since then is estimated.
  const isWhole = call.complete && !isMissing(usage, 'output')
  const isFinal = isWhole && counted > 0 && early === 0
  // A provider that has counted the prompt of a whole reply, and no output, has generated none.
  const isCounted = isFinal || (isWhole && promptCounted && early < mostlyUncounted)
  const hidden: Usage = (isCounted ? undefined : call.hidden?.()) ?? {}
  const outputEstimate = isFinal
    ? 0
    : Math.min(Math.max(estimatedOutput(reply, call, isWhole ? counted : 0), hidden.output ?? 0), call.bounds.output)
  const isSilence = call.complete && promptCounted && outputEstimate === 0
  const outputEstimated = counted === 0 ? !isSilence : counted < outputEstimate
  if (outputEstimated) measured.output = Math.max(outputEstimate - (usage.reasoning ?? 0), 0)
  const uncounted = unitsAndDrawings.filter((name) => (hidden[name] ?? 0) > (usage[name] ?? 0))
  for (const name of uncounted) measured[name] = hidden[name] as number
  return { usage: measured, estimated: bounded || !promptCounted || outputEstimated || uncounted.length > 0 }
}

/** Checks whether the provider's count of a total may be what could not be read. */
function isMissing(usage: Usage, total: 'input' | 'output'): boolean {
  return usage.corrected === true && (usage[total] === undefined || usage.unread?.includes(total) === true)
}

/** Share of a reply without a count from which the provider has not counted what is hidden either. */
const mostlyUncounted = 0.5

function readPart({ unread: _, ...usage }: Usage): Usage {
  return usage
}

/** Classes in which the uses of tools are counted. */
const unitsAndDrawings: readonly UsageClass[] = [...unitClasses, 'drawing_output']

/** Estimates the output, besides what is counted of a whole reply. */
function estimatedOutput(
  { parts }: Reply,
  { choices, unseenTokens = 0, early = 0 }: Measured,
  counted: number,
): number {
  const all = (estimateOutputTokens(parts) + unseenTokens) * choices
  return counted > 0 ? counted + Math.ceil(all * early) : all
}

/** Counts within their bounds. Tokens beyond are taken from the classes that cost least: a count that cannot be lowers no charge. */
export function boundedUsage(usage: Usage, most: TokenBounds): { usage: Usage; bounded: boolean } {
  const prompt = promptTokens(usage)
  const output = completionTokens(usage)
  const { units = {} } = most
  const isReportable = usage.reported_cost === undefined || usage.reported_cost <= (most.reportedUsd ?? Infinity)
  const excessive = unitClasses.filter((name) => (usage[name] ?? 0) > (units[name] ?? Infinity))
  if (prompt <= most.prompt && output <= most.output && excessive.length === 0 && isReportable) {
    return { usage, bounded: usage.corrected === true }
  }
  const shrunk: Usage = { ...usage, corrected: true }
  shrink(shrunk, promptByPrice, prompt - most.prompt)
  shrink(shrunk, replyByPrice, output - most.output)
  for (const name of excessive) shrunk[name] = units[name] as number
  if (!isReportable) shrunk.reported_cost = most.reportedUsd as number
  return { usage: shrunk, bounded: true }
}

/** The tokens of a prompt and of a reply, those that cost least as a rule first. */
const promptByPrice = [
  ...(['cache_read', 'cache_read_audio', 'input', 'input_image'] as const),
  ...(['cache_write_5m', 'cache_write_1h', 'input_audio'] as const),
] satisfies readonly (typeof promptClasses)[number][]
const replyByPrice = ['reasoning', 'output', 'output_image', 'output_audio'] as const satisfies readonly UsageClass[]

/** Takes away tokens that are too many, of the first of these classes first. */
function shrink(usage: Usage, names: readonly UsageClass[], excess: number): void {
  for (const name of names) {
    const taken = Math.min(usage[name] ?? 0, Math.max(excess, 0))
    if (taken > 0) usage[name] = (usage[name] ?? 0) - taken
    excess -= taken
  }
}

/** The estimated tokens of a request. */
export function estimatePromptTokens(request: NeutralRequest): number {
  return estimateTokens(request).tokens
}

/** Facts about a call for an operation besides what its provider counted. */
export type CountedOperation = {
  /** Units that the router counted itself: characters, images, seconds. */
  counted: Usage
  /** Estimate of its tokens, where the provider counted none. */
  estimate: Usage
  /** The answer came to its end. */
  complete: boolean
  entry: ModelEntry | undefined
  bounds: TokenBounds
}

/**
 * The usage of a call: the provider's counts, within bounds; the router's own where it counted nothing of a class; tokens by an
 * estimate where a model that is priced by them was counted none.
 */
export function measuredOperation(reported: Usage, call: CountedOperation): { usage: Usage; estimated: boolean } {
  const { usage, estimated } = unboundedOperation(reported, call)
  // What was counted or estimated by the answer itself can be too much as well.
  const all = boundedUsage(usage, call.bounds)
  return { usage: readPart(all.usage), estimated: estimated || all.bounded }
}

function unboundedOperation(
  reported: Usage,
  { counted, estimate, complete, entry, bounds }: CountedOperation,
): { usage: Usage; estimated: boolean } {
  const { usage, bounded } = boundedUsage(reported, bounds)
  const known: Usage = withMinimum({ ...counted, ...usage }, entry)
  if (known.seconds === undefined && estimate.seconds !== undefined && isBySecond(entry)) {
    return { usage: withMinimum({ ...known, seconds: estimate.seconds }, entry), estimated: true }
  }
  if (known.megapixels === undefined && estimate.megapixels !== undefined && isByMegapixel(entry)) {
    return { usage: { ...known, megapixels: estimate.megapixels }, estimated: true }
  }
  const isByToken = (entry?.pricing ?? []).length > 0
  const hasTokens = promptTokens(usage) + completionTokens(usage) > 0
  const isPartial = !complete && completionTokens(usage) === 0
  if (!isByToken || (hasTokens && !isPartial && !reported.corrected)) return { usage: known, estimated: bounded }
  if (!hasTokens || isPartial) return { usage: { ...estimate, ...known }, estimated: true }
  const missing = uncounted(estimate, usage, entry?.api !== 'decision')
  return { usage: { ...known, ...missing }, estimated: true }
}

/** Estimated tokens of a prompt, and of a reply if that is billed, for which the provider's own could not be read. */
function uncounted(estimate: Usage, usage: Usage, billsOutput: boolean): Usage {
  const missing: Usage = {}
  const add = (names: readonly UsageClass[]) => {
    for (const name of names) if (estimate[name] !== undefined) missing[name] = estimate[name]
  }
  const raise = (total: Total, tokensOf: (usage: Usage) => number) => {
    const lacking = usage.unread?.includes(total) ? tokensOf(estimate) - tokensOf(usage) : 0
    if (lacking > 0) missing[total] = (usage[total] ?? 0) + lacking
  }
  if (promptTokens(usage) === 0) add(promptClasses)
  else raise('input', promptTokens)
  if (billsOutput && completionTokens(usage) === 0) add(completionClasses)
  else if (billsOutput) raise('output', completionTokens)
  return missing
}

function isByMegapixel(entry: ModelEntry | undefined): boolean {
  return entry?.other_prices?.per_megapixel !== undefined
}

function isBySecond(entry: ModelEntry | undefined): boolean {
  return entry?.other_prices?.per_second !== undefined
}

/** The seconds that a call is billed for: at least as many as the model's price is for. */
function withMinimum(usage: Usage, entry: ModelEntry | undefined): Usage {
  const { min_seconds: least = 0 } = entry ?? {}
  return usage.seconds === undefined || usage.seconds >= least ? usage : { ...usage, seconds: least }
}

/** Bounds whose highest reported figure, in US dollars, is computed only where a provider reports one: few do. */
export class PricedTokenBounds implements TokenBounds {
  readonly prompt: number
  readonly output: number
  readonly #reportedUsd: () => number

  constructor(prompt: number, output: number, reportedUsd: () => number) {
    this.prompt = prompt
    this.output = output
    this.#reportedUsd = reportedUsd
  }

  get reportedUsd(): number {
    return this.#reportedUsd()
  }
}

/**
 * Returns the bounds on a provider's counts of a call for an operation, given the maximum that was expected. Where `isLimited`, as one of
 * the accounts has a limit, nothing is charged that is not reserved; elsewhere a provider is believed that counts more, up to what is
 * `plausible`.
 */
export function operationBounds(most: Usage, isLimited: boolean, plausible: Usage = {}): TokenBounds {
  const least = isLimited ? 0 : minTokens
  return {
    prompt: Math.max(promptTokens(most), least),
    output: Math.max(completionTokens(most), least),
    units: unitsOf(most, (count, name) => (isLimited ? count : Math.max(count * 2 + 60, plausible[name] ?? 0))),
  }
}

/** Number of tokens up to which a provider's counts are believed, regardless of what was expected. */
const minTokens = 1_000_000

type UnitClass = (typeof unitClasses)[number]

function unitsOf(most: Usage, bound: (count: number, name: UnitClass) => number): Usage {
  const classes = unitClasses.filter((name) => most[name] !== undefined)
  return Object.fromEntries(classes.map((name) => [name, bound(most[name] as number, name)]))
}
