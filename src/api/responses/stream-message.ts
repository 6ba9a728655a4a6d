import { codePoints } from '../../core/citations.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Citation, Part, TextPart } from '../../core/parts.ts'
import { annotationOf, contentPart, type OutputGroup } from './output.ts'

/** Writes one event of the stream: its members, or for frequent events their JSON text without braces. */
export type Emit = (type: string, members: JsonObject | string) => void
/** An item that has been added. `reasoning` is the text and the summary written so far, in the order of their beginning. */
export type Item = OutputGroup & {
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
export class StreamedMessage {
  readonly item: Item
  /** Whether citations came after the message was done. */
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

  /** Whether one of its parts can still be extended. */
  get isWriting(): boolean {
    return this.#contents.at(-1)?.open === true
  }

  /** Whether that part can still be extended. */
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

  /** Only the last one can be open. */
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
