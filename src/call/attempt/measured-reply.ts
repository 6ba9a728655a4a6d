import type { CallContents } from '../../core/call-contents.ts'
import type { Reply } from '../../core/reply.ts'
import type { Usage } from '../../core/usage.ts'
import type { Target } from '../../manifest/target.ts'
import { measuredUsage } from '../../money/meter.ts'
import type { Admission } from '../admission/admission.ts'

/** What a call used: as the provider counted it, or `estimated`; and what was said, where spans have it. */
export type MeasuredUsage = { usage: Usage; estimated: boolean; contents?: CallContents }

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
