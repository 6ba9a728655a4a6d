import type { JsonObject } from '../../core/json.ts'
import type { ReasoningPart } from '../../core/parts.ts'
import { type ForeignSignature, writeForeignSignature } from '../foreign-signature.ts'

/** Reasoning as a block of this API: readable text with a signature, or a sealed block when there is nothing to read. */
export function reasoningBlock(part: ReasoningPart): JsonObject {
  const { text, summary, by, signature, encrypted, id } = part
  const words = text ?? summary ?? ''
  // Words that are the summary themselves are told apart from others by an empty one in the seal.
  const told = text === undefined && words !== '' ? '' : summary
  const kept = writeForeignSignature({ by, signature, encrypted, id, summary: told } as ForeignSignature) ?? ''
  return words === '' && signature === undefined
    ? { type: 'redacted_thinking', data: kept }
    : { type: 'thinking', thinking: words, signature: kept }
}
