import { LRUCache } from 'lru-cache'
import type { Part, ReasoningPart, ToolCallPart } from '../core/parts.ts'
import type { Reply } from '../core/reply.ts'
import type { Message, NeutralRequest } from '../core/request.ts'
import { callsIn, familyOf, TurnKeys } from './turn-keys.ts'

/**
 * Cache of the signatures of replies that call tools. Many clients send back only the calls: without the signatures a
 * provider refuses the next round of the loop, or loses its reasoning.
 */
export type SignatureCache = {
  /** Remembers the signatures that the provider needs back with the calls of a reply to this request. */
  remember(caller: Caller, request: Conversation, reply: Reply): void
  /**
   * Restores the signatures that the client left out, where a turn is the same in all that `TurnKeys` compares. Reasoning whose text the
   * client did not send is marked as `restored`. The client's own object is not changed.
   */
  restore(caller: Caller, request: NeutralRequest): NeutralRequest
  /** Adopts the entries of another cache. */
  merge(remembered: RememberedSignatures): void
}

/** The API key of a call: replies to one key are never used for another, even of the same organization. */
type Caller = { id: string }
type Conversation = Pick<NeutralRequest, 'messages'>

/** Signatures as another thread may remember them; without an entry they no longer apply. */
export type RememberedSignatures = { key: string; entry?: Entry }

/** The signed reasoning before the first call of a reply, and the signatures of its calls by id. */
type Entry = { reasoning: ReasoningPart[]; calls: Map<string, CallSignature> }
type CallSignature = Pick<ToolCallPart, 'signature' | 'by'>

/** The next round of a tool loop is expected within this time. */
const rememberedMs = 60 * 60 * 1_000
/** Characters of all signatures together. */
const rememberedSize = 64 * 1024 * 1024

/** Opens an empty cache, bounded in size and time. It lives as long as the process. `onRemember` notifies other caches. */
export function openSignatureCache(onRemember: (remembered: RememberedSignatures) => void = () => {}): SignatureCache {
  const families = new Families()
  const dispose = (_: Entry, key: string) => families.remove(key)
  const known = new LRUCache<string, Entry>({ maxSize: rememberedSize, ttl: rememberedMs, dispose })
  const merge = ({ key, entry }: RememberedSignatures) => {
    if (familyOf(key) === undefined) return
    known.delete(key)
    if (!entry) return
    known.set(key, entry, { size: sizeOf(entry) })
    if (known.has(key)) families.add(key)
  }
  return {
    merge,
    remember({ id }, { messages }, { parts }) {
      const calls = callsIn(parts)
      if (calls.length === 0) return
      const keys = new TurnKeys(id, messages)
      const entry = entryOf(parts)
      // The same turn may have been answered with signatures before.
      if (!entry && !families.has(keys.family(calls))) return
      const key = keys.key(messages.length, calls)
      if (key === undefined || (!entry && !known.has(key))) return
      const remembered = { key, ...(entry && { entry }) }
      merge(remembered)
      onRemember(remembered)
    },
    restore({ id }, request) {
      if (known.size === 0 || !request.messages.some(lacksSignatures)) return request
      const keys = new TurnKeys(id, request.messages)
      const messages = [...request.messages]
      // The last turns are those that providers need most.
      for (const [index, message] of [...messages.entries()].reverse()) {
        if (!lacksSignatures(message)) continue
        const calls = callsIn(message.parts)
        const key = families.has(keys.family(calls)) ? keys.key(index, calls) : undefined
        const entry = key === undefined ? undefined : known.get(key)
        if (entry) messages[index] = withSignatures(message, entry)
      }
      return { ...request, messages }
    },
  }
}

/** Counts of entries by family: most turns have none, and are not compared any further. */
class Families {
  readonly #counts = new Map<string, number>()

  has(family: string): boolean {
    return this.#counts.has(family)
  }

  add(key: string): void {
    this.#change(key, 1)
  }

  remove(key: string): void {
    this.#change(key, -1)
  }

  #change(key: string, by: number): void {
    const family = familyOf(key) ?? ''
    const count = (this.#counts.get(family) ?? 0) + by
    if (count > 0) this.#counts.set(family, count)
    else this.#counts.delete(family)
  }
}

function entryOf(parts: readonly Part[]): Entry | undefined {
  const reasoning = parts.slice(0, parts.findIndex(isCall)).filter(isSignedReasoning)
  const calls = callsIn(parts)
  if (reasoning.length === 0 && calls.every(({ signature }) => signature === undefined)) return undefined
  const signatures = new Map(calls.map((call) => [call.id, signatureOf(call)]))
  // Among calls with the same id, a signature cannot be assigned to one of them.
  return signatures.size === calls.length ? { reasoning, calls: signatures } : undefined
}

function signatureOf({ signature, by }: ToolCallPart): CallSignature {
  return { ...(signature !== undefined && { signature }), ...(by !== undefined && { by }) }
}

/** Checks whether a message is one of the assistant with calls in which no part is signed. */
function lacksSignatures({ role, parts }: Message): boolean {
  const unsigned = (part: Part) => !isSignedReasoning(part) && !(isCall(part) && part.signature !== undefined)
  return role === 'assistant' && parts.some(isCall) && parts.every(unsigned)
}

function withSignatures(message: Message, { reasoning, calls }: Entry): Message {
  const signed = message.parts.map((part) => (isCall(part) ? { ...part, ...calls.get(part.id) } : part))
  if (reasoning.length === 0) return { ...message, parts: signed }
  // The client has sent the text itself: only the signature was missing.
  const sent = textOf(message.parts)
  if (sent !== '' && sent === textOf(reasoning))
    return { ...message, parts: [...reasoning, ...signed.filter(({ type }) => type !== 'reasoning')] }
  return { ...message, parts: [...reasoning.map((part) => ({ ...part, restored: true as const })), ...signed] }
}

/** Joins what can be read of reasoning. */
function textOf(parts: readonly Part[]): string {
  const texts = parts.flatMap((part) => (part.type === 'reasoning' ? [part.text, part.summary] : []))
  return texts.filter(Boolean).join('\n')
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
