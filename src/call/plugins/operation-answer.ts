import type { OperationApi, OperationFacts } from '../../api/operation-api.ts'
import type { JsonObject } from '../../core/json.ts'
import type { OperationRequest } from '../../core/operation.ts'
import { targetId } from '../../manifest/target.ts'
import type { CallPlugins } from '../../plugin/call-plugins.ts'
import type { PluginReply } from '../../plugin/contract.ts'
import type { Explanation } from '../../routing/explanation.ts'
import { yieldEach } from '../../runtime/event-loop.ts'
import type { AnswerEnd, PluginAnswer } from '../call-kind.ts'
import { bytesType, eventText } from '../reply/operation-facts.ts'
import { seenEvents } from '../reply/operation-seen.ts'
import type { CallResponse } from '../types.ts'
import { pluginAsTarget } from './with-plugins.ts'

/** An operation that a plugin answers; `plugins` is missing while the reply is only checked. */
type AnsweredOperation = {
  id: string
  api: OperationApi
  request: OperationRequest
  plugins?: CallPlugins
  explanation?: Explanation | undefined
}

/** Returns the response to an operation that a plugin answers. Throws RouterError. */
export async function operationAnswerOfPlugin(
  { plugin, reply }: PluginAnswer,
  answered: AnsweredOperation & { plugins: CallPlugins },
  end: AnswerEnd,
): Promise<CallResponse> {
  const shown = await answered.plugins.reply(reply, readableReply(answered))
  const response = responseOf(shown, answered, { plugin, seen: await seenEventsOf(shown, answered) })
  await end({ outcome: 'complete', status: 200 })
  return { ...response, headers: { 'x-router-cost': '0', ...response.headers } }
}

/** Checks that a response can be made from the reply of a plugin. Throws RouterError. */
export function readableReply({ plugins: _, ...unseen }: AnsweredOperation): (reply: PluginReply) => void {
  return (reply) => void responseOf(reply, unseen, { plugin: '' })
}

/** Returns the events of a reply as plugins change them; undefined where the client wants none, or no plugin sees them. */
async function seenEventsOf(
  reply: PluginReply,
  { api: { events, wants }, request, plugins }: AnsweredOperation,
): Promise<JsonObject[] | undefined> {
  const hooks = plugins?.events()
  if (!hooks || !events || wants(request) !== 'events') return undefined
  const seen = seenEvents(hooks, request.operation)
  const made: JsonObject[] = []
  for (const event of events.ofWhole(jsonOf(reply), request)) made.push(...(await seen.take(event)))
  return [...made, ...(await seen.end())]
}

function jsonOf(reply: PluginReply): JsonObject {
  return 'json' in reply ? reply.json : {}
}

/** Makes the response that the client wants from a reply in the format of the API. */
function responseOf(
  reply: PluginReply,
  { id, api, request, explanation }: AnsweredOperation,
  { plugin, seen }: { plugin: string; seen?: JsonObject[] | undefined },
): CallResponse {
  const json = jsonOf(reply)
  const now = Math.floor(Date.now() / 1_000)
  const model = targetId(pluginAsTarget(plugin))
  const facts: OperationFacts = { id, model, request, usage: {}, costUsd: 0, now }
  const wanted = api.wants(request)
  if (wanted === 'bytes' && api.bytes) {
    const { bytes, mediaType } = api.bytes.ofWhole(json, request)
    return { headers: api.bytes.headers(bytes, mediaType, request), mediaType: bytesType, body: yieldEach([bytes]) }
  }
  if (wanted === 'events' && api.events) {
    const { events } = api
    const made = seen ?? events.ofWhole(json, request)
    const written = made.map((event) => events.write(event, facts))
    const after = events.after?.(facts, made.at(-1) ?? {}) ?? []
    const text = [...written, ...after].map((event) => eventText(event, events.named)).join('')
    return { headers: {}, body: yieldEach([text + (events.terminator ?? '')]) }
  }
  const written = api.write?.(json, facts)
  if (written === undefined) throw new Error('an operation without JSON')
  if (typeof written === 'string') return { headers: {}, body: written, mediaType: 'text/plain; charset=utf-8' }
  return { headers: {}, body: JSON.stringify(explanation ? { ...written, router: explanation.facts() } : written) }
}
