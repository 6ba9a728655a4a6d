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
      const unsaid = this.#unsaid(payload.response)
      this.#terminal = { ...numbered, sequence_number: this.sequence++ }
      return unsaid
    }
    return writeEvent({ ...numbered, response: this.response })
  }

  /** Returns the events of a response for which none were sent before its end. */
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

/**
 * Returns the events for items that a provider has in its last event only, as if it had sent them one by one: clients read texts and
 * calls as they grow.
 */
function eventsOfItems(items: readonly Json[]): JsonObject[] {
  return items.flatMap((item, output_index) => (isObject(item) ? eventsOfItem(item, output_index) : []))
}

function eventsOfItem(item: JsonObject, output_index: number): JsonObject[] {
  const place = { item_id: item.id ?? '', output_index }
  const begun: JsonObject = { ...item, ...(item.status !== undefined && { status: 'in_progress' }) }
  const grown = argumentsOf[String(item.type)]
  if (item.result !== undefined) begun.result = null
  const stages = (stagesOf[String(item.type)] ?? []).filter(
    (stage) => stage !== 'completed' || item.status !== 'failed',
  )
  const events: JsonObject[] = stages.map((stage) => ({ type: `response.${item.type}.${stage}`, ...place }))
  if (grown) {
    const [name, member] = grown
    begun[member] = ''
    events.push({ type: `response.${name}.delta`, ...place, delta: item[member] ?? '' })
    events.push({ type: `response.${name}.done`, ...place, [member]: item[member] ?? '' })
  } else if (item.type === 'message') {
    begun.content = []
    const content = Array.isArray(item.content) ? item.content.filter(isObject) : []
    events.push(...content.flatMap((part, content_index) => eventsOfPart(part, { ...place, content_index })))
  }
  return [
    { type: 'response.output_item.added', output_index, item: begun },
    ...events,
    { type: 'response.output_item.done', output_index, item },
  ]
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

function eventsOfPart(part: JsonObject, place: JsonObject): JsonObject[] {
  const added = (begun: JsonObject) => ({ type: 'response.content_part.added', ...place, part: { ...part, ...begun } })
  const done = { type: 'response.content_part.done', ...place, part }
  if (part.type === 'refusal') {
    const refusal = part.refusal ?? ''
    return [
      added({ refusal: '' }),
      { type: 'response.refusal.delta', ...place, delta: refusal },
      { type: 'response.refusal.done', ...place, refusal },
      done,
    ]
  }
  const { text = '', logprobs = [], annotations = [] } = part
  const notes = Array.isArray(annotations) ? annotations : []
  return [
    added({ text: '', annotations: [], logprobs: [] }),
    { type: 'response.output_text.delta', ...place, delta: text, logprobs },
    ...notes.map((annotation, annotation_index) => {
      return { type: 'response.output_text.annotation.added', ...place, annotation_index, annotation }
    }),
    { type: 'response.output_text.done', ...place, text, logprobs },
    done,
  ]
}
