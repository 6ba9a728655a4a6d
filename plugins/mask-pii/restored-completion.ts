import type { StreamedEvent } from 'inference-router/plugin'
import type { Restorer } from './restore.ts'
import type { JsonValue, OtherEvent } from './types.ts'

/** Puts the values back into a streamed completion: the texts of its choices, wherever they are cut. */
export class RestoredCompletion {
  readonly #restorer: Restorer
  readonly #held = new Map<JsonValue, string>()
  #last: OtherEvent | undefined

  constructor(restorer: Restorer) {
    this.#restorer = restorer
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
    const from = this.#restorer.heldFrom(text)
    // After the reason why it ended nothing comes any more.
    const certain = choice.finish_reason ? text.length : from
    this.#held.set(index, text.slice(certain))
    return { ...choice, text: this.#restorer.restore(text.slice(0, certain)) }
  }

  /** Returns the text that was held back of choices that ended without a reason. */
  #rest(): OtherEvent[] {
    const choices = [...this.#held]
      .filter(([, text]) => text)
      .map(([index, text]) => ({ index, text, finish_reason: null }))
    this.#held.clear()
    if (!this.#last || choices.length === 0) return []
    return [{ ...this.#last, json: { ...this.#last.json, choices } }]
  }
}

function isChoice(choice: JsonValue): choice is { text: string; index?: JsonValue; finish_reason?: JsonValue } {
  return typeof choice === 'object' && choice !== null && 'text' in choice && typeof choice.text === 'string'
}
