import type { StreamedEvent } from 'inference-router/plugin'
import { ChangedCompletion } from '../lib/changed-completion.ts'
import type { TextChange } from '../lib/changed-reply.ts'
import type { JsonValue, OtherEvent } from '../lib/types.ts'

/** Returns the JSON of another operation with changed texts, but for names and media. */
export function changedJson<Value extends JsonValue>(value: Value, change: Pick<TextChange, 'change'>): Value {
  const changed = (one: JsonValue, name: string): JsonValue => {
    if (typeof one === 'string') return unread.has(name) ? one : change.change(one)
    if (Array.isArray(one)) return one.map((item) => changed(item, name))
    if (typeof one !== 'object' || one === null) return one
    return Object.fromEntries(
      Object.entries(one)
        // Tokens of a text would show what is masked in it.
        .filter(([member]) => member !== 'logprobs')
        .map(([member, item]) => [member, item === undefined ? item : changed(item as JsonValue, member)]),
    )
  }
  return changed(value, '') as Value
}

/** Members that are names, or media in base64. */
const unread: ReadonlySet<string> = new Set([
  ...['id', 'object', 'type', 'model', 'status', 'finish_reason', 'language', 'system_fingerprint'],
  ...['b64_json', 'audio', 'data'],
])

/** Changes the texts of a stream of another operation: those of choices and deltas wherever they are cut. */
export class ChangedOperation {
  readonly #change: TextChange
  readonly #completion: ChangedCompletion
  /** The delta that is held back, as its event, and the end of what has gone out. */
  #held: OtherEvent | undefined
  #before = ''

  constructor(change: TextChange) {
    this.#change = change
    this.#completion = new ChangedCompletion(change)
  }

  take(event: StreamedEvent): StreamedEvent[] {
    if (!('json' in event)) return [...this.#rest(), ...this.#completion.take(event)]
    if (typeof event.json.delta === 'string') return this.#takeDelta(event, event.json.delta)
    if (Array.isArray(event.json.choices)) return this.#completion.take(event).map(withoutLogprobs)
    return [...this.#rest(), { ...event, json: changedJson(event.json, this.#change) }]
  }

  #takeDelta(event: OtherEvent, delta: string): StreamedEvent[] {
    const text = textIn(this.#held) + delta
    const from = this.#change.heldFrom(text, this.#before)
    const certain = text.slice(0, from)
    const shown = this.#change.change(certain, this.#before)
    this.#before = (this.#before + certain).slice(-maxBefore)
    this.#held = withDelta(event, text.slice(from))
    return shown === '' ? [] : [withDelta(event, shown)]
  }

  #rest(): StreamedEvent[] {
    const held = this.#held
    const text = textIn(held)
    this.#held = undefined
    return held && text ? [withDelta(held, this.#change.change(text, this.#before))] : []
  }
}

function textIn(event: OtherEvent | undefined): string {
  return typeof event?.json.delta === 'string' ? event.json.delta : ''
}

function withDelta(event: OtherEvent, delta: string): OtherEvent {
  const { logprobs: _, ...json } = event.json
  return { ...event, json: { ...json, delta } }
}

function withoutLogprobs(event: StreamedEvent): StreamedEvent {
  if (!('json' in event) || !Array.isArray(event.json.choices)) return event
  const choices = event.json.choices.map((choice) => {
    if (typeof choice !== 'object' || choice === null || Array.isArray(choice)) return choice
    const { logprobs: _, ...others } = choice
    return others
  })
  return { ...event, json: { ...event.json, choices } }
}

const maxBefore = 200
