import { type Recording, recordedEvents } from '../helpers/recordings.ts'
import type { Frame } from './replay.ts'

// The independent reader of Responses: the contents of a recording, read without the mappings.

// biome-ignore lint/suspicious/noExplicitAny: the reader walks over recorded JSON of whatever shape.
type Loose = any

/** Whether the recording is a stream. */
export function isStream({ response }: Recording): boolean {
  return response.sse !== undefined
}

/** The events of a recorded stream. */
export function eventsIn(recording: Recording): Loose[] {
  return recordedEvents(recording)
    .filter(({ data }) => data !== '[DONE]')
    .map(({ data }) => JSON.parse(data))
}

/** The whole response: as it came, or from the last event of its stream. */
export function wholeOf(recording: Recording): Loose {
  return recording.response.body ?? eventsIn(recording).at(-1).response
}

/** The response as a stream: encrypted content differs in every event, and that of the finished items counts. */
export function streamedOf(recording: Recording): Loose {
  const finished = eventsIn(recording).filter(({ type }) => type === 'response.output_item.done')
  const output = finished.toSorted((one, other) => one.output_index - other.output_index).map(({ item }) => item)
  return { ...wholeOf(recording), output }
}

/** The same facts read straight from the provider's response, without any mapping. */
export function readResponse(response: Loose) {
  const items: Loose[] = response.output
  const of = (...types: string[]) => items.filter(({ type }) => types.includes(type))
  const contents = of('message').flatMap(({ content, phase }) => content.map((part: Loose) => ({ ...part, phase })))
  const texts = contents.filter(({ type, text }) => type === 'output_text' && text !== '')
  const reason = response.incomplete_details?.reason
  const calls = items.filter(isClientCall)
  return {
    id: response.id,
    model: response.model,
    created: response.created_at || 1,
    finish: { max_output_tokens: 'length', content_filter: 'content_filter' }[reason as string] ?? stopOf(calls),
    raw: reason ?? response.status,
    text: texts.map(({ text, annotations = [], phase }) => ({
      text,
      phase: phase ?? undefined,
      citations: annotations.map(readAnnotation),
    })),
    refusal: contents.filter(({ type }) => type === 'refusal').map(({ refusal }) => refusal),
    calls: calls.map(({ type, call_id, name, namespace, arguments: json, input, operation, action }) => ({
      id: call_id,
      name: namespace ? `${namespace}__${name}` : (name ?? type.replace('_call', '')),
      arguments:
        type === 'custom_tool_call'
          ? input
          : typeof json === 'string'
            ? json
            : JSON.stringify(operation ?? action ?? json),
      custom: type === 'custom_tool_call',
    })),
    reasoning: of('reasoning').map(({ id, summary, content, encrypted_content }) => ({
      id,
      summary: paragraphs(summary),
      text: paragraphs(content),
      encrypted: encrypted_content ?? undefined,
    })),
    searches: of('web_search_call').map(({ id, status, action }) => ({
      id,
      status,
      query: action.query ?? action.queries?.[0],
      action,
    })),
    images: of('image_generation_call').map(({ id, result, output_format }) => ({
      id,
      data: result,
      type: `image/${output_format}`,
    })),
    opaque: items.filter((item) => !known.has(item.type) && !isClientCall(item)),
    logprobs: texts.flatMap(({ logprobs = [] }) => logprobs.map(({ token }: Loose) => token)),
    usage: usageOf(response),
    order: items.flatMap(kindsOf),
  }
}

const known = new Set([
  'message',
  'reasoning',
  'function_call',
  'custom_tool_call',
  'web_search_call',
  'image_generation_call',
])

/** Checks whether an item is a call of a tool that the client runs. */
function isClientCall({ type, environment, execution }: Loose): boolean {
  if (type === 'shell_call') return (environment?.type ?? 'local') === 'local'
  if (type === 'tool_search_call') return execution === 'client'
  return ['function_call', 'custom_tool_call', 'apply_patch_call', 'local_shell_call'].includes(type)
}

function stopOf(calls: Loose[]): string {
  return calls.length > 0 ? 'tool_calls' : 'stop'
}

function readAnnotation(annotation: Loose) {
  const { type, url, title, filename, start_index, end_index, index } = annotation
  if (type === 'url_citation') return { url, title, start: start_index, end: end_index }
  return { title: filename, start: start_index ?? index, end: end_index ?? index }
}

function paragraphs(parts: { text: string }[] | undefined): string | undefined {
  return parts?.length ? parts.map(({ text }) => text).join('\n\n') : undefined
}

function usageOf({ usage, output, tools = [] }: Loose) {
  const cached = usage.input_tokens_details?.cached_tokens ?? 0
  const written = usage.input_tokens_details?.cache_write_tokens ?? 0
  const thought = usage.output_tokens_details?.reasoning_tokens ?? 0
  const counts = {
    input: usage.input_tokens - cached - written,
    cache_read: cached,
    cache_write_5m: written,
    output: usage.output_tokens - thought,
    reasoning: thought,
    searches: output.filter(({ type, action }: Loose) => type === 'web_search_call' && action.type === 'search').length,
    file_searches: output.filter(({ type }: Loose) => type === 'file_search_call').length,
    containers: containersIn(output, tools),
    drawing_output: drawnTokens(output),
    reported_cost: usage.cost ?? (usage.cost_in_usd_ticks ?? 0) / 1e10,
  }
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0))
}

/** A container of the provider's own is opened once for each id; where none is sized it has a gigabyte. */
function containersIn(output: Loose[], tools: Loose[]): number {
  const isOwn = tools.some(({ type, container }) => type === 'code_interpreter' && typeof container === 'object')
  const ran = output.filter(({ type }) => type === 'code_interpreter_call')
  return isOwn ? new Set(ran.map(({ container_id }) => container_id)).size : 0
}

/** By the published table of sizes and qualities. */
function drawnTokens(output: Loose[]): number {
  const table: { [drawing: string]: number } = { 'low 1536x1024': 408, 'low 1024x1536': 408, 'high 1024x1536': 6_240 }
  const drawn = output.filter(({ type }) => type === 'image_generation_call')
  return drawn.reduce((sum, { quality, size }) => sum + (table[`${quality} ${size}`] ?? 0), 0)
}

function kindsOf(item: Loose): string[] {
  const { type, content } = item
  if (type === 'message') {
    const filled = content.filter((part: Loose) => part.text !== '')
    return filled.map((part: Loose) => (part.type === 'refusal' ? 'refusal' : 'text'))
  }
  if (isClientCall(item)) return ['tool_call']
  const kinds: { [type: string]: string } = {
    web_search_call: 'search',
    image_generation_call: 'image',
  }
  return [kinds[type] ?? (type === 'reasoning' ? 'reasoning' : 'opaque')]
}

/** A stream as the provider would have sent this response. */
export function framesOf(response: Loose): Frame[] {
  const begun = { ...response, status: 'in_progress', output: [], usage: null, incomplete_details: null }
  const frames: Loose[] = [{ type: 'response.created', response: begun }]
  response.output.forEach((item: Loose, output_index: number) => {
    const at = { output_index, item_id: item.id }
    frames.push({ type: 'response.output_item.added', output_index, item: { ...item, ...emptied(item) } })
    frames.push(...(growing[item.type]?.(item, at) ?? []))
    frames.push({ type: 'response.output_item.done', output_index, item })
  })
  frames.push({ type: `response.${response.status}`, response })
  return frames.map((data, sequence_number) => ({ event: data.type, data: { ...data, sequence_number } }))
}

function emptied({ type, encrypted_content }: Loose): Loose {
  const seal = encrypted_content ? { encrypted_content: `begun${encrypted_content.slice(0, 9)}` } : {}
  if (type === 'message') return { status: 'in_progress', content: [] }
  if (type === 'reasoning') return { summary: [], content: [], ...seal }
  if (type === 'function_call') return { status: 'in_progress', arguments: '' }
  if (type === 'custom_tool_call') return { status: 'in_progress', input: '' }
  return { status: 'in_progress', action: undefined, result: null }
}

const growing: { [type: string]: (item: Loose, at: Loose) => Loose[] } = {
  message: ({ content }, at) =>
    content.flatMap((part: Loose, content_index: number) => {
      const where = { ...at, content_index }
      if (part.type === 'refusal') return pieces('response.refusal', part.refusal, where)
      const annotations = (part.annotations ?? []).map((annotation: Loose, annotation_index: number) => ({
        type: 'response.output_text.annotation.added',
        ...where,
        annotation_index,
        annotation,
      }))
      const [first, ...rest] = pieces('response.output_text', part.text, where)
      return [{ ...first, logprobs: part.logprobs ?? [] }, ...rest, ...annotations]
    }),
  reasoning: ({ summary, content = [] }, at) => [
    ...(summary ?? []).flatMap(({ text }: Loose, summary_index: number) => [
      { type: 'response.reasoning_summary_part.added', ...at, summary_index, part: { type: 'summary_text', text: '' } },
      ...pieces('response.reasoning_summary_text', text, { ...at, summary_index }),
    ]),
    ...content.flatMap(({ text }: Loose, content_index: number) => [
      { type: 'response.content_part.added', ...at, content_index, part: { type: 'reasoning_text', text: '' } },
      ...pieces('response.reasoning_text', text, { ...at, content_index }),
    ]),
  ],
  function_call: (item, at) => pieces('response.function_call_arguments', item.arguments, at),
  custom_tool_call: (item, at) => pieces('response.custom_tool_call_input', item.input, at),
  web_search_call: (_, at) =>
    ['in_progress', 'searching', 'completed'].map((step) => ({ type: `response.web_search_call.${step}`, ...at })),
}

function pieces(name: string, text: string, where: Loose): Loose[] {
  const deltas = [text.slice(0, 3), text.slice(3)].map((delta) => ({ type: `${name}.delta`, ...where, delta }))
  return [...deltas, { type: `${name}.done`, ...where, text }]
}
