import { asRouterError } from '../../core/errors.ts'
import { Fold } from '../../core/fold.ts'
import { mergeUsage } from '../../core/usage.ts'
import type { Target } from '../../manifest/target.ts'
import { yieldEach } from '../../runtime/event-loop.ts'
import { foldFacts, type StreamedAnswer } from '../../upstream/provider-stream.ts'
import type { StreamFrame } from '../../upstream/stream-frames.ts'
import { requireBounded, requireWhole } from './broken-stream.ts'
import { measuredReply } from './measured-reply.ts'
import type { PreparedCall } from './types.ts'

/** Holds a streamed answer back until it is whole. Throws RouterError, with the usage of the received part, when it breaks. */
export async function heldAnswer(
  answer: StreamedAnswer,
  target: Target,
  { answerBounds, admission, begunMs }: Pick<PreparedCall, 'answerBounds' | 'admission'> & { begunMs: number },
): Promise<StreamedAnswer> {
  const fold = new Fold(foldFacts(target.provider))
  const batches: StreamFrame[][] = []
  try {
    for await (const batch of answer.batches) {
      for (const { events } of batch) for (const event of events) fold.take(event)
      requireBounded(fold, target, answerBounds.bytes)
      batches.push(batch)
    }
    requireWhole(fold, target)
  } catch (thrown) {
    const error = asRouterError(thrown)
    const reply = fold.reply()
    const counted = { ...reply, usage: mergeUsage(reply.usage, error.billed ?? {}) }
    const ms = performance.now() - begunMs
    const { usage, estimated } = measuredReply(counted, target, admission, { complete: false, ms })
    error.billedModel ??= reply.model ?? answer.model
    error.billed = estimated ? { ...usage, corrected: true } : usage
    throw error
  }
  return { ...answer, batches: yieldEach(batches) }
}
