import type { Part, ReasoningPart } from './parts.ts'
import type { Message, NeutralRequest } from './request.ts'

/**
 * Prepares a request for a provider that accepts the signatures of one signer. Reasoning that the router restored replaces what the
 * client sent of it for that signer alone: no other provider gets a text that the client did not send.
 */
export function withReasoningFor(request: NeutralRequest, maker: string): NeutralRequest {
  return withMessages(request, ({ parts, ...message }) => {
    const isOwn = parts.some((part) => isRestored(part) && part.by === maker)
    return { ...message, parts: parts.flatMap((part) => partFor(part, { maker, isOwn })) }
  })
}

/** Returns a request as the client sent it, without the reasoning that the router restored. */
export function withoutRestoredReasoning(request: NeutralRequest): NeutralRequest {
  return withMessages(request, ({ parts, ...message }) => ({
    ...message,
    parts: parts.filter((part) => !isRestored(part)),
  }))
}

function partFor(part: Part, { maker, isOwn }: { maker: string; isOwn: boolean }): Part[] {
  if (part.type !== 'reasoning') return [part]
  if (!part.restored) return isOwn ? [] : [part]
  const { restored: _restored, ...own } = part
  return part.by === maker ? [own] : []
}

/** Changes the messages with restored reasoning. */
function withMessages(request: NeutralRequest, change: (message: Message) => Message): NeutralRequest {
  const hasRestored = ({ parts }: Message) => parts.some(isRestored)
  if (!request.messages.some(hasRestored)) return request
  return { ...request, messages: request.messages.map((one) => (hasRestored(one) ? change(one) : one)) }
}

function isRestored(part: Part): part is ReasoningPart {
  return part.type === 'reasoning' && part.restored === true
}
