import type { Find } from './find.ts'

const placeholder = /<[A-Z][A-Z0-9_]{1,40}>/g

/** The placeholders of one call: the same for the same value, numbered as values appear. */
export class MaskedTexts {
  /** Values by placeholder. */
  readonly values = new Map<string, string>()
  readonly #placeholders = new Map<string, string>()
  readonly #counts = new Map<string, number>()
  readonly #taken = new Set<string>()
  readonly #find: Find

  constructor(find: Find) {
    this.#find = find
  }

  /** Reserves the placeholders that a text contains already, so that they stand for nothing else. */
  reserve(text: string): void {
    if (!text.includes('<')) return
    for (const [found] of text.matchAll(placeholder)) this.#taken.add(found)
  }

  /** Returns the text with a placeholder for each value. */
  mask(text: string): string {
    let masked = ''
    let from = 0
    for (const { kind, start, end } of this.#find(text)) {
      masked += text.slice(from, start) + this.#placeholderOf(kind.toUpperCase(), text.slice(start, end))
      from = end
    }
    return from === 0 ? text : masked + text.slice(from)
  }

  #placeholderOf(kind: string, value: string): string {
    const key = `${kind} ${value}`
    const known = this.#placeholders.get(key)
    if (known) return known
    let count = this.#counts.get(kind) ?? 0
    let made = ''
    do made = `<${kind}_${++count}>`
    while (this.#taken.has(made))
    this.#counts.set(kind, count)
    this.#placeholders.set(key, made)
    this.values.set(made, value)
    return made
  }
}
