import type { StreamEvent, StreamEventOf } from '../../core/events.ts'
import type { Json, JsonObject } from '../../core/json.ts'
import type { Part, ReasoningPart } from '../../core/parts.ts'
import type { Finish } from '../../core/reply.ts'
import { finishOfReply } from './finish.ts'
import { tokensOf } from './logprobs.ts'
import { type ItemKind, kindOf, type OutputGroup, signatureGroups, spokenText, writeItem } from './output.ts'
import { type Emit, type Item, StreamedMessage } from './stream-message.ts'
import { isWhole, itemId, statusOf } from './write.ts'

/** Writes parts as output items: the events that add them, extend them and mark them as done. */
export class ItemWriter {
  /** The finished items. */
  readonly output: JsonObject[] = []
  /** How the reply ended. */
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
    const kind = kindOf(part)
    if (kind === 'msg') this.#beginContent(index, part)
    else if (kind) this.#beginItem(index, kind, part)
  }

  #beginItem(index: number, kind: ItemKind, part: Part): Item {
    // A search may be told of in the middle of a text.
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
    const item = this.#open.get(index)
    if (!item) return
    item.parts = [part]
    // An incomplete call may continue after another one has begun; free text never shows that it is complete.
    if (part.type !== 'tool_call' || (part.kind !== 'custom' && isWhole(part))) this.#finishPart(index, item, 'stop')
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
      const members = item.kind === 'ctc' ? { input: part.arguments } : { name: part.name, arguments: part.arguments }
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

  /** Citations and signatures that came after their item was done are at least in the last event. */
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

/** As `at`, as JSON text: our own ids need no escaping. */
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
