import type { NeutralRequest } from '../../src/core/request.ts'
import { boundedCall, costBound, type PricedTarget, promptBound, requestedLength } from '../../src/money/max-cost.ts'

/**
 * What a call at these targets holds, and of what; `leftNano` is what a caller with a limit can still pay, `counted` the tokens of the
 * text where a tokenizer has counted them.
 */
export function maxCost(
  request: NeutralRequest,
  targets: readonly PricedTarget[],
  {
    defaultOutputTokens,
    at,
    leftNano,
    counted,
  }: { defaultOutputTokens: number; at: number; leftNano?: bigint; counted?: number },
) {
  const call = boundedCall(request, at, counted)
  const holds = targets.map((target) => {
    const asked = requestedLength(call, target, { leftNano, defaultLength: defaultOutputTokens })
    return { ...asked, nanoUsd: costBound(call, target, asked.output), promptTokens: promptBound(call, target) }
  })
  return {
    nanoUsd: holds.reduce((most, { nanoUsd }) => (nanoUsd > most ? nanoUsd : most), 0n),
    promptTokens: Math.max(0, ...holds.map(({ promptTokens }) => promptTokens)),
    outputTokens: Math.max(0, ...holds.map(({ output }) => output)),
    lengths: holds.map(({ length }) => length),
  }
}
