import { createHash } from 'node:crypto'
import type { CallRecord, Json, JsonObject, PluginCall } from 'inference-router/plugin'
import { type Attributes, otlpAttributes, otlpTime } from './otlp.ts'

/** Contents of a call as JSON texts, where they are exported. */
export type CallContents = { input?: string; output?: string }

/** A call on its way to Langfuse: its span, and its contents, which may arrive after its record. */
export type CallSpan = { fields: JsonObject; attributes: Attributes; contents: CallContents }

/** Returns the span of a call, with the attributes that Langfuse reads as those of a generation. */
export function spanOf(
  record: CallRecord,
  { body, headers, names }: Pick<PluginCall, 'body' | 'headers' | 'names'>,
  contents: CallContents,
): CallSpan {
  const { id, at, durationMs, trace, operation, error, outcome } = record
  const digest = createHash('sha256').update(id).digest('hex')
  const { traceId = digest.slice(0, 32), spanId = digest.slice(32, 48), parentId } = trace ?? {}
  return {
    fields: {
      traceId,
      spanId,
      ...(parentId !== undefined && { parentSpanId: parentId }),
      name: operation,
      kind: serverKind,
      startTimeUnixNano: otlpTime(at),
      endTimeUnixNano: otlpTime(at + durationMs),
      status: outcome === 'complete' ? {} : { code: errorStatus, message: error ?? outcome },
    },
    attributes: {
      ...observationAttributes(record, body),
      ...metadataAttributes(record, names),
      ...traceAttributes(record, headers),
    },
    contents,
  }
}

/** Returns the JSON text of a span. */
export function spanText({ fields, attributes, contents }: CallSpan): string {
  const all = {
    ...attributes,
    'langfuse.observation.input': contents.input,
    'langfuse.observation.output': contents.output,
  }
  return JSON.stringify({ ...fields, attributes: otlpAttributes(all) })
}

/** Returns the approximate memory of a span that waits, in characters. */
export function spanSize({ attributes, contents }: CallSpan): number {
  let size = fixedSize + (contents.input?.length ?? 0) + (contents.output?.length ?? 0)
  for (const value of Object.values(attributes)) if (typeof value === 'string') size += value.length
  return size
}

/** Characters of the names and numbers of a span. */
const fixedSize = 1_500

/** `SPAN_KIND_SERVER` and `STATUS_CODE_ERROR` of OTLP. */
const [serverKind, errorStatus] = [2, 2]

function observationAttributes(record: CallRecord, body: JsonObject): Attributes {
  const { operation, provider, model, served, requested, usage, cost, outcome, at, firstEventMs } = record
  const { error, message } = record
  const parameters = Object.entries(body).filter(([name, value]) => parameterNames.has(name) && isScalar(value))
  return {
    'langfuse.observation.type': operation === 'embed' ? 'embedding' : 'generation',
    'langfuse.observation.model.name': served ?? model,
    'langfuse.observation.model.parameters':
      parameters.length > 0 ? JSON.stringify(Object.fromEntries(parameters)) : undefined,
    'langfuse.observation.usage_details': JSON.stringify(usageDetails(usage)),
    'langfuse.observation.cost_details': JSON.stringify(costDetails(cost)),
    'langfuse.observation.completion_start_time':
      firstEventMs === undefined ? undefined : new Date(at + firstEventMs).toISOString(),
    'langfuse.observation.level': outcome === 'complete' ? 'DEFAULT' : 'ERROR',
    'langfuse.observation.status_message': message === undefined ? error : `${error ?? outcome}: ${message}`,
    'gen_ai.operation.name': operation,
    'gen_ai.provider.name': provider,
    'gen_ai.request.model': requested,
    'gen_ai.response.model': served ?? model,
  }
}

/** Parameters of all client APIs that say how a model answers, and nothing about what it is asked. */
const parameterNames: ReadonlySet<string> = new Set([
  ...['temperature', 'top_p', 'top_k', 'n', 'seed', 'presence_penalty', 'frequency_penalty', 'service_tier'],
  ...['max_tokens', 'max_completion_tokens', 'max_output_tokens', 'reasoning_effort', 'verbosity', 'dimensions'],
  ...['size', 'quality', 'voice', 'speed'],
])

function isScalar(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'boolean' || (typeof value === 'string' && value.length <= 100)
}

/** Names of classes as Langfuse has them: it adds up those that contain `input` or `output`. */
const detailNames: Readonly<Record<string, string>> = {
  cache_read: 'input_cache_read',
  cache_write_5m: 'input_cache_creation_5m',
  cache_write_1h: 'input_cache_creation_1h',
  cache_read_audio: 'input_cache_read_audio',
  reasoning: 'output_reasoning',
}

/** Classes that count tokens; the others, such as seconds, are not part of Langfuse's total. */
const tokenClasses: ReadonlySet<string> = new Set([
  ...['input', 'cache_read', 'cache_write_5m', 'cache_write_1h', 'cache_read_audio', 'input_audio', 'input_image'],
  ...['output', 'reasoning', 'output_audio', 'output_image', 'citations', 'drawing_input', 'drawing_output'],
])

function usageDetails(usage: CallRecord['usage']): { [name: string]: number } {
  const details: { [name: string]: number } = {}
  let total = 0
  for (const [name, count] of Object.entries(usage)) {
    // Langfuse reads integers alone.
    if (typeof count !== 'number' || !Number.isInteger(count)) continue
    details[detailNames[name] ?? name] = count
    if (tokenClasses.has(name)) total += count
  }
  return { ...details, total }
}

/** Returns the cost in US dollars, in all and by class. */
function costDetails({ nanoUsd, parts }: CallRecord['cost']): { [name: string]: number } {
  const details = Object.entries(parts).map(([name, nano]) => [detailNames[name] ?? name, nano / 1e9])
  return { ...Object.fromEntries(details), total: nanoUsd / 1e9 }
}

/** Returns the client's metadata and facts of the call, which come last: a client cannot replace them. */
function metadataAttributes(record: CallRecord, names: PluginCall['names']): Attributes {
  const { id, organization, key, group, provider, model, api, stream, status, attempts, outcome, dropped } = record
  const own = { call: id, organization, key, group, provider, model, api, stream, status, attempts, outcome, dropped }
  const named = Object.entries(names).map(([owner, name]) => [`${owner}_name`, name] as const)
  const all = Object.entries({ ...record.metadata, ...own, ...Object.fromEntries(named) })
  return Object.fromEntries(
    all.map(([name, value]) => [`langfuse.observation.metadata.${name}`, attributeOf(value as Json | undefined)]),
  )
}

function attributeOf(value: Json | undefined): string | number | boolean | string[] | undefined {
  if (value === undefined || value === null) return undefined
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value as string[]
  return typeof value === 'object' ? JSON.stringify(value) : value
}

/** Returns attributes of the trace. The name of a trace that the client began is the client's. */
function traceAttributes(record: CallRecord, headers: PluginCall['headers']): Attributes {
  const { user, metadata = {}, requested, trace } = record
  const session = metadata.session_id ?? headers['x-session-id']
  const tags = tagsIn(metadata.tags)
  return {
    'langfuse.trace.name': trace?.parentId === undefined ? requested : undefined,
    'langfuse.trace.tags': tags.length > 0 ? tags : undefined,
    'user.id': user,
    'session.id': typeof session === 'string' && session !== '' ? session : undefined,
  }
}

/** Reads tags: a list, or a text with commas. */
function tagsIn(given: Json | undefined): string[] {
  const tags = typeof given === 'string' ? given.split(',') : Array.isArray(given) ? given : []
  return tags.flatMap((tag) => (typeof tag === 'string' && tag.trim() !== '' ? [tag.trim()] : []))
}
