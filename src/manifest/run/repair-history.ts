import { createHash } from 'node:crypto'
import type { MediaPart, Part, ToolCallPart, ToolResultPart } from '../../core/parts.ts'
import type { Message, NeutralRequest } from '../../core/request.ts'
import type { TextFilePlaces } from '../../core/text-files.ts'
import type { Pattern } from '../types.ts'
import {
  mapped,
  withAnswersToTools,
  withCallsTogether,
  withJsonArguments,
  withMediaAfterErrors,
} from './repair-turns.ts'

/** A dialect's requirements on a conversation's history. All are off by default. */
export type HistoryRules = {
  /** Consecutive messages of the same role are merged. */
  alternate?: boolean
  /** The conversation must begin with a user message. */
  first_user?: boolean
  /** Instructions in the middle of a conversation are kept, become a marked note of the user, or move to those at its head. */
  mid_system?: 'keep' | 'user' | 'head'
  /** False if the model must speak between the result of a tool and the next message of the user. */
  user_after_tool?: false
  /** Refusals in earlier turns are kept, or become text. */
  refusals?: 'keep' | 'text'
  /** Files of text stay files, or become text: all of them, or those in results of tools. */
  text_files?: 'keep' | TextFilePlaces
  /** True if every call is directly followed by its result: missing results are added, results without a call become text. */
  pair_tools?: boolean
  /** Results come first in their message, in the order of their calls. */
  results_first?: boolean
  /** True if no text of the assistant stands between the calls of a turn: it goes before them. */
  calls_together?: boolean
  /** True if the arguments of calls are objects in JSON: any others become the member `input` of one. */
  json_arguments?: boolean
  /** False if results that are errors have no media: they follow the results. */
  media_in_errors?: false
  /** Ids that do not match the pattern, or have another length, become hexadecimal digits. */
  tool_id?: { pattern?: Pattern; length?: number; max_length?: number }
  /** True if empty texts are dropped, and messages with nothing else. */
  no_empty_text?: boolean
  /** Maximum number of cache hints: the last ones stay. */
  max_cache_hints?: number
  /** Media that must be inlined instead of linked: all, or these kinds, `except` URLs that match the pattern. */
  inline_media?: boolean | { kinds?: MediaPart['type'][]; except?: Pattern }
}

/** The request with a history that satisfies the rules; the client's own object is never changed. */
export function repairHistory(request: NeutralRequest, rules: HistoryRules): NeutralRequest {
  let { messages, system } = request
  if (rules.no_empty_text) {
    messages = filtered(mapped(messages, withoutEmptyText), ({ parts }) => parts.length > 0)
    system = system && filtered(system, hasContent)
  }
  if (rules.refusals === 'text') messages = mapped(messages, withTextRefusals)
  if (rules.mid_system === 'user') messages = mapped(messages, asUserNote)
  if (rules.mid_system === 'head' && messages.some(isSystem)) {
    system = [...(system ?? []), ...messages.filter(isSystem).flatMap(({ parts }) => parts)]
    messages = messages.filter((message) => !isSystem(message))
  }
  if (rules.pair_tools) messages = pairTools(messages)
  if (rules.alternate) messages = joined(messages, () => true)
  if (rules.results_first) messages = resultsFirst(messages)
  if (rules.calls_together) messages = withCallsTogether(messages, joined(messages, isCalling))
  if (rules.json_arguments) messages = mapped(messages, withJsonArguments)
  if (rules.media_in_errors === false) messages = mapped(messages, withMediaAfterErrors)
  if (rules.user_after_tool === false) messages = withAnswersToTools(messages)
  if (rules.tool_id) messages = renameIds(messages, rules.tool_id)
  if (rules.first_user && messages[0]?.role !== 'user') messages = [opening, ...messages]
  const isSame = messages === request.messages && system === request.system
  const repaired: NeutralRequest = isSame ? request : { ...request, messages, ...(system && { system }) }
  return rules.max_cache_hints === undefined ? repaired : lastHints(repaired, rules.max_cache_hints)
}

/** The first message for providers that require one of the user. */
const opening: Message = { role: 'user', parts: [{ type: 'text', text: '(The conversation begins.)' }] }

function isSystem({ role }: Message): boolean {
  return role === 'system'
}

function asUserNote(message: Message): Message {
  if (message.role !== 'system') return message
  const parts = message.parts.map((part) =>
    part.type === 'text' ? { ...part, text: `<system_note>\n${part.text}\n</system_note>` } : part,
  )
  return { role: 'user', parts }
}

function withTextRefusals(message: Message): Message {
  if (!message.parts.some(({ type }) => type === 'refusal')) return message
  const parts = message.parts.map((part): Part => (part.type === 'refusal' ? { type: 'text', text: part.text } : part))
  return { ...message, parts }
}

function withoutEmptyText(message: Message): Message {
  if (message.parts.every(isFilled)) return message
  const parts = message.parts
    .filter(hasContent)
    .map((part) => (part.type === 'tool_result' ? { ...part, parts: part.parts.filter(hasContent) } : part))
  return { ...message, parts }
}

function isFilled(part: Part): boolean {
  return hasContent(part) && (part.type !== 'tool_result' || part.parts.every(hasContent))
}

/** A signed part counts even without text: providers require it back. */
function hasContent(part: Part): boolean {
  if (part.type === 'text') return hasWords(part.text) || part.signature !== undefined
  return part.type !== 'refusal' || hasWords(part.text)
}

/** Checks for words. Nearly all texts begin with a letter or a sign, which settles it at once. */
function hasWords(text: string): boolean {
  const first = text.charCodeAt(0)
  return (first > space && first < deleted) || text.trim() !== ''
}

const [space, deleted] = [0x20, 0x7f]

/**
 * Reorders messages so that each assistant turn with calls is followed by one user message with all its results, then by everything else.
 */
function pairTools(messages: Message[]): Message[] {
  if (!messages.some(({ parts }) => parts.some(isOfTool))) return messages
  const turns = joined(messages, isCalling)
  const taken: Taken = new Map()
  const paired: Message[] = []
  for (let index = 0; index < turns.length; ) {
    const turn = turns[index++] as Message
    if (turn.role !== 'assistant') {
      paired.push(withoutOrphans(turn))
      continue
    }
    const answer: Message[] = []
    while (index < turns.length && turns[index]?.role !== 'assistant') answer.push(turns[index++] as Message)
    paired.push(...pairTurn(turn, answer, taken))
  }
  return paired
}

function isCalling({ role, parts }: Message): boolean {
  return role === 'assistant' && parts.some(isCall)
}

function isOfTool({ type }: Part): boolean {
  return type === 'tool_call' || type === 'tool_result'
}

/** Pairs one turn: its calls get ids that no earlier turn used, exactly one result for each, and the rest of the answer follows. */
function pairTurn(turn: Message, answer: Message[], taken: Taken): Message[] {
  const calling = withFreshIds(turn, taken)
  const calls = callsOf(calling)
  const originals = callsOf(turn)
  const open = Map.groupBy(calls.keys(), (index) => originals[index]?.id)
  const results: ToolResultPart[] = []
  const answered = new Set<string>()
  const take = (part: Part): boolean => {
    const call = part.type === 'tool_result' ? calls[open.get(part.id)?.shift() ?? -1] : undefined
    if (!call) return false
    results.push(withId(part as ToolResultPart, call.id))
    answered.add(call.id)
    return true
  }
  const rest = answer.flatMap((message) => {
    const parts = message.parts.filter((part) => !take(part))
    if (parts.length === message.parts.length) return [withoutOrphans(message)]
    return parts.length === 0 ? [] : [withoutOrphans({ ...message, parts })]
  })
  const missing = calls.filter(({ id }) => !answered.has(id))
  for (const call of missing) results.push(missingResult(call))
  // A result that nobody recorded is that of a function: so is its call then.
  const written = missing.some(({ native }) => native) ? withoutNative(calling, new Set(missing)) : calling
  return results.length === 0 ? [written, ...rest] : [written, { role: 'user', parts: results }, ...rest]
}

function withoutNative(message: Message, calls: ReadonlySet<Part>): Message {
  const bare = (part: Part): Part => {
    if (part.type !== 'tool_call' || !calls.has(part) || part.native?.kind === 'namespace') return part
    const { native: _native, ...call } = part
    return call
  }
  return { ...message, parts: message.parts.map(bare) }
}

/** A call or result with another id, also in the client's own form of it. */
function withId<P extends ToolCallPart | ToolResultPart>(part: P, id: string): P {
  const { native } = part
  return { ...part, id, ...(native && { native: { ...native, body: { ...native.body, call_id: id } } }) }
}

/** The ids that calls have, each with the last number that was put behind it. */
type Taken = Map<string, number>

/** Gives calls fresh ids: some models number them from the start in every turn; providers require unique ids. */
function withFreshIds(turn: Message, taken: Taken): Message {
  const parts = turn.parts.map((part) => {
    if (part.type !== 'tool_call') return part
    const id = taken.has(part.id) ? unused(part.id, taken) : part.id
    taken.set(id, taken.get(id) ?? 1)
    return id === part.id ? part : withId(part, id)
  })
  return { ...turn, parts }
}

function unused(id: string, taken: Taken): string {
  let count = taken.get(id) ?? 1
  do count++
  while (taken.has(`${id}_${count}`))
  taken.set(id, count)
  return `${id}_${count}`
}

function missingResult({ id, name }: ToolCallPart): ToolResultPart {
  return { type: 'tool_result', id, name, parts: [{ type: 'text', text: 'no result was recorded' }], is_error: true }
}

/** Results without a call become text. */
function withoutOrphans(message: Message): Message {
  if (!message.parts.some(({ type }) => type === 'tool_result')) return message
  const parts = message.parts.flatMap((part) => {
    if (part.type !== 'tool_result') return [part]
    const text = `Result of ${part.name ?? 'a tool'} (call ${part.id}):${part.parts.length === 0 ? ' nothing' : ''}`
    return [{ type: 'text' as const, text }, ...part.parts]
  })
  return { ...message, parts }
}

function resultsFirst(messages: Message[]): Message[] {
  if (!messages.some(({ parts }) => parts.some(({ type }) => type === 'tool_result'))) return messages
  const order = new Map(messages.flatMap(callsOf).map(({ id }, index) => [id, index]))
  const rank = ({ id }: ToolResultPart) => order.get(id) ?? order.size
  return messages.map((message) => {
    const results = message.parts.filter((part) => part.type === 'tool_result')
    if (results.length === 0) return message
    const others = message.parts.filter(({ type }) => type !== 'tool_result')
    return { ...message, parts: [...results.toSorted((a, b) => rank(a) - rank(b)), ...others] }
  })
}

function callsOf({ parts }: Message): ToolCallPart[] {
  return parts.filter(isCall)
}

function isCall(part: Part): part is ToolCallPart {
  return part.type === 'tool_call'
}

/** Consecutive messages of the same role as one, where `when` accepts the earlier one. */
function joined(messages: Message[], when: (earlier: Message) => boolean): Message[] {
  const out: Message[] = []
  // The last message, where it is one of our own that may grow.
  let own: Message | undefined
  for (const message of messages) {
    const earlier = out.at(-1)
    if (earlier?.role !== message.role || !when(earlier)) {
      out.push(message)
      own = undefined
      continue
    }
    if (!own) {
      const { role, name, parts } = earlier
      own = { role, parts: [...parts], ...(name !== undefined && { name }) }
      out[out.length - 1] = own
    }
    for (const part of message.parts) own.parts.push(part)
    if (own.name !== message.name) delete own.name
  }
  return out
}

function renameIds(messages: Message[], rule: NonNullable<HistoryRules['tool_id']>): Message[] {
  const rename = <P extends ToolCallPart | ToolResultPart>(part: P): P => {
    const id = acceptedId(part.id, rule)
    return id === part.id ? part : withId(part, id)
  }
  return mapped(messages, (message) => {
    const parts = mapped(message.parts, (part) =>
      part.type === 'tool_call' || part.type === 'tool_result' ? rename(part) : part,
    )
    return parts === message.parts ? message : { ...message, parts }
  })
}

/** Hexadecimal digits fit every provider's pattern. The same id always gives the same ones, so that caches keep working. */
function acceptedId(id: string, rule: NonNullable<HistoryRules['tool_id']>): string {
  const { pattern, length, max_length = Number.POSITIVE_INFINITY } = rule
  if (id.length === (length ?? id.length) && id.length <= max_length && pattern?.test(id) !== false) return id
  return createHash('sha256')
    .update(id)
    .digest('hex')
    .slice(0, length ?? Math.min(max_length, 24))
}

/** Keeps the last hints, in the order in which providers read a request: tools, system, messages. */
function lastHints(request: NeutralRequest, most: number): NeutralRequest {
  if (countHints(request) <= most) return request
  let left = most
  const keep = <T extends { cache?: unknown }>(item: T): T => {
    if (item.cache === undefined || left-- > 0) return item
    const { cache, ...bare } = item
    return bare as T
  }
  const keepInside = (part: Part): Part => {
    const limited = 'cache' in part ? keep(part) : part
    return limited.type === 'tool_result' ? { ...limited, parts: fromLast(limited.parts, keepInside) } : limited
  }
  const messages = fromLast(request.messages, (message) => ({ ...message, parts: fromLast(message.parts, keepInside) }))
  const system = request.system && fromLast(request.system, keepInside)
  const tools = request.tools && fromLast(request.tools, keep)
  return { ...request, messages, ...(system && { system }), ...(tools && { tools }) }
}

function countHints({ messages, system = [], tools = [] }: NeutralRequest): number {
  let count = 0
  const add = (item: { cache?: unknown }) => {
    if (item.cache !== undefined) count++
  }
  const addInside = (part: Part) => {
    add(part as { cache?: unknown })
    if (part.type === 'tool_result') part.parts.forEach(addInside)
  }
  for (const { parts } of messages) parts.forEach(addInside)
  system.forEach(addInside)
  tools.forEach(add)
  return count
}

/** The list without some items, or itself when all stay. */
function filtered<T>(items: T[], keeps: (item: T) => boolean): T[] {
  return items.every(keeps) ? items : items.filter(keeps)
}

function fromLast<T>(items: readonly T[], change: (item: T) => T): T[] {
  return items.toReversed().map(change).toReversed()
}
