import type { CallRecord } from '../../core/call.ts'
import { asRouterError, type RouterError } from '../../core/errors.ts'
import type { NeutralRequest } from '../../core/request.ts'
import { andThen } from '../../manifest/run-mapping.ts'
import type { AskedPlugins, CallPlugins } from '../../plugin/call-plugins.ts'
import type { MaybePromise, PluginRequest } from '../../plugin/contract.ts'
import { SeenChat } from '../../plugin/seen-chat.ts'
import { promisesEurope } from '../../routing/resolve.ts'
import { requireLedger } from '../admission/admission.ts'
import type { CallStart } from '../admission/settlement.ts'
import type { OpenedCall, Services } from '../handle-call.ts'
import type { CallResponse } from '../types.ts'
import { answerOfPlugin } from './plugin-answer.ts'

/** A call that plugins see. */
type SeenCall = OpenedCall & { plugins: CallPlugins }

export function isSeen(call: OpenedCall): call is SeenCall {
  return call.plugins !== undefined
}

/** Answers a call that plugins see: as they change it, unless one of them refuses or answers it. Throws RouterError. */
export function withPlugins(
  opened: SeenCall,
  services: Services,
  answer: (call: OpenedCall) => Promise<CallResponse>,
): Promise<CallResponse> {
  const { plugins, start } = opened
  return toldByPlugins(plugins, start, () => {
    if (!plugins.have('request')) return answer(opened)
    return andThen(ask(opened, services), (asked) =>
      asked.answer ? answerOfPlugin(asked.answer, asked.call, services) : answer(asked.call),
    )
  })
}

/** A conversation that is made shorter, or counted, as plugins change it. Throws RouterError. */
export async function changedByPlugins(opened: OpenedCall, services: Services): Promise<OpenedCall> {
  return isSeen(opened) && opened.plugins.have('request') ? (await ask(opened, services)).call : opened
}

function ask(opened: SeenCall, services: Services): MaybePromise<{ call: SeenCall; answer?: AskedPlugins['answer'] }> {
  const given = askedOf(opened.request)
  const asking = opened.plugins.request(given)
  const isWaiting = asking instanceof Promise
  return andThen(asking, ({ request, answer }) => {
    const current = isWaiting ? checkedAgain(opened, services) : opened
    const call = request === given ? current : changed(current, request, services)
    return answer ? { call, answer } : { call }
  })
}

/** A call after a wait: what was checked before it may have changed. Throws RouterError. */
function checkedAgain(call: SeenCall, services: Services): SeenCall {
  const key = services.revalidate(call.authenticated)
  requireLedger(services.admission)
  return { ...call, key }
}

/** Adds what plugins tell the client, and shows them how a call ended that has no row. Throws RouterError. */
export async function toldByPlugins(
  plugins: CallPlugins,
  start: CallStart,
  answer: () => MaybePromise<CallResponse>,
): Promise<CallResponse> {
  try {
    const response = await answer()
    if (Object.keys(plugins.headers).length === 0) return response
    return { ...response, headers: { ...plugins.headers, ...response.headers } }
  } catch (thrown) {
    const error = asRouterError(thrown)
    plugins.record(recordOfRefused(start, error))
    throw error.withHeaders(plugins.headers)
  }
}

/** A conversation as plugins see it. */
function askedOf(request: NeutralRequest): PluginRequest {
  return new SeenChat(() => {
    const { origin: _, ...chat } = request
    return chat
  })
}

/** The call as plugins changed it. What the caller may do, and how it wants to be answered, stays. */
function changed(call: SeenCall, asked: PluginRequest, { rulesOf }: Services): SeenCall {
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
