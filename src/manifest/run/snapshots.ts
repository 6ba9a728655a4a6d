import { RouterError } from '../../core/errors.ts'
import type { ProviderEvent } from '../../core/events.ts'

/**
 * Turns the events of one stream that repeat the whole text so far into events with what is new in them. Each part has a text of its own,
 * by the key `at` of its events. A text that ends in the middle of a character is used up to there: the next one has the character.
 */
export class Snapshots {
  readonly #provider: string
  readonly #maxLength: number
  readonly #sent = new Map<string, string>()
  #length = 0

  /** `maxLength` bounds the texts of all parts together. */
  constructor(provider: string, maxLength: number) {
    this.#provider = provider
    this.#maxLength = maxLength
  }

  /** Returns events without what earlier ones had. Throws RouterError for a text that takes back what was sent. */
  take(events: readonly ProviderEvent[]): ProviderEvent[] {
    return events.map((event) => this.#new(event))
  }

  #new(event: ProviderEvent): ProviderEvent {
    const { text, refusal, reasoning, tool } = event
    const key = String(event.at ?? tool?.id ?? '')
    const made = { ...event }
    if (typeof text === 'string') put(made, 'text', this.#rest(`text ${key}`, text))
    if (typeof refusal === 'string') put(made, 'refusal', this.#rest(`refusal ${key}`, refusal))
    if (reasoning) {
      made.reasoning = { ...reasoning }
      for (const name of ['text', 'summary'] as const) {
        const whole = reasoning[name]
        if (typeof whole === 'string') put(made.reasoning, name, this.#rest(`${name} of reasoning ${key}`, whole))
      }
    }
    if (tool && typeof tool.arguments === 'string') {
      made.tool = { ...tool }
      put(made.tool, 'arguments', this.#rest(`arguments ${key}`, tool.arguments))
    }
    return made
  }

  /** Returns what is new in a text; an empty one repeats nothing. */
  #rest(key: string, text: string): string {
    const sent = this.#sent.get(key) ?? ''
    const whole = withoutCutCharacter(text)
    if (whole === '') return ''
    if (!whole.startsWith(sent)) {
      const message = 'The provider changed text in its stream that had been sent already.'
      throw new RouterError('provider_unreadable', message, { provider: this.#provider })
    }
    if (!this.#sent.has(key)) this.#length += perPart
    this.#length += whole.length - sent.length
    if (this.#length > this.#maxLength) {
      const message = `The provider sent more than ${this.#maxLength} characters, the answers.body_limit of this server.`
      throw new RouterError('provider_unreadable', message, { provider: this.#provider })
    }
    this.#sent.set(key, whole)
    return whole.slice(sent.length)
  }
}

/** Approximate size of a part besides its text. */
const perPart = 100

/** Sets a member, or deletes it where nothing is new. */
function put<Name extends string>(made: { [name in Name]?: unknown }, name: Name, text: string): void {
  if (text === '') delete made[name]
  else made[name] = text
}

/** Bytes or halves of a character that was cut are replacement characters, or the first half of a pair, at the end. */
function withoutCutCharacter(text: string): string {
  let end = text.length
  while (end > 0 && isCut(text.charCodeAt(end - 1))) end--
  return text.slice(0, end)
}

function isCut(code: number): boolean {
  return code === 0xfffd || (code >= 0xd800 && code <= 0xdbff)
}
