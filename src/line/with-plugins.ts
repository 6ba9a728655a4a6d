import type { CallRecord } from '../core/call.ts'
import { asRouterError, type RouterError } from '../core/errors.ts'
import type { NeutralRequest } from '../core/request.ts'
import type { AskedPlugins, CallPlugins } from '../plugin/call-plugins.ts'
import type { PluginRequest } from '../plugin/contract.ts'
import { promisesEurope } from '../routing/resolve.ts'
import { requireLedger } from './admission.ts'
import type { CallResponse } from './call.ts'
import type { OpenedCall, Services } from './gateway.ts'
import { answerOfPlugin } from './plugin-answer.ts'
import type { CallStart } from './settlement.ts'

/** Answers a call that plugins see: as they change it, unless one of them refuses or answers it. Throws RouterError. */
export async function withPlugins(
  opened: OpenedCall & { plugins: CallPlugins },
  services: Services,
  answer: (call: OpenedCall) => Promise<CallResponse>,
): Promise<CallResponse> {
  const { plugins, start } = opened
  return await toldByPlugins(plugins, start, async () => {
    if (!plugins.have('request')) return await answer(opened)
    const asked = await ask(opened, services)
    return asked.answer ? await answerOfPlugin(asked.answer, asked.call, services) : await answer(asked.call)
  })
}

/** A conversation that is made shorter, or counted, as plugins change it. Throws RouterError. */
export async function changedByPlugins(
  opened: OpenedCall & { plugins?: CallPlugins | undefined },
  services: Services,
): Promise<OpenedCall> {
  const { plugins } = opened
  return plugins?.have('request') ? (await ask({ ...opened, plugins }, services)).call : opened
}

async function ask<Call extends OpenedCall & { plugins: CallPlugins }>(
  opened: Call,
  services: Services,
): Promise<{ call: Call; answer?: AskedPlugins['answer'] }> {
  const given = askedOf(opened.request)
  const { request, answer } = await opened.plugins.request(given)
  // What was checked before the wait may have changed.
  const key = services.revalidate(opened.authenticated)
  requireLedger(services.admission)
  const current = { ...opened, key }
  const call = request === given ? current : changed(current, request, services)
  return answer ? { call, answer } : { call }
}

/** Adds what plugins tell the client, and shows them how a call ended that has no row. Throws RouterError. */
export async function toldByPlugins(
  plugins: CallPlugins,
  start: CallStart,
  answer: () => Promise<CallResponse>,
): Promise<CallResponse> {
  try {
    const response = await answer()
    return { ...response, headers: { ...plugins.headers, ...response.headers } }
  } catch (thrown) {
    const error = asRouterError(thrown)
    plugins.record(recordOfRefused(start, error))
    throw error.withHeaders(plugins.headers)
  }
}

/** A conversation as plugins see it. */
function askedOf(request: NeutralRequest): PluginRequest {
  const { origin: _, ...chat } = request
  return { operation: 'chat', chat }
}

/** The call as plugins changed it. What the caller may do, and how it wants to be answered, stays. */
function changed<Call extends OpenedCall>(call: Call, asked: PluginRequest, { rulesOf }: Services): Call {
  if (!('chat' in asked)) return call
  const { origin, unread, stream, model } = call.request
  const { stream: _, unread: __, ...chat } = asked.chat
  const kept = { origin, ...(unread && { unread }), ...(stream !== undefined && { stream }) }
  const request: NeutralRequest = { ...chat, ...kept }
  if (request.model === model) return { ...call, request, isRewritten: true }
  // Of several names none is asked that the plugin has not chosen.
  const { models: ___, ...routing } = call.routing ?? {}
  const inEurope = promisesEurope(model, rulesOf(call.key.organization))
  return { ...call, request, isRewritten: true, routing: call.routing && routing, inEurope }
}

function recordOfRefused({ monotonicMs, ...start }: CallStart, { status, code }: RouterError): CallRecord {
  return {
    ...start,
    provider: '',
    model: '',
    outcome: 'failed',
    status,
    error: code,
    usage: {},
    cost: { nanoUsd: 0, parts: {}, priceVersion: '' },
    dropped: [],
    attempts: 0,
    durationMs: Math.round(performance.now() - monotonicMs),
  }
}
