import type { JsonObject } from '../../core/json.ts'
import type { OperationRequest } from '../../core/operation.ts'
import type { TargetFacts } from '../../core/request.ts'
import { mergeUsage, type Usage } from '../../core/usage.ts'
import type { Provider } from '../provider.ts'
import type { Example } from '../read/layer.ts'
import {
  type OperationContext,
  readOperationEvent,
  readOperationReply,
  writeOperation,
} from '../run/translate-operation.ts'
import { type Difference, difference, partialDifference } from './difference.ts'

/** An example of an endpoint besides chat, run with a provider that has it. */
export type OperationTrial = { provider: Provider; example: Example; facts: TargetFacts }

/** What the request of an example becomes: the body, the query of the URL, and the names of what is lost. */
export async function triedRequest(trial: OperationTrial) {
  return await writeOperation(contextOf(trial), requestOf(trial.example).model)
}

/** What an answer of an example becomes: the client's reply, and its usage in our classes. */
export async function triedReply(trial: OperationTrial, answers: JsonObject): Promise<JsonObject> {
  const { reply, usage } = await readOperationReply(contextOf(trial), answers, {})
  return { ...reply, usage: usage as JsonObject }
}

/** What the events of an example become: the client's, without their usage, and the usage of all in our classes. */
export async function triedEvents(
  trial: OperationTrial,
  frames: readonly (JsonObject | string)[],
): Promise<JsonObject> {
  const context = contextOf(trial)
  const { eventField, done } = context.endpoint.stream ?? {}
  const events: JsonObject[] = []
  let usage: Usage = {}
  for (const frame of frames) {
    if (frame === done) break
    const data = typeof frame === 'string' ? (JSON.parse(frame) as JsonObject) : frame
    const name = eventField === undefined ? undefined : data[eventField]
    const read = await readOperationEvent(context, typeof name === 'string' ? name : undefined, data)
    if (read.failure) return { events, usage: usage as JsonObject, error: read.failure as unknown as JsonObject }
    for (const { event, usage: counted } of read.events) {
      if (event) events.push(event)
      if (counted) usage = mergeUsage(usage, counted)
    }
  }
  return { events, usage: usage as JsonObject }
}

/** The first difference between what an example expects and what comes of it, by the member that says it. */
export async function proveOperation(
  trial: OperationTrial,
  member: 'sends' | 'dropped' | 'answers' | 'events',
): Promise<Difference | undefined> {
  const { sends, query, dropped = [], answers = {}, events = [], means } = trial.example
  if (member === 'answers') return partialDifference(means, await triedReply(trial, answers))
  if (member === 'events') return partialDifference(means, await triedEvents(trial, events))
  const written = await triedRequest(trial)
  if (member === 'dropped') return difference([...dropped].sort(), [...written.dropped].sort())
  return difference(sends, written.body) ?? (query ? difference(query, written.query) : undefined)
}

function contextOf({ provider, example, facts }: OperationTrial): OperationContext {
  const request = requestOf(example)
  const endpoint = provider.operations?.[request.operation]
  if (!endpoint) throw new Error(`there is no \`endpoints.${request.operation}\``)
  return { provider, endpoint, request, facts }
}

function requestOf({ operation, request = {} }: Example): OperationRequest {
  const { model = 'model', ...fields } = request as JsonObject & { model?: string }
  return { operation: operation ?? 'embed', model, fields, files: [], stream: fields.stream === true, unread: {} }
}
