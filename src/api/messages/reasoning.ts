import type { JsonObject } from '../../core/json.ts'
import type { ReasoningPart } from '../../core/parts.ts'
import { defined } from '../check.ts'
import { writeForeignSignature } from '../foreign-signature.ts'

/** Reasoning as a block of this API: readable text with a signature, or a redacted block when there is none. */
export function reasoningBlock(part: ReasoningPart): JsonObject {
  const { text, summary, by, signature, encrypted, id } = part
  const thinking = text ?? summary ?? ''
  // An empty summary in the signature marks the readable text as the summary.
  const marked = text === undefined && thinking !== '' ? '' : summary
  const foreign = writeForeignSignature({ ...defined({ by, signature, encrypted, id, summary: marked }) }) ?? ''
  return thinking === '' && signature === undefined
    ? { type: 'redacted_thinking', data: foreign }
    : { type: 'thinking', thinking, signature: foreign }
}
