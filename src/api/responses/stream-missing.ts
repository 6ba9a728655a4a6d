import { isObject, type Json, type JsonObject } from '../../core/json.ts'

/**
 * The events that tell of items which a provider has in its last event only, as it would have told of them one by one:
 * clients read texts and calls as they grow.
 */
export function eventsOfItems(items: readonly Json[]): JsonObject[] {
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

/** What becomes of a tool that the provider runs. */
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
