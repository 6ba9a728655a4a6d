import type { JsonObject } from '../../core/json.ts'
import type { OperationRequest } from '../../core/operation.ts'
import type { CallPlugins } from '../../plugin/call-plugins.ts'
import type { PluginRequest } from '../../plugin/contract.ts'
import { promisesEurope } from '../../routing/resolve.ts'
import { requireLedger } from '../admission/admission.ts'
import type { OpenedOperation, OperationServices } from '../kinds/operation.ts'
import type { CallResponse } from '../types.ts'
import { operationAnswerOfPlugin, readableReply } from './operation-plugin-answer.ts'
import { toldByPlugins } from './with-plugins.ts'

/** Answers a call for an operation that plugins see, as `withPlugins` does one for a conversation. Throws RouterError. */
export async function withOperationPlugins(
  opened: OpenedOperation & { plugins: CallPlugins },
  services: OperationServices,
  answer: (call: OpenedOperation) => Promise<CallResponse>,
): Promise<CallResponse> {
  const { plugins, start, request } = opened
  return await toldByPlugins(plugins, start, async () => {
    if (!plugins.have('request')) return await answer(opened)
    const { operation, model, fields } = request
    const given: PluginRequest = { operation, model, fields }
    const asked = await plugins.request(given, {
      request: (changed) => void requestOf(opened, changed),
      reply: readableReply(opened),
    })
    // What was checked before the wait may have changed.
    const key = services.revalidate(opened.authenticated)
    requireLedger(services.admission)
    const current = { ...opened, key }
    const call = asked.request === given ? current : changed(current, asked.request, services)
    return asked.answer ? await operationAnswerOfPlugin(asked.answer, call, services) : await answer(call)
  })
}

/** A body as plugins see it. */
export function bodyOf({ model, fields, unread }: OperationRequest): JsonObject {
  return { model, ...fields, ...unread }
}

/** The request as plugins changed it, read as if the client had sent it. Throws RouterError. */
function requestOf({ call: { api }, request }: OpenedOperation, asked: PluginRequest): OperationRequest {
  if (!('fields' in asked)) return request
  const { stream, ...others } = asked.fields
  const kept = request.fields.stream === undefined ? {} : { stream: request.fields.stream }
  const fields = { ...others, ...kept }
  // What came with files is no JSON: its fields are taken as they are.
  const isForm = request.files.length > 0
  const read = isForm ? fields : api.read({ json: { ...fields, model: asked.model } }).fields
  return { ...request, model: asked.model, fields: read }
}

function changed<Call extends OpenedOperation>(call: Call, asked: PluginRequest, { rulesOf }: OperationServices): Call {
  const request = requestOf(call, asked)
  const { model } = call.request
  if (request.model === model) return { ...call, request }
  // Of several names none is asked that the plugin has not chosen.
  const { models: _, ...routing } = call.routing ?? {}
  const inEurope = promisesEurope(model, rulesOf(call.key.organization))
  return { ...call, request, routing: call.routing && routing, inEurope }
}
