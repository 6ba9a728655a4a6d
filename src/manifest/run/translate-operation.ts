import type { ProviderFailure } from '../../core/events.ts'
import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { OperationRequest } from '../../core/operation.ts'
import type { TargetFacts } from '../../core/request.ts'
import { mergeUsage, type Usage } from '../../core/usage.ts'
import type { Variables } from '../../mapping/mapping.ts'
import { endpointFor, type OperationEndpoint } from '../operation.ts'
import type { Provider } from '../provider.ts'
import { type ModelTarget, targetFacts } from '../target.ts'
import { reportedFailureOf } from './read-reply.ts'
import { readCounts, runReading } from './read-usage.ts'
import { requireObject, runMapping, unreadable } from './run-mapping.ts'

/** A provider's body and the texts of its URL's query, and the client's names of the dropped fields. */
export type WrittenOperation = { body: JsonObject; query: { [name: string]: string }; dropped: string[] }

/** Context in which the mappings of one call to an endpoint run. */
export type OperationContext = {
  provider: Provider
  endpoint: OperationEndpoint
  request: OperationRequest
  facts: TargetFacts
}

/** An event in the client's words, and what the provider counted with it. */
export type OperationEvent = { event?: JsonObject; usage?: Usage }

/** The context of a call to the endpoint of a target. */
export function operationContext(
  provider: Provider,
  request: OperationRequest,
  target: ModelTarget,
): OperationContext | undefined {
  const endpoint = endpointFor(provider, request.operation, target.entry)
  return endpoint && { provider, endpoint, request, facts: targetFacts(provider, target) }
}

/** A request as the provider gets it: translated, or the client's own fields with the provider's id of the model. */
export async function writeOperation(context: OperationContext, model: string): Promise<WrittenOperation> {
  const { provider, endpoint, request, facts } = context
  const lost = await declaredUnsupported(context, model)
  const fields = without(request.fields, lost)
  const input = { ...fields, model, target: facts }
  const query = endpoint.query
    ? textsOf(requireObject(provider, 'query', await runMapping(provider, 'query', endpoint.query, input)))
    : {}
  const { body, dropped } = await bodyOf(context, input, { fields, unread: without(request.unread, lost), model })
  const patched = endpoint.patch.request
    ? await runMapping(provider, 'patch.request', endpoint.patch.request, body, variablesOf(context))
    : body
  return {
    body: requireObject(provider, 'patch.request', patched),
    query,
    dropped: [...new Set([...lost, ...dropped])],
  }
}

/** Reads a provider's JSON: returns it in the client's format, with its `usage` as counts of ours. */
export async function readOperationReply(
  context: OperationContext,
  answer: JsonObject,
  headers: JsonObject,
): Promise<{ reply: JsonObject; usage: Usage; reported: Json | undefined }> {
  const { provider, endpoint } = context
  const variables = variablesOf(context, headers)
  const patched = endpoint.patch.reply
    ? requireObject(
        provider,
        'patch.reply',
        await runReading(provider, 'patch.reply', endpoint.patch.reply, answer, variables),
      )
    : answer
  const reply = endpoint.reply
    ? requireObject(provider, 'reply', await runReading(provider, 'reply', endpoint.reply, patched, variables))
    : patched
  const reported = endpoint.reply ? undefined : reply.usage
  return { reply, usage: await usageOf(context, reply.usage, headers), reported }
}

/** Reads one event of a provider's stream in the client's words. Throws RouterError for one that reports a failure. */
export async function readOperationEvent(
  context: OperationContext,
  name: string | undefined,
  data: JsonObject,
): Promise<{ events: OperationEvent[]; failure?: ProviderFailure | undefined }> {
  const { provider, endpoint } = context
  const mappings = endpoint.stream?.events
  const variables = variablesOf(context)
  const patched = endpoint.patch.event
    ? requireObject(
        provider,
        'patch.event',
        await runReading(provider, 'patch.event', endpoint.patch.event, data, variables),
      )
    : data
  const mapping = mappings && ((name !== undefined && mappings.get(name)) || mappings.get('*'))
  if (mappings && !mapping) return { events: [] }
  const what = `stream.events.${name ?? '*'}`
  const made = mapping ? await runReading(provider, what, mapping, patched, variables) : patched
  const listed = made === undefined || made === null ? [] : [made].flat()
  const events: OperationEvent[] = []
  for (const event of listed) {
    if (!isObject(event)) throw unreadable(provider, what, 'returned something that is not an event')
    if (isObject(event.error)) return { events, failure: reportedFailureOf(event.error) }
    const usage = isObject(event.usage) ? await usageOf(context, event.usage) : undefined
    events.push({ event, ...(usage && { usage }) })
  }
  return { events }
}

async function bodyOf(
  { provider, endpoint }: OperationContext,
  input: JsonObject | object,
  { fields, unread, model }: { fields: JsonObject; unread: JsonObject; model: string },
): Promise<{ body: JsonObject; dropped: string[] }> {
  if (!endpoint.request) return { body: { ...unread, ...fields, model }, dropped: [] }
  const { mapping, sections, names } = endpoint.request
  const result = requireObject(provider, 'request', await runMapping(provider, 'request', mapping, input))
  const body: JsonObject = {}
  for (const section of sections) {
    const value = result[section]
    if (isObject(value) && !('$file' in value)) Object.assign(body, value)
    else if (value !== undefined) body[section] = value
  }
  const ignored = Object.keys(fields).filter((name) => !names.has(name) && !isFree(name, endpoint))
  const named = [result.dropped].flat(2).filter((name) => typeof name === 'string')
  return { body, dropped: [...ignored, ...named, ...Object.keys(unread)] }
}

/** Checks whether a field need not be mentioned by any mapping: the router itself implements it, or the URL contains it. */
function isFree(name: string, { path, query, batch }: OperationEndpoint): boolean {
  if (batch?.field === name) return true
  return routerFields.has(name) || path.includes(`{${name}}`) || (query?.text.includes(name) ?? false)
}

/** Fields that the router implements itself, regardless of the provider's answer. */
const routerFields: ReadonlySet<string> = new Set([
  'stream',
  'encoding_format',
  'stream_format',
  'response_format',
  'timestamp_granularities',
  'stream_options',
  'return_documents',
])

/**
 * Returns a request without the optional fields that an endpoint may not take: they bound nothing there. What every call of an operation
 * has is sent in some form.
 */
export function requestWithin(endpoint: OperationEndpoint, request: OperationRequest): OperationRequest {
  const declared = new Set(endpoint.unsupported.map(({ field }) => field))
  const isTaken = (name: string) => {
    if (bounding.has(name) && declared.has(name)) return false
    return !bounding.has(name) || !endpoint.request || endpoint.request.names.has(name) || isFree(name, endpoint)
  }
  const names = Object.keys(request.fields)
  return names.every(isTaken)
    ? request
    : {
        ...request,
        fields: without(
          request.fields,
          names.filter((name) => !isTaken(name)),
        ),
      }
}

/** Fields that make a call cheaper where they are respected. */
const bounding: ReadonlySet<string> = new Set(['size', 'resolution', 'max_tokens', 'max_tokens_per_doc'])

async function declaredUnsupported({ provider, endpoint, request, facts }: OperationContext, model: string) {
  const lost: string[] = []
  const input = { ...request.fields, model, target: facts }
  for (const { field, when } of endpoint.unsupported) {
    const isUsed = request.fields[field] !== undefined || request.unread[field] !== undefined
    if (!isUsed) continue
    if (!when || (await runMapping(provider, `unsupported.${field}`, when, input)) === true) lost.push(field)
  }
  return lost
}

async function usageOf(
  context: OperationContext,
  reported: Json | undefined,
  headers: JsonObject = {},
): Promise<Usage> {
  const { provider, endpoint } = context
  return mergeUsage({}, await readCounts(provider, endpoint.usage, reported ?? {}, variablesOf(context, headers)))
}

function variablesOf({ request, facts }: OperationContext, headers: JsonObject = {}): Variables {
  return { request: request.fields, target: facts, headers }
}

function without(fields: JsonObject, names: readonly string[]): JsonObject {
  if (names.length === 0) return fields
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))
}

/** Texts for a URL: numbers and flags as they are written, a list as several of one name is not known to any provider. */
function textsOf(query: JsonObject): { [name: string]: string } {
  const texts = Object.entries(query).filter(([, value]) => value !== undefined && value !== null)
  return Object.fromEntries(texts.map(([name, value]) => [name, String(value)]))
}
