import { codePoints } from '../../core/citations.ts'
import type { StreamEvent, StreamEventOf } from '../../core/events.ts'
import type { Json, JsonObject } from '../../core/json.ts'
import type { Citation, Part, ReasoningPart, TextPart, ToolCallPart } from '../../core/parts.ts'
import type { Finish } from '../../core/reply.ts'
import { eventsOfCall, isNativeCall, nativeCall } from './native-tools.ts'
import {
  annotationOf,
  calledName,
  contentPart,
  type ItemKind,
  kindOf,
  type OutputGroup,
  signatureGroups,
  spokenText,
  tokensOf,
  writeItem,
} from './output.ts'
import { finishOfReply } from './reply-members.ts'
import { isWhole, itemId, statusOf } from './write.ts'

/** Writes parts as output items: the events that add them, extend them and mark them as done. */
export class ItemWriter {
  /** The finished items. */
  readonly output: JsonObject[] = []
  /** The reason why the reply ended. */
  finish: Finish = 'error'
  readonly #responseId: string
  readonly #emit: Emit
  readonly #sources: boolean
  readonly #open = new Map<number, Item>()
  #message: StreamedMessage | undefined
  readonly #messages: StreamedMessage[] = []
  readonly #messageOf = new Map<number, StreamedMessage>()
  #refused = false
  /** Reasoning and searches that are done, but may still get a signature. */
  readonly #done = new Map<Item, Part>()
  readonly #finished = new Set<number>()
  /** Log probabilities of the current event, and earlier ones that came without text. */
  #tokens: JsonObject[] = []
  #late: JsonObject[] = []

  constructor(responseId: string, emit: Emit, sources: boolean) {
    this.#responseId = responseId
    this.#emit = emit
    this.#sources = sources
  }

  /** The items that are done, for a reply that breaks off. */
  get finished(): JsonObject[] {
    return this.output.filter((_, position) => this.#finished.has(position))
  }

  /** Takes what one provider event changed. */
  take(events: readonly StreamEvent[]): void {
    // Log probabilities come after the text that they belong to, and are written with it.
    for (const event of events) if (event.type === 'logprobs') this.#tokens.push(...tokensOf(event.logprobs))
    for (const event of events) {
      if (event.type === 'delta') this.#delta(event)
      else if (event.type === 'open') this.#begin(event.index, event.part)
      else if (event.type === 'citation') this.#messageOf.get(event.index)?.cite(event.index, event.citation)
      else if (event.type === 'close') this.#close(event)
      else if (event.type === 'finish') this.#end(event.finish)
    }
    if (this.#tokens.length > 0) this.#late.push(...this.#tokens.splice(0))
  }

  #begin(index: number, part: Part): void {
    if (part.type === 'audio') {
      const spoken = spokenText(part)
      if (spoken.type === 'text') this.#delta({ type: 'delta', index, part: 'text', text: spoken.text })
      return
    }
    // Its form is known when the arguments are whole.
    if (isNativeCall(part)) return
    const kind = kindOf(part)
    if (kind === 'msg') this.#beginContent(index, part)
    else if (kind) this.#beginItem(index, kind, part)
  }

  #beginItem(index: number, kind: ItemKind, part: Part): Item {
    // A search may be announced in the middle of a text.
    if (kind !== 'ws' || !this.#message?.isWriting) this.#endMessage('stop')
    const item = this.#add({ kind, parts: [part] }, emptied(part))
    this.#open.set(index, item)
    for (const stage of stages[kind] ?? []) this.#emit(stage, at(item))
    return item
  }

  #beginContent(index: number, part: Part): void {
    this.#refused ||= part.type === 'refusal'
    if (this.#message && this.#message.item.position < this.output.length - 1) this.#endMessage('stop')
    if (!this.#message) {
      const item = this.#add({ kind: 'msg', parts: [] })
      this.#message = new StreamedMessage(item, this.#emit)
      this.#messages.push(this.#message)
    }
    this.#message.open(index, part)
    this.#messageOf.set(index, this.#message)
  }

  #add(group: OutputGroup, ...announced: Part[]): Item {
    const position = this.output.length
    const id = itemId(this.#responseId, group.kind, position)
    const empty = writeItem({ ...group, parts: announced }, id, 'in_progress', false)
    // Holds the position until the item is finished.
    this.output.push(empty)
    this.#emit('response.output_item.added', { output_index: position, item: empty })
    return { ...group, id, position, reasoning: [] }
  }

  #delta({ index, part, text, summary, arguments: fragment = '' }: StreamEventOf<'delta'>): void {
    if (part === 'text' || part === 'refusal') {
      // Text for a part that is done already continues in a new one.
      if (!this.#message?.isOpen(index)) this.#beginContent(index, { type: part, text: '' })
      this.#message?.grow(index, text ?? '', part === 'text' ? this.#takeTokens() : none)
    } else if (part === 'reasoning') {
      const item = this.#open.get(index) ?? this.#beginItem(index, 'rs', { type: 'reasoning' })
      if (text) this.#reasoningDelta(item, 'text', text)
      if (summary) this.#reasoningDelta(item, 'summary', summary)
    } else {
      const item = this.#open.get(index)
      if (item) this.#emit(`response.${argumentsOf(item)}.delta`, `${headOf(item)},"delta":${JSON.stringify(fragment)}`)
    }
  }

  #takeTokens(): readonly JsonObject[] {
    if (this.#tokens.length === 0 && this.#late.length === 0) return none
    return [...this.#late.splice(0), ...this.#tokens.splice(0)]
  }

  #reasoningDelta(item: Item, kind: 'text' | 'summary', delta: string): void {
    let summary_index = item.reasoning.findIndex((one) => one.kind === kind)
    if (summary_index < 0) {
      summary_index = item.reasoning.push({ kind, text: '' }) - 1
      const part = { type: 'summary_text', text: '' }
      this.#emit('response.reasoning_summary_part.added', { ...at(item), summary_index, part })
    }
    const summary = item.reasoning[summary_index] as { text: string }
    summary.text += delta
    const place = `${headOf(item)},"summary_index":${summary_index}`
    this.#emit('response.reasoning_summary_text.delta', `${place},"delta":${JSON.stringify(delta)}`)
  }

  #close({ index, part }: StreamEventOf<'close'>): void {
    if (this.#message?.isOpen(index)) {
      // Log probabilities that came without text belong to the last text.
      if (part.type === 'text' && this.#late.length > 0) this.#message.grow(index, '', this.#late.splice(0))
      this.#message.close(index, spokenText(part))
    }
    if (isNativeCall(part)) this.#addNative(index, part)
    const item = this.#open.get(index)
    if (!item) return
    item.parts = [part]
    // An incomplete call may continue after another one has started; free text never shows that it is complete.
    if (part.type !== 'tool_call' || (part.kind !== 'custom' && isWhole(part))) this.#finishPart(index, item, 'stop')
  }

  /** Writes a call that is an item of its own type; a function call where its arguments do not have that form. */
  #addNative(index: number, part: ToolCallPart): void {
    const native = nativeCall(part)
    if (!native) {
      const { arguments: delta } = part
      const item = this.#beginItem(index, kindOf(part) ?? 'fc', part)
      if (delta) this.#emit('response.function_call_arguments.delta', { ...at(item), delta })
      return
    }
    this.#endMessage('stop')
    const item = this.#add({ kind: native.tool.prefix, parts: [part] }, part)
    for (const [type, members] of eventsOfCall(native.members))
      this.#emit(type, { output_index: item.position, ...members })
    this.#finish(item, 'stop', false)
  }

  /** Finishes the items that are still open, in the order in which they began. */
  #end(finish: Finish): void {
    this.finish = finishOfReply(finish, this.#refused)
    for (const [index, item] of this.#open) this.#finishPart(index, item, this.finish)
    this.#endMessage(this.finish)
    this.#amend()
  }

  #endMessage(finish: Finish): void {
    if (!this.#message) return
    const { item } = this.#message
    this.#message.end()
    this.#message = undefined
    this.#finish(item, finish, item.position === this.output.length - 1)
  }

  #finishPart(index: number, item: Item, finish: Finish): void {
    this.#open.delete(index)
    const [part] = item.parts as [Part]
    if (part.type === 'reasoning') item.parts = [this.#finishReasoning(item, part)]
    else if (part.type === 'tool_call') {
      const { arguments: input } = part
      const members = item.kind === 'ctc' ? { input } : { name: calledName(part).name, arguments: input }
      this.#emit(`response.${argumentsOf(item)}.done`, { ...at(item), ...members })
    } else if (item.kind === 'ig' || (part.type === 'search' && part.status !== 'failed')) {
      this.#emit(item.kind === 'ig' ? 'response.image_generation_call.completed' : searchDone, at(item))
    }
    if (part.type === 'reasoning' || part.type === 'search') this.#done.set(item, part)
    this.#finish(item, finish, false)
  }

  /** Finishes the text and the summary of reasoning, and returns the part with what was written of them. */
  #finishReasoning(item: Item, part: ReasoningPart): ReasoningPart {
    for (const [summary_index, { text }] of item.reasoning.entries()) {
      const place = { ...at(item), summary_index }
      this.#emit('response.reasoning_summary_text.done', { ...place, text })
      this.#emit('response.reasoning_summary_part.done', { ...place, part: { type: 'summary_text', text } })
    }
    const { text: _text, summary: _summary, ...signatures } = part
    return { ...signatures, ...Object.fromEntries(item.reasoning.map(({ kind, text }) => [kind, text])) }
  }

  #finish(item: Item, finish: Finish, last: boolean): void {
    const done = this.#write(item, finish, last)
    this.#finished.add(item.position)
    this.#emit('response.output_item.done', { output_index: item.position, item: done })
    for (const group of signatureGroups(item)) this.#finish(this.#add(group), finish, false)
  }

  #write(item: Item, finish: Finish, last: boolean): JsonObject {
    const done = writeItem(item, item.id, statusOf(item, finish, last), this.#sources)
    const [first, second] = item.reasoning
    // In the order in which they were written.
    if (first?.kind === 'summary' && second) (done.summary as Json[]).reverse()
    this.output[item.position] = done
    return done
  }

  /** Adds citations and signatures that came after their item was done: they are at least in the last event. */
  #amend(): void {
    for (const message of this.#messages) if (message.amended) this.#write(message.item, 'stop', false)
    for (const [item, part] of this.#done) {
      if (part.type === 'search') item.parts = [part]
      else {
        const { text: _text, summary: _summary, ...signatures } = part as ReasoningPart
        item.parts = [{ ...(item.parts[0] as ReasoningPart), ...signatures }]
      }
      this.#write(item, 'stop', false)
    }
  }
}

const none: readonly JsonObject[] = []

const searchDone = 'response.web_search_call.completed'

const stages: { readonly [kind in ItemKind]?: readonly string[] } = {
  ws: ['response.web_search_call.in_progress', 'response.web_search_call.searching'],
  ig: ['response.image_generation_call.in_progress', 'response.image_generation_call.generating'],
}

function at({ id, position }: Item): JsonObject {
  return { item_id: id, output_index: position }
}

/** Returns the same members as `at`, as JSON text: our own ids need no escaping. */
function headOf({ id, position }: Item): string {
  return `"item_id":"${id}","output_index":${position}`
}

function argumentsOf({ kind }: Item): string {
  return kind === 'ctc' ? 'custom_tool_call_input' : 'function_call_arguments'
}

/** A part in the event that announces it: with its name, but without content. */
function emptied(part: Part): Part {
  if (part.type === 'tool_call') return { ...part, arguments: '' }
  return part.type === 'reasoning' ? { type: 'reasoning' } : part
}

/** Writes one event of the stream: its members, or for frequent events their JSON text without braces. */
export type Emit = (type: string, members: JsonObject | string) => void
/** An item that has been added. `reasoning` is the text and the summary written so far, in the order of their beginning. */
type Item = OutputGroup & {
  id: string
  position: number
  reasoning: { kind: 'text' | 'summary'; text: string }[]
}
/** A content part that has been added: its content so far, and the citations that wait for its whole text. */
type Content = {
  part: Part & { text: string }
  open: boolean
  waiting: Citation[]
  annotations: number
  tokens: JsonObject[]
  head: string
}

/** Writes a message item: its content parts are added, extended and finished one after the other. */
class StreamedMessage {
  readonly item: Item
  /** True if citations came after the message was done. */
  amended = false
  readonly #emit: Emit
  readonly #contents: Content[] = []
  readonly #byPart = new Map<number, number>()
  /** The part of the reply that the last content part belongs to. */
  #last = -1
  #ended = false

  constructor(item: Item, emit: Emit) {
    this.item = item
    this.#emit = emit
  }

  /** Returns whether one of its parts can still be extended. */
  get isWriting(): boolean {
    return this.#contents.at(-1)?.open === true
  }

  /** Returns whether that part can still be extended. */
  isOpen(index: number): boolean {
    return this.#contents[this.#byPart.get(index) ?? -1]?.open === true
  }

  /** Begins a content part, and finishes the one before. */
  open(index: number, { type }: Part): void {
    this.#closeAll()
    const part = { type: type as 'text', text: '' }
    const content_index = this.#contents.length
    const place = this.#at(content_index)
    const head = `${JSON.stringify(place).slice(1, -1)},"delta":`
    this.#contents.push({ part, open: true, waiting: [], annotations: 0, tokens: [], head })
    this.#byPart.set(index, content_index)
    this.#last = index
    this.#emit('response.content_part.added', { ...place, part: contentPart(part) })
  }

  grow(index: number, delta: string, logprobs: readonly JsonObject[]): void {
    const content_index = this.#byPart.get(index) ?? 0
    const content = this.#contents[content_index] as Content
    content.part.text += delta
    if (logprobs.length > 0) content.tokens.push(...logprobs)
    const members = content.head + JSON.stringify(delta)
    if (content.part.type === 'refusal') this.#emit('response.refusal.delta', members)
    else this.#emit('response.output_text.delta', `${members},"logprobs":${JSON.stringify(logprobs)}`)
  }

  /** Adds a citation; one without a position waits for the whole text, and so do all after it. */
  cite(index: number, citation: Citation): void {
    const content_index = this.#byPart.get(index) ?? 0
    const content = this.#contents[content_index] as Content
    const part = content.part as TextPart
    part.citations ??= []
    part.citations.push(citation)
    if (!content.open) {
      this.amended = this.#ended
      return
    }
    if (citation.end === undefined || content.waiting.length > 0) content.waiting.push(citation)
    else this.#annotate(content_index, content, citation, citation.end)
  }

  close(index: number, { type, ...members }: Part): void {
    const content_index = this.#byPart.get(index) ?? 0
    const content = this.#contents[content_index] as Content
    if (!content.open || type !== content.part.type) return
    const { signature, by } = members as TextPart
    if (signature !== undefined) Object.assign(content.part, { signature, ...(by !== undefined && { by }) })
    content.open = false
    const whole = content.waiting.length > 0 ? codePoints(content.part.text) : 0
    for (const citation of content.waiting) this.#annotate(content_index, content, citation, whole)
    const place = this.#at(content_index)
    const { text } = content.part
    if (content.part.type === 'refusal') this.#emit('response.refusal.done', { ...place, refusal: text })
    else this.#emit('response.output_text.done', { ...place, text, logprobs: content.tokens })
    this.#emit('response.content_part.done', { ...place, part: contentPart(content.part, content.tokens) })
  }

  /** Finishes the open content part, and with it the item. */
  end(): void {
    this.#closeAll()
    this.item.parts = this.#contents.map(({ part }) => part)
    this.item.logprobs = this.#contents.map((content) => content.tokens)
    this.#ended = true
  }

  /** Closes all parts: only the last one can be open. */
  #closeAll(): void {
    const last = this.#contents.at(-1)
    if (last?.open) this.close(this.#last, last.part)
  }

  #annotate(content_index: number, content: Content, citation: Citation, whole: number): void {
    const annotation = annotationOf(citation, whole)
    const annotation_index = content.annotations++
    const members = { ...this.#at(content_index), annotation_index, annotation }
    this.#emit('response.output_text.annotation.added', members)
  }

  #at(content_index: number): JsonObject {
    return { item_id: this.item.id, output_index: this.item.position, content_index }
  }
}
