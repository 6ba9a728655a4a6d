import type { JsonObject } from '../../core/json.ts'
import type { Citation, Part, TextPart } from '../../core/parts.ts'
import { annotationOf, contentPart, type OutputGroup } from './output.ts'

/** Tells one event of the stream: its members, or their JSON text without braces where there are many of its kind. */
export type Emit = (type: string, members: JsonObject | string) => void
/** An item that has been added. `said` has the words of a thought told so far, by kind. */
export type Item = OutputGroup & { id: string; position: number; said: { kind: 'text' | 'summary'; text: string }[] }
/** A content part that has been added: what was said of it, and the sources that wait for its whole text. */
type Content = {
  part: Part & { text: string }
  open: boolean
  waiting: Citation[]
  told: number
  tokens: JsonObject[]
  head: string
}

/** A message item on its way: its contents are added, grown and told done one after the other. */
export class StreamedMessage {
  readonly item: Item
  /** Sources came after the message was told done. */
  amended = false
  readonly #emit: Emit
  readonly #contents: Content[] = []
  readonly #byPart = new Map<number, number>()
  #ended = false

  constructor(item: Item, emit: Emit) {
    this.item = item
    this.#emit = emit
  }

  /** Whether this message has that part of the reply. */
  has(index: number): boolean {
    return this.#byPart.has(index)
  }

  /** Whether that part may still grow. */
  isOpen(index: number): boolean {
    return this.#contents[this.#byPart.get(index) ?? -1]?.open === true
  }

  /** Begins a content part; the one before has come to its end. */
  open(index: number, { type }: Part): void {
    this.#closeAll()
    const part = { type: type as 'text', text: '' }
    const content_index = this.#contents.length
    const place = this.#at(content_index)
    const head = `${JSON.stringify(place).slice(1, -1)},"delta":`
    this.#contents.push({ part, open: true, waiting: [], told: 0, tokens: [], head })
    this.#byPart.set(index, content_index)
    this.#emit('response.content_part.added', { ...place, part: contentPart(part) })
  }

  grow(index: number, delta: string, logprobs: readonly JsonObject[]): void {
    const content_index = this.#byPart.get(index) ?? 0
    const content = this.#contents[content_index] as Content
    content.part.text += delta
    if (logprobs.length > 0) content.tokens.push(...logprobs)
    const said = content.head + JSON.stringify(delta)
    if (content.part.type === 'refusal') this.#emit('response.refusal.delta', said)
    else this.#emit('response.output_text.delta', `${said},"logprobs":${JSON.stringify(logprobs)}`)
  }

  /** A source; one whose place is not told waits for the end of the text, and so do all after it. */
  cite(index: number, citation: Citation): void {
    const content_index = this.#byPart.get(index) ?? 0
    const content = this.#contents[content_index] as Content
    const part = content.part as TextPart
    part.citations = [...(part.citations ?? []), citation]
    if (!content.open) {
      this.amended = this.#ended
      return
    }
    if (citation.end === undefined || content.waiting.length > 0) content.waiting.push(citation)
    else this.#annotate(content_index, content, citation)
  }

  close(index: number, { type, ...seals }: Part): void {
    const content_index = this.#byPart.get(index) ?? 0
    const content = this.#contents[content_index] as Content
    if (!content.open || type !== content.part.type) return
    const { signature, by } = seals as TextPart
    if (signature !== undefined) Object.assign(content.part, { signature, ...(by !== undefined && { by }) })
    content.open = false
    for (const citation of content.waiting) this.#annotate(content_index, content, citation)
    const place = this.#at(content_index)
    const { text } = content.part
    if (content.part.type === 'refusal') this.#emit('response.refusal.done', { ...place, refusal: text })
    else this.#emit('response.output_text.done', { ...place, text, logprobs: content.tokens })
    this.#emit('response.content_part.done', { ...place, part: contentPart(content.part, content.tokens) })
  }

  /** Closes what is open: the item is whole. */
  end(): void {
    this.#closeAll()
    this.item.parts = this.#contents.map(({ part }) => part)
    this.item.logprobs = this.#contents.map((content) => content.tokens)
    this.#ended = true
  }

  #closeAll(): void {
    for (const [index, content_index] of this.#byPart) {
      const content = this.#contents[content_index] as Content
      if (content.open) this.close(index, content.part)
    }
  }

  #annotate(content_index: number, content: Content, citation: Citation): void {
    const annotation = annotationOf(citation, content.part.text)
    const annotation_index = content.told++
    const members = { ...this.#at(content_index), annotation_index, annotation }
    this.#emit('response.output_text.annotation.added', members)
  }

  #at(content_index: number): JsonObject {
    return { item_id: this.item.id, output_index: this.item.position, content_index }
  }
}
