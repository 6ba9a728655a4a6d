import { isObject, type JsonObject } from '../../core/json.ts'
import type { Finish, Reply } from '../../core/reply.ts'
import type { ReplyFacts } from '../face.ts'
import { groupsOf, writeItem, writeUsage } from './output.ts'

/** A neutral reply as a response object, with `usage.cost` in USD when it is known. */
export function writeReply(reply: Reply, { model, usage, costUsd, request, id }: ReplyFacts): JsonObject {
  const responseId = responseIdOf(id)
  const output = groupsOf(reply.parts).map((group, index) => writeItem(group, itemId(responseId, group.kind, index)))
  const body = request?.origin.body ?? {}
  return {
    ...responseObject(body, { id: responseId, model, created: reply.created }),
    ...endingOf(reply.finish),
    output,
    usage: writeUsage(usage, costUsd),
  }
}

/** The provider's response with the model that served and the cost. */
export function editReply(body: JsonObject, { model, costUsd }: ReplyFacts): JsonObject {
  const usage = isObject(body.usage) ? body.usage : undefined
  if (!usage || costUsd === undefined) return { ...body, model }
  return { ...body, model, usage: { ...usage, cost: costUsd } }
}

/** The id of a response: that of its call. */
export function responseIdOf(id: string | undefined): string {
  return `resp_${(id ?? crypto.randomUUID()).replaceAll('-', '')}`
}

/** The id of an item: the same for the same place of the same response. */
export function itemId(responseId: string, kind: string, index: number): string {
  return `${kind}_${responseId.slice('resp_'.length)}${index.toString(16).padStart(4, '0')}`
}

/** A response before it has an output: what the client asked for, with the defaults of this API. */
export function responseObject(
  body: JsonObject,
  { id, model, created }: { id: string; model: string; created: number },
): JsonObject {
  const text = isObject(body.text) ? body.text : {}
  const reasoning = isObject(body.reasoning) ? body.reasoning : {}
  return {
    id,
    object: 'response',
    created_at: created,
    status: 'in_progress',
    background: false,
    error: null,
    incomplete_details: null,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    model,
    output: [],
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: body.previous_response_id ?? null,
    reasoning: { effort: reasoning.effort ?? null, summary: reasoning.summary ?? null },
    store: body.store ?? true,
    temperature: body.temperature ?? 1,
    text: { ...text, format: text.format ?? { type: 'text' } },
    tool_choice: body.tool_choice ?? 'auto',
    tools: body.tools ?? [],
    top_p: body.top_p ?? 1,
    truncation: body.truncation ?? 'disabled',
    user: body.user ?? null,
    metadata: body.metadata ?? {},
  }
}

/** Status and reason of an end. */
export function endingOf(finish: Finish): JsonObject {
  const reason = incomplete[finish]
  if (!reason) return { status: 'completed' }
  return { status: 'incomplete', incomplete_details: { reason } }
}

const incomplete: { readonly [name in Finish]?: string } = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
  pause: 'max_output_tokens',
}
