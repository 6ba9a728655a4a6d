import { isObject, type JsonObject } from '../../core/json.ts'
import type { ReplyFacts } from '../client-api.ts'
import { writeEvent } from '../sse.ts'
import { editReply } from './edit.ts'
import { endingOf } from './finish.ts'
import { eventsOfItems } from './stream-missing.ts'
import { writeUsage } from './usage.ts'
import { completeResponse } from './write.ts'

/** Edits the events of a provider that speaks this format: the model that served, the cost, complete responses; no more. */
export class EventEditor {
  /** The response in the latest event that has one. */
  response: JsonObject | undefined
  /** The output items that are done. */
  readonly output: JsonObject[] = []
  /** The number of the next event. */
  sequence = 0
  readonly #request: JsonObject
  readonly #model: string
  /** Whether the provider has told of an item. */
  #hasItems = false
  /** The event that ends the stream, held back until the cost is known. */
  #terminal: JsonObject | undefined

  constructor(request: JsonObject, model: string) {
    this.#request = request
    this.#model = model
  }

  /** One event as the text of a server-sent event; empty for the one that is held back to the end. */
  edit(payload: JsonObject): string {
    const { sequence_number: given } = payload
    const sequence_number = typeof given === 'number' ? given : this.sequence
    this.sequence = sequence_number + 1
    const numbered = { ...payload, sequence_number }
    if (payload.type === 'response.output_item.added') this.#hasItems = true
    if (payload.type === 'response.output_item.done' && isObject(payload.item)) this.output.push(payload.item)
    if (!isObject(payload.response)) return writeEvent(numbered)
    this.response = { ...completeResponse(payload.response, this.#request), model: this.#model }
    if (payload.type === 'response.completed' || payload.type === 'response.incomplete') {
      const unsaid = this.#unsaid(payload.response)
      this.#terminal = { ...numbered, sequence_number: this.sequence++ }
      return unsaid
    }
    return writeEvent({ ...numbered, response: this.response })
  }

  /** The events of a response of which nothing was told before its end. */
  #unsaid({ output }: JsonObject): string {
    this.sequence--
    const items = this.#hasItems || this.output.length > 0 || !Array.isArray(output) ? [] : output
    this.output.push(...items.filter(isObject))
    return eventsOfItems(items)
      .map((event) => writeEvent({ ...event, sequence_number: this.sequence++ }))
      .join('')
  }

  /** The whole response; built from its items where the provider never sent it whole. */
  whole(facts: ReplyFacts): JsonObject {
    if (this.#terminal) return editReply(this.#terminal.response as JsonObject, facts)
    const usage = writeUsage(facts.usage, facts.costUsd)
    return { ...this.response, ...endingOf('stop'), output: this.output, usage }
  }

  /** The event that ends the stream with the whole response. */
  end(response: JsonObject): string {
    const members = this.#terminal ?? { sequence_number: this.sequence }
    return writeEvent({ ...members, type: `response.${response.status}`, response })
  }
}
