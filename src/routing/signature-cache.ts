import { LRUCache } from 'lru-cache'
import type { Part, ReasoningPart, ToolCallPart } from '../core/parts.ts'
import type { Reply } from '../core/reply.ts'
import type { Message, NeutralRequest } from '../core/request.ts'

/**
 * Remembers the signatures of replies that call tools. Many clients send back only the calls: without the signatures a
 * provider refuses the next round of the loop, or loses its reasoning.
 */
export type SignatureCache = {
  /** Remembers the signatures that the provider needs back with the calls of a reply. */
  remember(organization: string, reply: Reply): void
  /** The request with the signatures that the client left out. The client's own object is not changed. */
  restore(organization: string, request: NeutralRequest): NeutralRequest
  /** Remembers what another cache has remembered. */
  adopt(remembered: RememberedSignatures): void
}

/** Signatures as another thread may remember them; without an entry they no longer apply. */
export type RememberedSignatures = { key: string; entry?: Entry }

/** The signed reasoning before the first call of a reply, and the signatures of its calls by id. */
type Entry = { reasoning: ReasoningPart[]; calls: Map<string, CallSignature> }
type CallSignature = Pick<ToolCallPart, 'signature' | 'by'>

/** The next round of a tool loop is expected within this time. */
const rememberedMs = 60 * 60 * 1_000
/** Characters of all signatures together. */
const rememberedSize = 64 * 1024 * 1024

/** Opens an empty cache, bounded in size and time. It lives as long as the process. `onRemember` tells other caches. */
export function openSignatureCache(onRemember: (remembered: RememberedSignatures) => void = () => {}): SignatureCache {
  const known = new LRUCache<string, Entry>({ maxSize: rememberedSize, ttl: rememberedMs })
  const keyOf = (organization: string, call: string) => `${organization} ${call}`
  const adopt = ({ key, entry }: RememberedSignatures) => {
    if (entry) known.set(key, entry, { size: sizeOf(entry) })
    else known.delete(key)
  }
  return {
    adopt,
    remember(organization, { parts }) {
      const first = parts.find(isCall)
      if (!first) return
      const key = keyOf(organization, first.id)
      const entry = entryOf(parts)
      // Some providers reuse ids: the entry of an earlier reply with the same id no longer applies.
      if (!entry && !known.has(key)) return
      const remembered = { key, ...(entry && { entry }) }
      adopt(remembered)
      onRemember(remembered)
    },
    restore(organization, request) {
      if (known.size === 0 || !request.messages.some(lacksSignatures)) return request
      const messages = request.messages.map((message) => {
        const first = lacksSignatures(message) ? message.parts.find(isCall) : undefined
        const entry = first && known.get(keyOf(organization, first.id))
        return entry && isSameTurn(message, entry) ? withSignatures(message, entry) : message
      })
      return { ...request, messages }
    },
  }
}

function entryOf(parts: readonly Part[]): Entry | undefined {
  const reasoning = parts.slice(0, parts.findIndex(isCall)).filter(isSignedReasoning)
  const calls = parts.filter(isCall)
  if (reasoning.length === 0 && calls.every(({ signature }) => signature === undefined)) return undefined
  return { reasoning, calls: new Map(calls.map((call) => [call.id, signatureOf(call)])) }
}

function signatureOf({ signature, by }: ToolCallPart): CallSignature {
  return { ...(signature !== undefined && { signature }), ...(by !== undefined && { by }) }
}

/** An assistant message with calls in which no part is signed. */
function lacksSignatures({ role, parts }: Message): boolean {
  const unsigned = (part: Part) => !isSignedReasoning(part) && !(isCall(part) && part.signature !== undefined)
  return role === 'assistant' && parts.some(isCall) && parts.every(unsigned)
}

function isSameTurn({ parts }: Message, { calls }: Entry): boolean {
  const ids = parts.filter(isCall).map(({ id }) => id)
  return ids.length === calls.size && ids.every((id) => calls.has(id))
}

function withSignatures(message: Message, { reasoning, calls }: Entry): Message {
  // The signed reasoning replaces what the client sent back as plain text.
  const rest = reasoning.length > 0 ? message.parts.filter(({ type }) => type !== 'reasoning') : message.parts
  const parts = rest.map((part) => (isCall(part) ? { ...part, ...calls.get(part.id) } : part))
  return { ...message, parts: [...reasoning, ...parts] }
}

function isCall(part: Part): part is ToolCallPart {
  return part.type === 'tool_call'
}

function isSignedReasoning(part: Part): part is ReasoningPart {
  return part.type === 'reasoning' && (part.signature !== undefined || part.encrypted !== undefined)
}

function sizeOf({ reasoning, calls }: Entry): number {
  return JSON.stringify([reasoning, [...calls]]).length
}
