import { Quotes } from './citations.ts'
import type { ProviderEvent, StreamEvent } from './events.ts'
import { isObject, type Json, type JsonObject } from './json.ts'
import type { Citation, Part, ReasoningPart, SearchPart, TextPart, ToolCallPart } from './parts.ts'
import type { Finish, Reply } from './reply.ts'
import { remainderOfPart } from './reply-events.ts'
import { callId, completeCall, setInput } from './tool-arguments.ts'
import { completionTokens, mergeUsage, type Usage } from './usage.ts'

/** The author of signed parts (their `by`), and where an id and a time come from when the provider sends none. */
export type FoldFacts = { signer: string; newId: () => string; now: () => number }

/** A part of the reply so far: the id that the provider gave a call, the JSON text of the input of a tool that it runs. */
type PartState = { part: Part; opened: boolean; closed: boolean; callId?: string; input?: string }

/**
 * Builds a reply from provider events and returns, event by event, what changed.
 * It opens, numbers and closes parts, fills in missing ids, infers finish reasons and decides whether a reply is complete.
 */
export class Fold {
  readonly #facts: FoldFacts
  #parts: PartState[] = []
  #byKey = new Map<string, number>()
  #lastOf = new Map<Part['type'], number>()
  readonly #quotes = new Quotes()
  #open = -1
  #started = false
  #finish: { finish: Finish; raw?: string; stop_sequence?: string } | undefined
  #head: Omit<Reply, 'parts' | 'finish'> = { id: '', created: 0, usage: {} }
  #size = 0
  /** The size of what the model has written, and of the part of it that the provider has counted. */
  #written = 0
  #counted: number | undefined

  constructor(facts: FoldFacts) {
    this.#facts = facts
  }

  /** Returns another fold that has taken the same events: later events of one do not affect the other. */
  copy(): Fold {
    const copy = new Fold(this.#facts)
    copy.#parts = structuredClone(this.#parts)
    copy.#byKey = new Map(this.#byKey)
    copy.#lastOf = new Map(this.#lastOf)
    copy.#open = this.#open
    copy.#started = this.#started
    copy.#finish = this.#finish
    copy.#head = structuredClone(this.#head)
    copy.#size = this.#size
    copy.#written = this.#written
    copy.#counted = this.#counted
    return copy
  }

  /** Returns whether the provider ended the reply, by a finish reason or an end marker: otherwise the stream was cut off. */
  get complete(): boolean {
    return this.#finish !== undefined
  }

  /** Returns about how many characters the reply has so far. */
  get size(): number {
    return this.#size + this.#parts.length * sizeOfPart
  }

  /** The counts reported so far. */
  get usage(): Usage {
    return this.#head.usage
  }

  /** Returns the share of the reply that came after its tokens were last counted; 0 where they never were. */
  get early(): number {
    const counted = this.#counted ?? this.#written
    return counted < this.#written ? 1 - counted / this.#written : 0
  }

  /** Takes one provider event and returns what it changed. */
  take(event: ProviderEvent): StreamEvent[] {
    const out: StreamEvent[] = []
    const counted = event.usage ? completionTokens(this.#head.usage) : undefined
    this.#takeMetadata(event)
    this.#size += sizeOfEvent(event)
    this.#written += writtenIn(event)
    if (counted !== undefined && this.#isRecounted(event, counted)) this.#counted = this.#written
    this.#takeContent(event, out)
    // Some providers send no finish reason: an end marker after content counts as `stop`.
    if (event.done && this.#parts.length > 0) this.#finish ??= { finish: 'stop' }
    return this.#withStart(out)
  }

  /** Checks whether an event counts the tokens of the reply, and no fewer than before. */
  #isRecounted({ usage }: ProviderEvent, before: number): boolean {
    const reported = completionTokens(usage ?? {})
    return (reported > 0 && reported >= before) || completionTokens(this.#head.usage) > before
  }

  #takeContent(event: ProviderEvent, out: StreamEvent[]): void {
    const { at } = event
    if (event.text || event.signature) this.#takeText(event.text ?? '', event.signature, at, out)
    if (event.refusal) this.#takeRefusal(event.refusal, at, out)
    if (event.reasoning) this.#takeReasoning(event.reasoning, at, out)
    if (event.tool) this.#takeTool(event.tool, at, out)
    if (event.citation) this.#takeCitation(event.citation, at, out)
    if (event.search) this.#takeSearch(event.search, at, out)
    if (event.media) this.#addPart(event.media as Part, at, out)
    if (event.opaque) this.#addPart({ type: 'opaque', by: this.#facts.signer, body: event.opaque.body }, at, out)
    if (event.whole) this.#takeWhole(event.whole, event, out)
    if (event.logprobs) {
      this.#head.logprobs = joinLogprobs(this.#head.logprobs, event.logprobs)
      out.push({ type: 'logprobs', logprobs: event.logprobs })
    }
  }

  /** A part that the provider repeats when it is done: what has not come of it yet. */
  #takeWhole(whole: Part, { at, also }: Pick<ProviderEvent, 'at' | 'also'>, out: StreamEvent[]): void {
    const own = whole.type === 'search' ? (whole.id ?? at) : at
    const isKnown = (key: ProviderEvent['at']) => this.#byKey.has(`${whole.type} ${key}`)
    const isOther = also !== undefined && !isKnown(own) && isKnown(also)
    const come = this.#parts[this.#byKey.get(`${whole.type} ${isOther ? also : own}`) ?? -1]?.part
    for (const rest of remainderOfPart(whole, come, isOther ? also : at)) this.#takeContent(rest, out)
  }

  /** Ends the reply: closes its parts, and returns why it ended and its counts. */
  end(): StreamEvent[] {
    const out: StreamEvent[] = []
    for (const [index, { part }] of this.#parts.entries()) {
      // Not as soon as it closes: calls that arrive interleaved may still get their arguments.
      if (part.type === 'tool_call') completeCall(index, part, this.#finish?.finish === 'length', out)
      this.#close(index, out)
    }
    if (this.#finish) out.push({ type: 'finish', ...this.#finish, finish: this.#inferredFinish(this.#finish.finish) })
    out.push({ type: 'usage', usage: this.#head.usage })
    return this.#withStart(out)
  }

  /** The reply so far. */
  reply(): Reply {
    const { finish = 'error', raw, stop_sequence } = this.#finish ?? {}
    return {
      id: this.#head.id || this.#facts.newId(),
      ...(this.#head.model !== undefined && { model: this.#head.model }),
      created: this.#head.created || this.#facts.now(),
      parts: this.#parts.map(({ part }) => part),
      finish: this.#inferredFinish(finish),
      ...(raw !== undefined && { finish_raw: raw }),
      ...(stop_sequence !== undefined && { stop_sequence }),
      usage: this.#head.usage,
      ...(this.#head.logprobs !== undefined && { logprobs: this.#head.logprobs }),
      ...(this.#head.extensions && { extensions: this.#head.extensions }),
    }
  }

  #takeMetadata(event: ProviderEvent): void {
    if (event.id && !this.#head.id) this.#head.id = String(event.id)
    if (event.model) this.#head.model = event.model
    if (event.created && !this.#head.created) this.#head.created = event.created
    if (event.usage) this.#head.usage = mergeUsage(this.#head.usage, event.usage)
    if (event.extensions) this.#head.extensions = Object.assign(this.#head.extensions ?? {}, event.extensions)
    if (event.finish) {
      this.#finish = { finish: event.finish }
      if (event.raw !== undefined) this.#finish.raw = event.raw
      if (event.stop_sequence) this.#finish.stop_sequence = event.stop_sequence
    }
  }

  #takeText(text: string, signature: string | undefined, at: ProviderEvent['at'], out: StreamEvent[]): void {
    const index = this.#locate('text', at, () => ({ type: 'text', text: '' }), out)
    const part = this.#parts[index]?.part as TextPart
    part.text += text
    if (signature) Object.assign(part, { signature, by: this.#facts.signer })
    if (text) out.push({ type: 'delta', index, part: 'text', text })
  }

  #takeRefusal(text: string, at: ProviderEvent['at'], out: StreamEvent[]): void {
    const index = this.#locate('refusal', at, () => ({ type: 'refusal', text: '' }), out)
    const part = this.#parts[index]?.part as { text: string }
    part.text += text
    out.push({ type: 'delta', index, part: 'refusal', text })
  }

  #takeReasoning(
    reasoning: NonNullable<ProviderEvent['reasoning']>,
    at: ProviderEvent['at'],
    out: StreamEvent[],
  ): void {
    const { text, summary, ...others } = reasoning
    const signatures = Object.entries(others).filter(([, value]) => value)
    if (!text && !summary && signatures.length === 0) return
    const index = this.#locate('reasoning', at, () => ({ type: 'reasoning', by: this.#facts.signer }), out)
    const part = this.#parts[index]?.part as ReasoningPart
    if (text) part.text = (part.text ?? '') + text
    if (summary) part.summary = (part.summary ?? '') + summary
    Object.assign(part, Object.fromEntries(signatures))
    if (text || summary)
      out.push({ type: 'delta', index, part: 'reasoning', ...(text && { text }), ...(summary && { summary }) })
  }

  #takeTool(tool: NonNullable<ProviderEvent['tool']>, at: ProviderEvent['at'], out: StreamEvent[]): void {
    if (this.#appendToolInput(tool, at)) return
    if (this.#isOtherCall(tool, at)) this.#byKey.delete(`tool_call ${at}`)
    const begins = at === undefined && tool.name ? this.#parts.length : at
    const index = this.#locate('tool_call', begins, () => ({ type: 'tool_call', id: '', name: '', arguments: '' }), out)
    const state = this.#parts[index] as PartState
    const part = state.part as ToolCallPart
    if (tool.id) state.callId ??= String(tool.id)
    if (tool.id && !state.opened) part.id = String(tool.id)
    if (tool.name && !state.opened) part.name = tool.name
    if (tool.kind) part.kind = tool.kind
    if (tool.signature) Object.assign(part, { signature: tool.signature, by: this.#facts.signer })
    const whole = tool.arguments !== undefined && typeof tool.arguments !== 'string'
    const text = whole ? JSON.stringify(tool.arguments) : ((tool.arguments ?? '') as string)
    part.arguments = whole ? text : part.arguments + text
    if (state.opened && text) out.push({ type: 'delta', index, part: 'tool_call', arguments: text })
    else if (part.name) this.#openCall(index, out)
  }

  /** Checks for another call. Some providers give several calls the same key: another id with a name is another call. */
  #isOtherCall({ id, name }: NonNullable<ProviderEvent['tool']>, at: ProviderEvent['at']): boolean {
    if (!id || !name || at === undefined) return false
    const callId = this.#parts[this.#byKey.get(`tool_call ${at}`) ?? -1]?.callId
    return callId !== undefined && callId !== String(id)
  }

  /** Arguments with the key of a search or an opaque part are the input of a tool that the provider runs. */
  #appendToolInput(tool: NonNullable<ProviderEvent['tool']>, at: ProviderEvent['at']): boolean {
    const index = this.#byKey.get(`searching ${at}`) ?? this.#byKey.get(`opaque ${at}`)
    if (index === undefined || tool.name) return false
    const state = this.#parts[index] as PartState
    state.input = (state.input ?? '') + (typeof tool.arguments === 'string' ? tool.arguments : '')
    return true
  }

  /** A call opens when its name is known; arguments that came before are its first delta. */
  #openCall(index: number, out: StreamEvent[]): void {
    const state = this.#parts[index] as PartState
    if (state.opened) return
    const part = state.part as ToolCallPart
    part.id ||= callId(this.#facts.newId())
    state.opened = true
    out.push({ type: 'open', index, part: { ...part, arguments: '' } })
    if (part.arguments) out.push({ type: 'delta', index, part: 'tool_call', arguments: part.arguments })
  }

  #takeCitation(citation: Citation, at: ProviderEvent['at'], out: StreamEvent[]): void {
    // Without a key it cites the last text, even if another part has opened since.
    const last = at === undefined ? this.#lastOf.get('text') : undefined
    const index = last ?? this.#locate('text', at, () => ({ type: 'text', text: '' }), out)
    const part = this.#parts[index]?.part as TextPart
    const located = at === undefined ? this.#quotes.locate(citation, part.text) : citation
    part.citations ??= []
    part.citations.push(located)
    out.push({ type: 'citation', index, citation: located })
  }

  #takeSearch(search: NonNullable<ProviderEvent['search']>, at: ProviderEvent['at'], out: StreamEvent[]): void {
    const create = (): SearchPart => ({ type: 'search', by: this.#facts.signer, ...search })
    const index = this.#locate('search', search.id ?? at, create, out)
    if (at !== undefined) this.#byKey.set(`searching ${at}`, index)
    const part = this.#parts[index]?.part as SearchPart
    updateSearch(part, search)
    if (index !== this.#open && isOver(part)) this.#close(index, out)
  }

  #addPart(part: Part, at: ProviderEvent['at'], out: StreamEvent[]): void {
    const index = this.#begin(part, true, out)
    if (at !== undefined) this.#byKey.set(`${part.type} ${at}`, index)
  }

  /** The index of the part that an event belongs to: by key, else the open part of that kind, else a new one. */
  #locate(kind: Part['type'], at: ProviderEvent['at'], create: () => Part, out: StreamEvent[]): number {
    if (at === undefined) {
      const open = this.#parts[this.#open]
      if (open?.part.type === kind) return this.#open
      const last = kind === 'tool_call' ? this.#lastOf.get(kind) : undefined
      if (last !== undefined) return last
    }
    const known = at === undefined ? undefined : this.#byKey.get(`${kind} ${at}`)
    if (known !== undefined) return known
    const index = this.#begin(create(), kind !== 'tool_call', out)
    if (at !== undefined) this.#byKey.set(`${kind} ${at}`, index)
    return index
  }

  #begin(part: Part, opened: boolean, out: StreamEvent[]): number {
    const before = this.#parts[this.#open]?.part
    const aside = isAside(part, before)
    if (before && !aside && !isRunning(before)) this.#close(this.#open, out)
    const index = this.#parts.push({ part, opened, closed: false }) - 1
    if (!aside) this.#open = index
    this.#lastOf.set(part.type, index)
    if (opened) out.push({ type: 'open', index, part: { ...part } })
    return index
  }

  #close(index: number, out: StreamEvent[]): void {
    const state = this.#parts[index] as PartState
    if (state.closed) return
    // A call still waiting for its name is not closed; at the end of the reply it is opened with an empty name.
    if (state.part.type === 'tool_call' && !state.opened) {
      if (!this.complete) return
      this.#openCall(index, out)
    }
    state.closed = true
    if (state.input) setInput(state.part, state.input)
    out.push({ type: 'close', index, part: state.part })
  }

  #inferredFinish(finish: Finish): Finish {
    const calls = this.#parts.some(({ part }) => part.type === 'tool_call')
    return finish === 'stop' && calls ? 'tool_calls' : finish
  }

  #withStart(out: StreamEvent[]): StreamEvent[] {
    if (this.#started || out.length === 0) return out
    this.#started = true
    this.#head.id ||= this.#facts.newId()
    this.#head.created ||= this.#facts.now()
    const model = this.#head.model === undefined ? {} : { model: this.#head.model }
    return [{ type: 'start', id: this.#head.id, ...model, created: this.#head.created }, ...out]
  }
}

/** Estimates how many characters an event adds to a reply; each value besides its texts counts as several. */
function sizeOfEvent(event: ProviderEvent): number {
  let size = event.text?.length ?? 0
  // Nearly every event of a stream has a text alone.
  for (const name in event) if (grows.has(name)) size += sizeOf(event[name as keyof ProviderEvent])
  return size
}

/** Estimates how many characters the model has written in an event; sources and signatures are not among them. */
function writtenIn({ text, refusal, reasoning, tool }: ProviderEvent): number {
  const others = reasoning || tool ? [reasoning?.text, reasoning?.summary, tool?.arguments] : []
  const given = others.filter((value) => value !== undefined)
  return given.reduce<number>((size, value) => size + sizeOf(value), (text?.length ?? 0) + (refusal?.length ?? 0))
}

/** Size of a part besides its content. */
const sizeOfPart = 200

const content = ['refusal', 'reasoning', 'tool', 'citation', 'search', 'media', 'opaque', 'whole', 'logprobs'] as const
const grows: ReadonlySet<string> = new Set<keyof ProviderEvent>([...content, 'extensions'])

function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return sizeOfOne
  let size = sizeOfOne
  for (const member of Object.values(value)) size += sizeOf(member)
  return size
}

const sizeOfOne = 16

/**
 * Log probabilities come as an object of lists, to be concatenated. The earlier ones, which are a result of this function,
 * grow in place: a copy of them for each event would cost the square of their number.
 */
function joinLogprobs(earlier: Json | undefined, later: Json): Json {
  if (!isObject(later)) return later
  const joined: JsonObject = isObject(earlier) ? earlier : {}
  for (const [name, list] of Object.entries(later)) {
    const before = joined[name]
    if (!Array.isArray(list)) joined[name] = list ?? before
    else if (Array.isArray(before)) for (const one of list) before.push(one)
    else joined[name] = [...list]
  }
  return joined
}

type Search = Omit<SearchPart, 'type' | 'by'>

/** Checks whether a part is a search that has begun and is not over: other parts may begin before it ends. */
function isRunning(part: Part): boolean {
  return part.type === 'search' && (part.status === 'in_progress' || part.status === 'searching')
}

/** Checks whether it is known how a search ended, and what it was for. */
function isOver({ status, query, results }: Search): boolean {
  return (status === 'completed' || status === 'failed') && (query !== undefined || results !== undefined)
}

/** Checks whether a part does not end the one before: a search that is reported only when it is over, in the middle of a text. */
function isAside(part: Part, before: Part | undefined): boolean {
  return before?.type === 'text' && part.type === 'search' && isOver(part)
}

/** Takes over what a provider reports about a search; one that is over does not begin again. */
function updateSearch(part: SearchPart, { status, ...others }: Search): void {
  Object.assign(part, others)
  const begins = status === 'in_progress' || status === 'searching'
  if (status !== undefined && (part.status === undefined || !begins || isRunning(part))) part.status = status
}

/** Folds a whole list of events: `fold(eventsOf(reply)) = reply`. */
export function fold(events: ProviderEvent[], facts: FoldFacts): Reply {
  const folding = new Fold(facts)
  for (const event of events) folding.take(event)
  folding.end()
  return folding.reply()
}
