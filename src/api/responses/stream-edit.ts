import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { type ReplyFacts, writeEvent } from '../client-api.ts'
import { editReply } from './edit.ts'
import { endingOf, writeUsage } from './reply-members.ts'
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
  /** True once the provider has announced an item. */
  #hasItems = false
  /** The event that ends the stream, held back until the cost is known. */
  #terminal: JsonObject | undefined
  /** Events of the items that were not sent before the end. */
  #unsaid: Iterator<JsonObject> = [].values()

  constructor(request: JsonObject, model: string) {
    this.#request = request
    this.#model = model
  }

  /** Edits one event; returns the text of a server-sent event, empty for the one that is held back to the end. */
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
      this.sequence--
      this.#terminal = numbered
      this.#unsaid = this.#itemsOnlyIn(payload.response)
      return this.more()
    }
    return writeEvent({ ...numbered, response: this.response })
  }

  /** Returns the next events that are to be sent for the last one; empty when there are no more. */
  more(): string {
    let text = ''
    while (text.length < charactersAtOnce) {
      const { value: event, done } = this.#unsaid.next()
      if (done) return text
      text += writeEvent({ ...event, sequence_number: this.sequence++ })
    }
    return text
  }

  /** Returns the events of a response for which none were sent before its end. */
  #itemsOnlyIn({ output }: JsonObject): Iterator<JsonObject> {
    const items = this.#hasItems || this.output.length > 0 || !Array.isArray(output) ? [] : output
    for (const item of items) if (isObject(item)) this.output.push(item)
    return eventsOfItems(items)
  }

  /** The whole response; built from its items where the provider never sent it whole. */
  whole(facts: ReplyFacts): JsonObject {
    if (this.#terminal) return editReply(this.#terminal.response as JsonObject, facts)
    const usage = writeUsage(facts.usage, facts.costUsd)
    return { ...this.response, ...endingOf('stop'), output: this.output, usage }
  }

  /** The event that ends the stream with the whole response. */
  end(response: JsonObject): string {
    return writeEvent({
      ...this.#terminal,
      sequence_number: this.sequence,
      type: `response.${response.status}`,
      response,
    })
  }
}

/** Size of the events that are written in one step. Characters. */
const charactersAtOnce = 64 * 1024

/**
 * Returns the events for items that a provider has in its last event only, as if it had sent them one by one: clients read texts and
 * calls as they grow.
 */
function* eventsOfItems(items: readonly Json[]): Generator<JsonObject, undefined> {
  for (const [output_index, item] of items.entries()) if (isObject(item)) yield* eventsOfItem(item, output_index)
}

function* eventsOfItem(item: JsonObject, output_index: number): Generator<JsonObject, void> {
  const place = { item_id: item.id ?? '', output_index }
  const begun: JsonObject = { ...item, ...(item.status !== undefined && { status: 'in_progress' }) }
  const grown = argumentsOf[String(item.type)]
  if (item.result !== undefined) begun.result = null
  const stages = (stagesOf[String(item.type)] ?? []).filter(
    (stage) => stage !== 'completed' || item.status !== 'failed',
  )
  const isMessage = !grown && item.type === 'message'
  if (grown) begun[grown[1]] = ''
  if (isMessage) begun.content = []
  yield { type: 'response.output_item.added', output_index, item: begun }
  for (const stage of stages) yield { type: `response.${item.type}.${stage}`, ...place }
  if (grown) {
    const [name, member] = grown
    yield { type: `response.${name}.delta`, ...place, delta: item[member] ?? '' }
    yield { type: `response.${name}.done`, ...place, [member]: item[member] ?? '' }
  }
  const content = isMessage && Array.isArray(item.content) ? item.content.filter(isObject) : []
  for (const [content_index, part] of content.entries()) yield* eventsOfPart(part, { ...place, content_index })
  yield { type: 'response.output_item.done', output_index, item }
}

/** The name of the events in which the input of a call grows, and the member that holds it. */
const argumentsOf: { readonly [type: string]: readonly [string, string] } = {
  function_call: ['function_call_arguments', 'arguments'],
  custom_tool_call: ['custom_tool_call_input', 'input'],
}

/** Stages that a tool run by the provider goes through. */
const stagesOf: { readonly [type: string]: readonly string[] } = {
  web_search_call: ['in_progress', 'searching', 'completed'],
  image_generation_call: ['in_progress', 'generating', 'completed'],
}

function* eventsOfPart(part: JsonObject, place: JsonObject): Generator<JsonObject, void> {
  const added = (begun: JsonObject) => ({ type: 'response.content_part.added', ...place, part: { ...part, ...begun } })
  if (part.type === 'refusal') {
    const refusal = part.refusal ?? ''
    yield added({ refusal: '' })
    yield { type: 'response.refusal.delta', ...place, delta: refusal }
    yield { type: 'response.refusal.done', ...place, refusal }
  } else {
    const { text = '', logprobs = [], annotations = [] } = part
    yield added({ text: '', annotations: [], logprobs: [] })
    yield { type: 'response.output_text.delta', ...place, delta: text, logprobs }
    for (const [annotation_index, annotation] of (Array.isArray(annotations) ? annotations : []).entries())
      yield { type: 'response.output_text.annotation.added', ...place, annotation_index, annotation }
    yield { type: 'response.output_text.done', ...place, text, logprobs }
  }
  yield { type: 'response.content_part.done', ...place, part }
}
