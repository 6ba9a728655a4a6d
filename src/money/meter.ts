import type { Reply } from '../core/reply.ts'
import type { NeutralRequest } from '../core/request.ts'
import {
  completionClasses,
  completionTokens,
  promptClasses,
  promptTokens,
  type Usage,
  type UsageClass,
  unitClasses,
} from '../core/usage.ts'
import { estimateOutputTokens, estimateTokens } from './estimate-tokens.ts'

/** What is known of a call whose usage is measured. */
export type Measured = {
  /** The estimated prompt. */
  promptTokens: number
  /** The reply came to its end. */
  complete: boolean
  /** How many choices it has; the parts of a reply are those of the first one. */
  choices: number
  /** More tokens than these there cannot be. */
  most: TokenBounds
}

/**
 * The most tokens of a prompt and of all that is written, the most of each class in `units`, which are not tokens, and the highest figure
 * of a provider's own.
 */
export type TokenBounds = { prompt: number; output: number; units?: Usage; reportedUsd?: number }

/** The usage of a call: the provider's counts where it reported them and they can be, else an estimate. */
export function measuredUsage(reply: Reply, call: Measured): { usage: Usage; estimated: boolean } {
  const { usage, bounded } = boundedUsage(reply.usage, call.most)
  const measured: Usage = { ...usage }
  const promptCounted = promptTokens(usage) > 0
  if (!promptCounted) measured.input = call.promptTokens
  const counted = completionTokens(usage)
  // Counts of a stream that broke may cover only its beginning: the output since then is estimated.
  const outputEstimate = call.complete && counted > 0 ? 0 : estimatedOutput(reply, call)
  const isSilence = call.complete && promptCounted && outputEstimate === 0
  const outputEstimated = counted === 0 ? !isSilence : counted < outputEstimate
  if (outputEstimated) measured.output = Math.max(outputEstimate - (usage.reasoning ?? 0), 0)
  return { usage: measured, estimated: bounded || !promptCounted || outputEstimated }
}

function estimatedOutput({ parts }: Reply, { choices, most }: Measured): number {
  return Math.min(estimateOutputTokens(parts) * choices, most.output)
}

/** Counts within their bounds; those beyond are shrunk alike. */
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
  shrink(shrunk, promptClasses, most.prompt / prompt)
  shrink(shrunk, completionClasses, most.output / output)
  for (const name of excessive) shrunk[name] = units[name] as number
  if (!isReportable) shrunk.reported_cost = most.reportedUsd as number
  return { usage: shrunk, bounded: true }
}

function shrink(usage: Usage, names: readonly UsageClass[], factor: number): void {
  if (!(factor < 1)) return
  for (const name of names) if (usage[name] !== undefined) usage[name] = Math.floor(usage[name] * factor)
}

/** The estimated tokens of a request. */
export function estimatePromptTokens(request: NeutralRequest): number {
  return estimateTokens(request).tokens
}
