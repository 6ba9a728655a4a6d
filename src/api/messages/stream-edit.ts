import { isObject, type JsonObject } from '../../core/json.ts'
import { type ReplyFacts, type StreamFacts, writeEvent } from '../client-api.ts'
import { idsOfItem } from '../returned-ids.ts'
import { deltaUsage, editStop, isCall } from './reply-members.ts'

/** Edits the events of a provider that speaks this format: the model that served and the cost; the rest is untouched. */
export class EventEditor {
  readonly #facts: StreamFacts
  #lastDelta: JsonObject = { type: 'message_delta' }
  #called = false
  #message: JsonObject = {}
  readonly #held: string[] = []
  /** True once the provider has sent an event. */
  hasBegun = false

  constructor(facts: StreamFacts) {
    this.#facts = facts
  }

  /** Edits one event; returns the text of a server-sent event, empty for those that are held back to the end. */
  edit(payload: JsonObject): string {
    this.hasBegun = true
    // The last counts wait for the cost, and the terminator follows them.
    if (payload.type === 'message_delta') this.#lastDelta = payload
    if (payload.type === 'content_block_start') {
      this.#called ||= isCall(payload.content_block)
      this.#held.push(...idsOfItem(payload.content_block))
    }
    if (payload.type === 'content_block_delta' && isObject(payload.delta) && payload.delta.citation !== undefined)
      this.#held.push(...idsOfItem({ type: 'text', citations: [payload.delta.citation] }))
    if (payload.type === 'message_delta' || payload.type === 'message_stop') return ''
    if (payload.type !== 'message_start' || !isObject(payload.message)) return writeEvent(payload)
    this.#message = payload.message
    return writeEvent({ ...payload, message: { ...payload.message, model: this.#facts.model } })
  }

  /** Returns the ids of files and containers that the blocks of the message name. */
  get held(): readonly string[] {
    return this.#held
  }

  /** Returns the message as far as it is known by its first event and the last delta. */
  message(): JsonObject {
    const { delta } = this.#lastDelta
    const { container } = this.#message
    return { ...this.#message, container: (isObject(delta) ? delta.container : undefined) ?? container ?? null }
  }

  /** Writes the last `message_delta`, with the cost and a stop reason that the API defines. */
  end({ usage, costUsd, router }: ReplyFacts): string {
    const { delta, usage: counted = null, ...others } = this.#lastDelta
    const ending = isObject(delta) ? delta : {}
    return writeEvent({
      ...others,
      delta: { ...ending, ...editStop(ending.stop_reason, this.#called, this.#facts.finishOf) },
      usage: {
        ...(isObject(counted) ? counted : deltaUsage(usage, undefined)),
        ...(usage.corrected && deltaUsage(usage, undefined)),
        ...(costUsd !== undefined && { cost: costUsd }),
      },
      ...(router && { router }),
    })
  }
}
