import type { OperationFacts } from '../../api/operation-api.ts'
import { asRouterError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import { withLoans } from '../../lending/with-loans.ts'
import type { AskedPlugins, CallPlugins } from '../../plugin/call-plugins.ts'
import type { PluginReply } from '../../plugin/contract.ts'
import { admitUncharged } from '../admission/admission.ts'
import type { OpenedOperation, OperationServices } from '../kinds/operation.ts'
import { routeForOperation } from '../kinds/operation-targets.ts'
import { bytesType } from '../reply/operation-bytes.ts'
import { eventText } from '../reply/operation-events.ts'
import { seenEvents } from '../reply/operation-seen.ts'
import type { CallResponse } from '../types.ts'
import { answerHeaders, rowOfAnswer } from './plugin-answer.ts'

type Answered = OpenedOperation & { plugins: CallPlugins }

/** The response to an operation that a plugin answers, as `answerOfPlugin` makes one to a conversation. Throws RouterError. */
export async function operationAnswerOfPlugin(
  { plugin, reply, headers }: NonNullable<AskedPlugins['answer']>,
  call: Answered,
  services: OperationServices,
): Promise<CallResponse> {
  const { request, routing, start, inEurope } = call
  const { api } = call.call
  const limits = await withLoans((isRetry) => {
    const key = isRetry ? services.revalidate(call.authenticated) : call.key
    routeForOperation(key, { api, model: request.model, at: start.at, routing, inEurope }, services)
    return admitUncharged({ key, rules: services.rulesOf(key.organization) }, services.admission)
  })
  Object.assign(call.plugins.headers, headers)
  try {
    const shown = await call.plugins.reply(reply, readableReply(call))
    const response = responseOf(shown, call, plugin)
    const row = rowOfAnswer(start, plugin, { outcome: 'complete', status: 200 })
    await services.ledger.settle(row)
    call.plugins.record(row)
    const told = { ...limits.headers, ...answerHeaders(plugin), 'x-router-cost': '0' }
    return { ...response, headers: { ...told, ...response.headers } }
  } finally {
    limits.settle(0)
  }
}

/** Throws RouterError for a reply from which no response can be made. */
export function readableReply(call: OpenedOperation): (reply: PluginReply) => void {
  const { plugins: _, ...unseen } = call
  return (reply) => void responseOf(reply, unseen, '')
}

/** What the client wants, of a reply in the words of the API. */
function responseOf(reply: PluginReply, opened: OpenedOperation, plugin: string): CallResponse {
  const { request, call, plugins } = opened
  const { api, id } = call
  const json: JsonObject = 'json' in reply ? reply.json : {}
  const now = Math.floor(Date.now() / 1_000)
  const facts: OperationFacts = { id, model: `plugin/${plugin}`, request, usage: {}, costUsd: 0, now }
  const wanted = api.wants(request)
  if (wanted === 'bytes' && api.bytes) {
    const { bytes, mediaType } = api.bytes.ofWhole(json, request)
    return { headers: api.bytes.headers(bytes, mediaType, request), mediaType: bytesType, body: once(bytes) }
  }
  if (wanted === 'events' && api.events) {
    const { events } = api
    const hooks = plugins?.events()
    const seen = hooks && seenEvents(hooks, request.operation)
    const made = events.ofWhole(json, request).flatMap((event) => (seen ? seen.take(event) : [event]))
    const written = [...made, ...(seen?.end() ?? [])].map((event) => events.write(event, facts))
    const after = events.after?.(facts, made.at(-1) ?? {}) ?? []
    const text = [...written, ...after].map((event) => eventText(event, events.named)).join('')
    return { headers: {}, body: once(text + (events.terminator ?? '')) }
  }
  const written = api.write?.(json, facts)
  if (written === undefined) throw asRouterError(new Error('an operation without JSON'))
  if (typeof written === 'string') return { headers: {}, body: written, mediaType: 'text/plain; charset=utf-8' }
  return { headers: {}, body: JSON.stringify(written) }
}

async function* once<Value>(value: Value): AsyncGenerator<Value, void> {
  yield value
}
