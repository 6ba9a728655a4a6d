import type { ProviderEvent, StreamEvent } from './events.ts'
import { completeInput } from './input.ts'
import { isObject, type Json, type JsonObject } from './json.ts'
import type { Citation, Part, ReasoningPart, SearchPart, TextPart, ToolCallPart } from './parts.ts'
import type { Finish, Reply } from './reply.ts'
import { mergeUsage, type Usage } from './usage.ts'

/** Who made the reply (`by` of its sealed parts), and the bookkeeping facts a provider may leave out. */
export type FoldFacts = { maker: string; newId: () => string; now: () => number }

/** `input`: what has come of the input of a tool that the provider runs itself. */
type Growing = { part: Part; opened: boolean; closed: boolean; input?: string }

/**
 * Puts a reply together from provider events and tells, event by event, what changed.
 * It owns opening and closing, numbering, missing ids, inferred finish reasons and the verdict complete or cut.
 */
export class Fold {
  readonly #facts: FoldFacts
  readonly #parts: Growing[] = []
  readonly #byKey = new Map<string, number>()
  #open = -1
  #started = false
  #id = ''
  #model: string | undefined
  #created = 0
  #finish: { finish: Finish; raw?: string; stop_sequence?: string } | undefined
  #usage: Usage = {}
  #logprobs: Json | undefined
  #extensions: JsonObject | undefined

  constructor(facts: FoldFacts) {
    this.#facts = facts
  }

  /** Whether the provider ended the reply, by a finish reason or an end mark: otherwise the stream was cut off. */
  get complete(): boolean {
    return this.#finish !== undefined
  }

  /** Counts as far as the provider has told them. */
  get usage(): Usage {
    return this.#usage
  }

  /** Takes one provider event; answers what it changed. */
  take(event: ProviderEvent): StreamEvent[] {
    const out: StreamEvent[] = []
    this.#takeFacts(event)
    const { at } = event
    if (event.text || event.signature) this.#takeText(event.text ?? '', event.signature, at, out)
    if (event.refusal) this.#takeRefusal(event.refusal, at, out)
    if (event.reasoning) this.#takeReasoning(event.reasoning, at, out)
    if (event.tool) this.#takeTool(event.tool, at, out)
    if (event.citation) this.#takeCitation(event.citation, at, out)
    if (event.search) this.#takeSearch(event.search, at, out)
    if (event.media) this.#whole(event.media as Part, out)
    if (event.opaque) this.#takeOpaque(event.opaque.body, at, out)
    if (event.logprobs) {
      this.#logprobs = joinLogprobs(this.#logprobs, event.logprobs)
      out.push({ type: 'logprobs', logprobs: event.logprobs })
    }
    // Some providers never name a reason: their end mark after content is one.
    if (event.done && this.#parts.length > 0) this.#finish ??= { finish: 'stop' }
    return this.#withStart(out)
  }

  /** Ends the reply: closes what is open and says why and at what count it ended. */
  end(): StreamEvent[] {
    const out: StreamEvent[] = []
    for (const [index, { part }] of this.#parts.entries()) {
      // Not when it closed: calls that are told in turns may still get their arguments. One cut off stays cut off.
      if (part.type === 'tool_call' && this.#finish?.finish !== 'length') completeCall(index, part, out)
      this.#close(index, out)
    }
    if (this.#finish) out.push({ type: 'finish', ...this.#finish, finish: this.#inferredFinish(this.#finish.finish) })
    out.push({ type: 'usage', usage: this.#usage })
    return this.#withStart(out)
  }

  /** The reply as far as it has come. */
  reply(): Reply {
    const { finish = 'error', raw, stop_sequence } = this.#finish ?? {}
    return {
      id: this.#id || this.#facts.newId(),
      ...(this.#model !== undefined && { model: this.#model }),
      created: this.#created || this.#facts.now(),
      parts: this.#parts.map(({ part }) => part),
      finish: this.#inferredFinish(finish),
      ...(raw !== undefined && { finish_raw: raw }),
      ...(stop_sequence !== undefined && { stop_sequence }),
      usage: this.#usage,
      ...(this.#logprobs !== undefined && { logprobs: this.#logprobs }),
      ...(this.#extensions && { extensions: this.#extensions }),
    }
  }

  #takeFacts(event: ProviderEvent): void {
    if (event.id && !this.#id) this.#id = event.id
    if (event.model) this.#model = event.model
    if (event.created && !this.#created) this.#created = event.created
    if (event.usage) this.#usage = mergeUsage(this.#usage, event.usage)
    if (event.extensions) this.#extensions = { ...this.#extensions, ...event.extensions }
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
    if (signature) Object.assign(part, { signature, by: this.#facts.maker })
    if (text) out.push({ type: 'delta', index, part: 'text', text })
  }

  #takeRefusal(text: string, at: ProviderEvent['at'], out: StreamEvent[]): void {
    const index = this.#locate('refusal', at, () => ({ type: 'refusal', text: '' }), out)
    const part = this.#parts[index]?.part as { text: string }
    part.text += text
    out.push({ type: 'delta', index, part: 'refusal', text })
  }

  #takeReasoning(said: NonNullable<ProviderEvent['reasoning']>, at: ProviderEvent['at'], out: StreamEvent[]): void {
    const { text, summary, ...sealed } = said
    const seals = Object.entries(sealed).filter(([, seal]) => seal)
    if (!text && !summary && seals.length === 0) return
    const index = this.#locate('reasoning', at, () => ({ type: 'reasoning', by: this.#facts.maker }), out)
    const part = this.#parts[index]?.part as ReasoningPart
    if (text) part.text = (part.text ?? '') + text
    if (summary) part.summary = (part.summary ?? '') + summary
    Object.assign(part, Object.fromEntries(seals))
    if (text || summary)
      out.push({ type: 'delta', index, part: 'reasoning', ...(text && { text }), ...(summary && { summary }) })
  }

  #takeTool(said: NonNullable<ProviderEvent['tool']>, at: ProviderEvent['at'], out: StreamEvent[]): void {
    if (this.#growInput(said, at)) return
    const begins = at === undefined && said.name ? this.#parts.length : at
    const index = this.#locate('tool_call', begins, newCall, out)
    const growing = this.#parts[index] as Growing
    const part = growing.part as ToolCallPart
    if (said.id && !growing.opened) part.id = said.id
    if (said.name && !growing.opened) part.name = said.name
    if (said.kind) part.kind = said.kind
    if (said.signature) Object.assign(part, { signature: said.signature, by: this.#facts.maker })
    const whole = said.arguments !== undefined && typeof said.arguments !== 'string'
    const text = whole ? JSON.stringify(said.arguments) : ((said.arguments ?? '') as string)
    part.arguments = whole ? text : part.arguments + text
    if (growing.opened && text) out.push({ type: 'delta', index, part: 'tool_call', arguments: text })
    else if (part.name) this.#openCall(index, out)
  }

  /** Arguments for a key where a search or an opaque part stands are the input of a tool that the provider runs. */
  #growInput(said: NonNullable<ProviderEvent['tool']>, at: ProviderEvent['at']): boolean {
    const index = at === undefined || said.name ? undefined : this.#byKey.get(`served ${at}`)
    if (index === undefined) return false
    const growing = this.#parts[index] as Growing
    growing.input = (growing.input ?? '') + (typeof said.arguments === 'string' ? said.arguments : '')
    return true
  }

  /** A call opens when its name is known; what came before travels in the first delta. */
  #openCall(index: number, out: StreamEvent[]): void {
    const growing = this.#parts[index] as Growing
    if (growing.opened) return
    const part = growing.part as ToolCallPart
    part.id ||= `call_${this.#facts
      .newId()
      .replace(/[^a-zA-Z0-9]/g, '')
      .slice(-24)}`
    growing.opened = true
    out.push({ type: 'open', index, part: { ...part, arguments: '' } })
    if (part.arguments) out.push({ type: 'delta', index, part: 'tool_call', arguments: part.arguments })
  }

  #takeCitation(citation: Citation, at: ProviderEvent['at'], out: StreamEvent[]): void {
    // Without a key it speaks of what was said last, even when something else has opened since.
    const last = at === undefined ? this.#parts.findLastIndex(({ part }) => part.type === 'text') : -1
    const index = last >= 0 ? last : this.#locate('text', at, () => ({ type: 'text', text: '' }), out)
    const part = this.#parts[index]?.part as TextPart
    const located = at === undefined ? locate(citation, part.text) : citation
    part.citations = [...(part.citations ?? []), located]
    out.push({ type: 'citation', index, citation: located })
  }

  #takeSearch(said: NonNullable<ProviderEvent['search']>, at: ProviderEvent['at'], out: StreamEvent[]): void {
    const index = this.#locate('search', said.id ?? at, () => ({ type: 'search', by: this.#facts.maker }), out)
    if (at !== undefined) this.#byKey.set(`served ${at}`, index)
    const part = this.#parts[index]?.part as SearchPart
    Object.assign(part, said)
  }

  #takeOpaque(body: Json, at: ProviderEvent['at'], out: StreamEvent[]): void {
    this.#whole({ type: 'opaque', by: this.#facts.maker, body }, out)
    if (at !== undefined) this.#byKey.set(`served ${at}`, this.#parts.length - 1)
  }

  #whole(part: Part, out: StreamEvent[]): void {
    const index = this.#parts.push({ part, opened: true, closed: false }) - 1
    this.#opened(index, out)
  }

  /** The part an event speaks of: by key, else the open part of that kind, else a new one. */
  #locate(kind: Part['type'], at: ProviderEvent['at'], create: () => Part, out: StreamEvent[]): number {
    if (at === undefined) {
      const open = this.#parts[this.#open]
      if (open?.part.type === kind) return this.#open
      if (kind === 'tool_call') {
        const last = this.#parts.findLastIndex(({ part }) => part.type === kind)
        if (last >= 0) return last
      }
    }
    const key = `${kind} ${at}`
    const known = at === undefined ? undefined : this.#byKey.get(key)
    if (known !== undefined) return known
    const index = this.#parts.push({ part: create(), opened: kind !== 'tool_call', closed: false }) - 1
    if (at !== undefined) this.#byKey.set(key, index)
    this.#opened(index, out)
    return index
  }

  #opened(index: number, out: StreamEvent[]): void {
    if (this.#open >= 0) this.#close(this.#open, out)
    this.#open = index
    const { part, opened } = this.#parts[index] as Growing
    if (opened) out.push({ type: 'open', index, part: { ...part } })
  }

  #close(index: number, out: StreamEvent[]): void {
    const growing = this.#parts[index] as Growing
    if (growing.closed) return
    // A call whose name is still on its way stays open for it; the end of the reply opens it as it is.
    if (growing.part.type === 'tool_call' && !growing.opened) {
      if (!this.complete) return
      this.#openCall(index, out)
    }
    growing.closed = true
    if (growing.input) completeInput(growing.part, growing.input)
    out.push({ type: 'close', index, part: growing.part })
  }

  #inferredFinish(finish: Finish): Finish {
    const calls = this.#parts.some(({ part }) => part.type === 'tool_call')
    return finish === 'stop' && calls ? 'tool_calls' : finish
  }

  #withStart(out: StreamEvent[]): StreamEvent[] {
    if (this.#started || out.length === 0) return out
    this.#started = true
    this.#id ||= this.#facts.newId()
    this.#created ||= this.#facts.now()
    const model = this.#model === undefined ? {} : { model: this.#model }
    return [{ type: 'start', id: this.#id, ...model, created: this.#created }, ...out]
  }
}

/** Folds a whole list of events: `fold(eventsOf(reply)) = reply`. */
export function fold(events: ProviderEvent[], facts: FoldFacts): Reply {
  const folding = new Fold(facts)
  for (const event of events) folding.take(event)
  folding.end()
  return folding.reply()
}

/** Words of the reply that are cited without saying where they stand: there, when they are there. */
function locate(citation: Citation, text: string): Citation {
  const { cited_text, start } = citation
  const found = cited_text && start === undefined ? text.indexOf(cited_text) : -1
  if (!cited_text || found < 0) return citation
  const begin = [...text.slice(0, found)].length
  return { ...citation, start: begin, end: begin + [...cited_text].length }
}

/** Some models say nothing where they mean a call without arguments; clients read JSON. */
function completeCall(index: number, part: ToolCallPart, out: StreamEvent[]): void {
  if (part.arguments !== '' || part.kind === 'custom') return
  part.arguments = '{}'
  out.push({ type: 'delta', index, part: 'tool_call', arguments: '{}' })
}

function newCall(): ToolCallPart {
  return { type: 'tool_call', id: '', name: '', arguments: '' }
}

/** Log probabilities come as an object of lists that grow. */
function joinLogprobs(earlier: Json | undefined, later: Json): Json {
  if (!isObject(earlier) || !isObject(later)) return later
  const joined: JsonObject = { ...earlier }
  for (const [name, list] of Object.entries(later)) {
    const before = joined[name]
    joined[name] = Array.isArray(before) && Array.isArray(list) ? [...before, ...list] : (list ?? before)
  }
  return joined
}
