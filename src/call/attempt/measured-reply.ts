import type { Reply } from '../../core/reply.ts'
import type { Target } from '../../manifest/target.ts'
import { measuredUsage } from '../../money/meter.ts'
import type { Admission, MeasuredUsage } from '../types.ts'

/** The usage of a reply as far as it was received; `complete` when it came to its end. */
export function measuredReply(
  reply: Reply,
  target: Target,
  { promptTokens, choices, mostAt }: Pick<Admission, 'promptTokens' | 'choices' | 'mostAt'>,
  complete: boolean,
): MeasuredUsage {
  try {
    return measuredUsage(reply, { promptTokens, complete, choices, most: mostAt(target, hasRemoteParts(reply)) })
  } catch {
    // Providers may send anything: a call whose reply cannot be counted must still be settled.
    return { usage: reply.usage, estimated: true }
  }
}

function hasRemoteParts({ parts }: Reply): boolean {
  return parts.some(({ type }) => type === 'search' || type === 'opaque')
}
