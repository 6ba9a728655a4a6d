/** Puts values back in place of their placeholders. */
export class Restorer {
  readonly #values: ReadonlyMap<string, string>
  readonly #forms: readonly string[]
  readonly #longest: number
  readonly #pattern: RegExp

  /** `inJson`: the texts are JSON, where `<` and `>` may be escaped, and restored values must be. */
  constructor(values: ReadonlyMap<string, string>, { inJson = false } = {}) {
    const forms = [...values].flatMap(([placeholder, value]): [string, string][] => {
      if (!inJson) return [[placeholder, value]]
      const name = placeholder.slice(1, -1)
      const written = JSON.stringify(value).slice(1, -1)
      return [placeholder, `\\u003c${name}\\u003e`, `\\u003C${name}\\u003E`].map((form) => [form, written])
    })
    this.#values = new Map(forms)
    this.#forms = forms.map(([form]) => form)
    this.#longest = Math.max(0, ...this.#forms.map(({ length }) => length))
    this.#pattern = inJson ? jsonPlaceholder : placeholder
  }

  /** Returns a text with the values; what only looks like a placeholder stays. */
  change(text: string): string {
    return text.replace(this.#pattern, (found) => this.#values.get(found) ?? found)
  }

  /** Returns where the beginning of a placeholder starts at the end of a text; the length of the text without one. */
  heldFrom(text: string): number {
    for (let at = Math.max(0, text.length - this.#longest + 1); at < text.length; at++) {
      if (text[at] !== '<' && text[at] !== '\\') continue
      const end = text.slice(at)
      if (this.#forms.some((form) => form.startsWith(end))) return at
    }
    return text.length
  }
}

const placeholder = /<[A-Z][A-Z0-9_]{1,40}>/g
const jsonPlaceholder = /(?:<|\\u003[cC])[A-Z][A-Z0-9_]{1,40}(?:>|\\u003[eE])/g
