import type { Reply } from '../core/reply.ts'
import type { NeutralRequest } from '../core/request.ts'
import { completionTokens, promptTokens, type Usage } from '../core/usage.ts'
import { estimateOutputTokens, estimateTokens } from './estimate-tokens.ts'

/** What a call used: the provider's own counts where it gave them, else an estimate from what passed. */
export function measuredUsage(
  reply: Reply,
  passed: { promptTokens: number; complete: boolean },
): { usage: Usage; estimated: boolean } {
  const { usage } = reply
  const measured: Usage = { ...usage }
  const promptCounted = promptTokens(usage) > 0
  if (!promptCounted) measured.input = passed.promptTokens
  const counted = completionTokens(usage)
  // Counts of a stream that broke may be of its beginning: what has come since counts as well.
  const said = passed.complete && counted > 0 ? 0 : estimateOutputTokens(reply.parts)
  const isSilence = passed.complete && promptCounted && said === 0
  const answerEstimated = counted === 0 ? !isSilence : counted < said
  if (answerEstimated) measured.output = Math.max(said - (usage.reasoning ?? 0), 0)
  return { usage: measured, estimated: !promptCounted || answerEstimated }
}

/** Tokens of a request where nobody counted them. */
export function estimatePromptTokens(request: NeutralRequest): number {
  return estimateTokens(request).tokens
}
