import type { Reply } from '../core/reply.ts'
import type { NeutralRequest } from '../core/request.ts'
import { completionTokens, promptTokens, type Usage } from '../core/usage.ts'
import { estimateOutputTokens, estimateTokens } from './estimate-tokens.ts'

/** The usage of a call: the provider's counts where it reported them, else an estimate. */
export function measuredUsage(
  reply: Reply,
  passed: { promptTokens: number; complete: boolean },
): { usage: Usage; estimated: boolean } {
  const { usage } = reply
  const measured: Usage = { ...usage }
  const promptCounted = promptTokens(usage) > 0
  if (!promptCounted) measured.input = passed.promptTokens
  const counted = completionTokens(usage)
  // Counts of a stream that broke may cover only its beginning: the output since then is estimated.
  const outputEstimate = passed.complete && counted > 0 ? 0 : estimateOutputTokens(reply.parts)
  const isSilence = passed.complete && promptCounted && outputEstimate === 0
  const outputEstimated = counted === 0 ? !isSilence : counted < outputEstimate
  if (outputEstimated) measured.output = Math.max(outputEstimate - (usage.reasoning ?? 0), 0)
  return { usage: measured, estimated: !promptCounted || outputEstimated }
}

/** The estimated tokens of a request. */
export function estimatePromptTokens(request: NeutralRequest): number {
  return estimateTokens(request).tokens
}
