import type { ProviderEvent } from '../../core/events.ts'
import type { ReasoningPart, TextPart } from '../../core/parts.ts'
import { remainderOfPart } from '../../core/reply-events.ts'

/**
 * The texts and the reasoning of one answer, by the provider's keys. An answer that goes on from another one repeats itself at its
 * end, not the other one: its own text is not sent again.
 */
export class OwnRepetition {
  readonly #parts = new Map<string, TextPart | ReasoningPart>()

  /** Returns the event, or the new rest of the part that it repeats. */
  fresh(event: ProviderEvent): ProviderEvent[] {
    const { whole, at } = event
    if (whole?.type === 'text' || whole?.type === 'reasoning')
      return remainderOfPart(whole, this.#parts.get(`${whole.type} ${at}`), at)
    if (event.text !== undefined || event.citation) this.#noteText(event)
    if (event.reasoning) this.#noteReasoning(event.reasoning, at)
    return [event]
  }

  #noteText({ at, text = '', signature, citation }: ProviderEvent): void {
    const part = this.#part<TextPart>({ type: 'text', text: '' }, at)
    part.text += text
    if (signature !== undefined) part.signature = signature
    if (citation) part.citations = [...(part.citations ?? []), citation]
  }

  #noteReasoning({ text, summary, ...marks }: NonNullable<ProviderEvent['reasoning']>, at: ProviderEvent['at']): void {
    const part = this.#part<ReasoningPart>({ type: 'reasoning' }, at)
    Object.assign(part, marks)
    if (text !== undefined) part.text = (part.text ?? '') + text
    if (summary !== undefined) part.summary = (part.summary ?? '') + summary
  }

  #part<Kind extends TextPart | ReasoningPart>(empty: Kind, at: ProviderEvent['at']): Kind {
    const key = `${empty.type} ${at}`
    const known = this.#parts.get(key) as Kind | undefined
    if (!known) this.#parts.set(key, empty)
    return known ?? empty
  }
}
