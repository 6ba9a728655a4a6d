import type { StreamedEvent } from 'inference-router/plugin'
import { maxBefore, type TextChange } from './changed-reply.ts'
import type { JsonValue, OtherEvent } from './types.ts'

/** Changes the texts of a streamed completion: those of its choices, wherever they are cut. */
export class ChangedCompletion {
  readonly #change: TextChange
  readonly #held = new Map<JsonValue, string>()
  /** The end of what has gone out of each text. */
  readonly #before = new Map<JsonValue, string>()
  #last: OtherEvent | undefined

  constructor(change: TextChange) {
    this.#change = change
  }

  /** Returns the events that take the place of an event. */
  take(event: StreamedEvent): StreamedEvent[] {
    if (!('json' in event)) return event.done ? [...this.#rest(), event] : [event]
    const { choices } = event.json
    if (!Array.isArray(choices) || choices.length === 0) return [event]
    this.#last = event
    return [{ ...event, json: { ...event.json, choices: choices.map((choice) => this.#shown(choice)) } }]
  }

  #shown(choice: JsonValue): JsonValue {
    if (!isChoice(choice)) return choice
    const { index = 0 } = choice
    const text = (this.#held.get(index) ?? '') + choice.text
    const before = this.#before.get(index) ?? ''
    // After the reason why it ended nothing comes any more.
    const from = choice.finish_reason ? text.length : this.#change.heldFrom(text, before)
    const certain = text.slice(0, from)
    this.#held.set(index, text.slice(from))
    this.#before.set(index, (before + certain).slice(-maxBefore))
    return { ...choice, text: this.#change.change(certain, before) }
  }

  /** Returns the text that was held back of choices that ended without a reason. */
  #rest(): OtherEvent[] {
    const choices = [...this.#held]
      .filter(([, text]) => text)
      .map(([index, text]) => {
        const changed = this.#change.change(text, this.#before.get(index))
        return { index, text: changed, finish_reason: null }
      })
    this.#held.clear()
    if (!this.#last || choices.length === 0) return []
    return [{ ...this.#last, json: { ...this.#last.json, choices } }]
  }
}

function isChoice(choice: JsonValue): choice is { text: string; index?: JsonValue; finish_reason?: JsonValue } {
  return typeof choice === 'object' && choice !== null && 'text' in choice && typeof choice.text === 'string'
}
