import { LRUCache } from 'lru-cache'
import type { Part, ReasoningPart, ToolCallPart } from '../core/parts.ts'
import type { Reply } from '../core/reply.ts'
import type { Message, NeutralRequest } from '../core/request.ts'

/**
 * Remembers the seals of replies that call tools. Many clients send back only the calls: without its seals a provider
 * refuses the next round of the loop or forgets what it thought.
 */
export type Seals = {
  /** Keeps what the maker of a reply wants back with its calls. */
  keep(organization: string, reply: Reply): void
  /** The request with kept seals where the client left them out. The client's own is not changed. */
  restore(organization: string, request: NeutralRequest): NeutralRequest
}

/** What stood before the first call of a reply, and the seals on its calls by id. */
type Kept = { reasoning: ReasoningPart[]; calls: Map<string, Seal> }
type Seal = Pick<ToolCallPart, 'signature' | 'by'>

/** A loop takes its next round within this time, or it begins anew. */
const rememberedMs = 60 * 60 * 1_000
/** Characters of all seals together. */
const rememberedSize = 64 * 1024 * 1024

/** Opens an empty memory, bounded in size and time; it belongs to the process. */
export function openSeals(): Seals {
  const known = new LRUCache<string, Kept>({ maxSize: rememberedSize, ttl: rememberedMs })
  const keyOf = (organization: string, call: string) => `${organization} ${call}`
  return {
    keep(organization, { parts }) {
      const first = parts.find(isCall)
      if (!first) return
      const key = keyOf(organization, first.id)
      const kept = sealsOf(parts)
      // Some makers begin their ids anew: what an earlier reply with the same one said is no longer meant.
      if (kept) known.set(key, kept, { size: sizeOf(kept) })
      else known.delete(key)
    },
    restore(organization, request) {
      if (known.size === 0 || !request.messages.some(lacksSeals)) return request
      const messages = request.messages.map((message) => {
        const first = lacksSeals(message) ? message.parts.find(isCall) : undefined
        const kept = first && known.get(keyOf(organization, first.id))
        return kept && isSameTurn(message, kept) ? sealed(message, kept) : message
      })
      return { ...request, messages }
    },
  }
}

function sealsOf(parts: readonly Part[]): Kept | undefined {
  const reasoning = parts.slice(0, parts.findIndex(isCall)).filter(isSealedReasoning)
  const calls = parts.filter(isCall)
  if (reasoning.length === 0 && calls.every(({ signature }) => signature === undefined)) return undefined
  return { reasoning, calls: new Map(calls.map((call) => [call.id, sealOf(call)])) }
}

function sealOf({ signature, by }: ToolCallPart): Seal {
  return { ...(signature !== undefined && { signature }), ...(by !== undefined && { by }) }
}

/** An assistant's calls that come back bare: neither they nor anything beside them carries a seal. */
function lacksSeals({ role, parts }: Message): boolean {
  const bare = (part: Part) => !isSealedReasoning(part) && !(isCall(part) && part.signature !== undefined)
  return role === 'assistant' && parts.some(isCall) && parts.every(bare)
}

function isSameTurn({ parts }: Message, { calls }: Kept): boolean {
  const ids = parts.filter(isCall).map(({ id }) => id)
  return ids.length === calls.size && ids.every((id) => calls.has(id))
}

function sealed(message: Message, { reasoning, calls }: Kept): Message {
  // Reasoning that came back as plain text is told by the kept one, word for word as its maker sealed it.
  const rest = reasoning.length > 0 ? message.parts.filter(({ type }) => type !== 'reasoning') : message.parts
  const parts = rest.map((part) => (isCall(part) ? { ...part, ...calls.get(part.id) } : part))
  return { ...message, parts: [...reasoning, ...parts] }
}

function isCall(part: Part): part is ToolCallPart {
  return part.type === 'tool_call'
}

function isSealedReasoning(part: Part): part is ReasoningPart {
  return part.type === 'reasoning' && (part.signature !== undefined || part.encrypted !== undefined)
}

function sizeOf({ reasoning, calls }: Kept): number {
  return JSON.stringify([reasoning, [...calls]]).length
}
