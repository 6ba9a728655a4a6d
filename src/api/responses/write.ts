import { isObject, type Json, type JsonObject, parseJson } from '../../core/json.ts'
import type { ToolCallPart } from '../../core/parts.ts'
import type { Finish, Reply } from '../../core/reply.ts'
import type { ReplyFacts } from '../client-api.ts'
import { replyInClientForm } from '../client-form.ts'
import { groupsOf, type ItemStatus, type OutputGroup, shareTokens, tokensOf, writeItem } from './output.ts'
import { endingOf, finishOfReply, isCut, writeUsage } from './reply-members.ts'

/** A neutral reply as a response object, with `usage.cost` in USD when it is known. */
export function writeReply(given: Reply, { model, usage, costUsd, request, id }: ReplyFacts): JsonObject {
  const reply = replyInClientForm(given, request)
  const responseId = responseIdOf(id)
  const body = request?.origin.body ?? {}
  const tokens = tokensOf(reply.logprobs)
  const groups = groupsOf(reply.parts)
  const refused = reply.parts.some(({ type }) => type === 'refusal')
  const finish = finishOfReply(reply.finish, refused)
  const last = groups.findLastIndex(({ signature }) => !signature)
  const output = groups.map((group, index) => {
    const logprobs = tokens.length > 0 && group.kind === 'msg' ? shareTokens(tokens, group.parts) : []
    const status = statusOf(group, finish, index === last)
    return writeItem({ ...group, logprobs }, itemId(responseId, group.kind, index), status, wantsSources(body))
  })
  const service_tier = reply.extensions?.service_tier
  return {
    ...responseObject(body, { id: responseId, model, created: reply.created }),
    ...endingOf(finish),
    ...(tiers.has(service_tier) && { service_tier }),
    output,
    usage: writeUsage(usage, costUsd),
  }
}

/** The id of a response, derived from its call's. */
export function responseIdOf(id: string | undefined): string {
  return `resp_${(id ?? crypto.randomUUID()).replaceAll('-', '')}`
}

/** The id of an item, stable for its position in the response. */
export function itemId(responseId: string, kind: string, index: number): string {
  return `${kind}_${responseId.slice('resp_'.length)}${index.toString(16).padStart(4, '0')}`
}

/** A response without output yet: the request's settings, with the defaults of this API. */
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
    completed_at: null,
    status: 'in_progress',
    background: false,
    error: null,
    // This API has no penalties in requests: a response reports none.
    frequency_penalty: 0,
    incomplete_details: null,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: body.max_tool_calls ?? null,
    model,
    output: [],
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    presence_penalty: 0,
    previous_response_id: body.previous_response_id ?? null,
    prompt_cache_key: body.prompt_cache_key ?? null,
    reasoning: { ...reasoning, effort: reasoning.effort ?? null, summary: reasoning.summary ?? null },
    safety_identifier: body.safety_identifier ?? null,
    service_tier: tiers.has(body.service_tier ?? undefined) ? (body.service_tier as string) : 'auto',
    store: body.store ?? true,
    temperature: body.temperature ?? 1,
    text: { ...text, format: text.format ?? { type: 'text' } },
    tool_choice: body.tool_choice ?? 'auto',
    tools: Array.isArray(body.tools) ? body.tools.map(writeTool) : [],
    top_logprobs: body.top_logprobs ?? 0,
    top_p: body.top_p ?? 1,
    truncation: body.truncation ?? 'disabled',
    usage: null,
    ...(typeof body.user === 'string' && { user: body.user }),
    metadata: body.metadata ?? {},
  }
}

/** A response of a provider of this format, with the members that it left out: the request's settings, or the defaults. */
export function completeResponse(given: JsonObject, body: JsonObject): JsonObject {
  const created = Math.floor(Date.now() / 1_000)
  const complete = { ...responseObject(body, { id: '', model: '', created }), ...given }
  const ended = complete.status === 'completed' && complete.completed_at === null
  return ended ? { ...complete, completed_at: created } : complete
}

/** The service tiers that this API defines; providers have others. */
const tiers: ReadonlySet<Json | undefined> = new Set([
  'auto',
  'default',
  'flex',
  'scale',
  'priority',
  'fast',
  'ultrafast',
])

function writeTool(tool: Json): Json {
  if (!isObject(tool) || tool.type !== 'function') return tool
  const { description = null, parameters = null, strict = null } = tool
  return { ...tool, description, parameters, strict }
}

/** Checks whether the client asked for the URLs that a search found. */
export function wantsSources({ include }: JsonObject): boolean {
  return Array.isArray(include) && include.includes('web_search_call.action.sources')
}

/** The status of a finished item: the one that was being written when the reply was cut off is incomplete. */
export function statusOf({ kind, parts: [part] }: OutputGroup, finish: Finish, last: boolean): ItemStatus {
  if (!isCut(finish)) return 'completed'
  const cut = part?.type === 'tool_call' ? kind === 'fc' && !isWhole(part) : kind === 'msg' && last
  return cut ? 'incomplete' : 'completed'
}

/** Checks whether the arguments of a call are complete. */
export function isWhole({ arguments: text }: ToolCallPart): boolean {
  return parseJson(text) !== undefined
}
