import { hasContent, type ProviderEvent } from '../../core/events.ts'

/** Filter that skips the part of an answer that begins again which the client has already received. */
export class Repeated {
  #text: string
  #reasoning: string
  readonly #isSpace: boolean
  #differs = false

  /** `isSpace`: the text is blank, and may be missing in what follows. */
  constructor({ text, reasoning = '', isSpace = false }: { text: string; reasoning?: string; isSpace?: boolean }) {
    this.#text = text
    this.#reasoning = reasoning
    this.#isSpace = isSpace
  }

  /** Checks whether the answer differs from the one that was shown. */
  get differs(): boolean {
    return this.#differs
  }

  /** Returns the new part of an event; undefined where there is none. */
  rest(event: ProviderEvent): ProviderEvent | undefined {
    if (this.#text === '' && this.#reasoning === '') return event
    const { text, reasoning, ...others } = event
    if (text !== undefined) return this.#withText(others, text)
    if (reasoning?.text !== undefined) return this.#withReasoning(others, reasoning.text)
    // Anything else comes after the part that was shown: it cannot come before.
    if (hasContent(event) || (event.finish && !this.#isSpace)) this.#differs = true
    return event
  }

  #withText(event: ProviderEvent, text: string): ProviderEvent | undefined {
    if (this.#isSpace) {
      const blank = text.length - text.trimStart().length
      const isOver = blank < text.length
      if (isOver) this.#text = ''
      return isOver ? { ...event, text: text.slice(blank) } : undefined
    }
    this.#differs ||= this.#reasoning !== ''
    const rest = this.#compared(this.#text, text)
    this.#text = this.#text.slice(text.length)
    return rest === '' ? undefined : { ...event, text: rest }
  }

  #withReasoning(event: ProviderEvent, text: string): ProviderEvent | undefined {
    const rest = this.#compared(this.#reasoning, text)
    this.#reasoning = this.#reasoning.slice(text.length)
    // Reasoning that goes on after a text was shown is another one.
    if (rest !== '' && this.#text !== '') this.#differs = true
    return rest === '' ? undefined : { ...event, reasoning: { text: rest } }
  }

  #compared(shown: string, text: string): string {
    const same = Math.min(shown.length, text.length)
    if (shown.slice(0, same) !== text.slice(0, same)) this.#differs = true
    return text.slice(same)
  }
}
