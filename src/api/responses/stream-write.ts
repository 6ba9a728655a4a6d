import type { StreamEvent } from '../../core/events.ts'
import type { Json, JsonObject } from '../../core/json.ts'
import type { ReplyFacts } from '../client-api.ts'
import { endingOf, writeUsage } from './reply-members.ts'
import { type Emit, ItemWriter } from './stream-items.ts'
import { responseObject, wantsSources } from './write.ts'

/** Writes neutral events as numbered, named events in this API's order, the whole response in the last one. */
export class ResponseWriter {
  readonly #request: JsonObject
  readonly #facts: { model: string; id: string }
  readonly #items: ItemWriter
  #response: JsonObject | undefined
  #sequence = 0
  /** Events that are written but not yet returned. */
  #text = ''

  constructor(request: JsonObject, facts: { model: string; id: string }) {
    this.#request = request
    this.#facts = facts
    this.#items = new ItemWriter(facts.id, this.#emit, wantsSources(request))
  }

  /** The text of some neutral events. */
  write(events: readonly StreamEvent[]): string {
    for (const event of events) {
      if (event.type === 'start') this.#begin(event.created)
    }
    this.#items.take(events)
    return this.#written()
  }

  /** The whole response. */
  whole({ usage, costUsd }: ReplyFacts): JsonObject {
    const response = this.#response ?? this.#begin(now())
    return {
      ...response,
      ...endingOf(this.#items.finish),
      output: this.#items.output,
      usage: writeUsage(usage, costUsd),
    }
  }

  /** The event that ends the stream with the whole response. */
  end(response: JsonObject): string {
    this.#emit(`response.${response.status}`, { response })
    return this.#written()
  }

  /** The event that ends a stream that failed, with the items that were done by then. */
  fail(members: { error: Json; router?: JsonObject }): string {
    const response = this.#response ?? this.#begin(now())
    const failed = { ...response, status: 'failed', output: this.#items.finished, ...members }
    this.#emit('response.failed', { response: failed })
    return this.#written()
  }

  #begin(created: number): JsonObject {
    const response = responseObject(this.#request, { ...this.#facts, created })
    for (const stage of ['created', 'in_progress']) this.#emit(`response.${stage}`, { response })
    this.#response = response
    return response
  }

  readonly #emit: Emit = (type, members) => {
    const rest = typeof members === 'string' ? members : JSON.stringify(members).slice(1, -1)
    this.#text += `event: ${type}\ndata: {"type":"${type}","sequence_number":${this.#sequence++},${rest}}\n\n`
  }

  #written(): string {
    const text = this.#text
    this.#text = ''
    return text
  }
}

function now(): number {
  return Math.floor(Date.now() / 1_000)
}
