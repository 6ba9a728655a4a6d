import type { OperationApi, OperationFacts } from '../../api/operation-api.ts'
import type { Json, JsonObject } from '../../core/json.ts'
import type { OperationRequest } from '../../core/operation.ts'
import type { Usage } from '../../core/usage.ts'
import type { CallPlugins } from '../../plugin/call-plugins.ts'
import type { Explanation } from '../../routing/explanation.ts'
import type { MediaServices } from '../../upstream/files/inline.ts'
import type { OperationAnswer } from '../../upstream/operation-answer.ts'
import { measureOperation } from '../attempt/measured-reply.ts'
import type { AnsweredCall } from '../call-kind.ts'
import type { Admission, MeasuredUsage, Settled } from '../types.ts'
import { servedId } from './attempt-headers.ts'

/** An operation that a target has answered, and the context of its reply. */
export type AnsweredOperation = Omit<AnsweredCall<OperationAnswer>, 'answer' | 'trial'> & {
  prepared: {
    /** `afterMs`: the time after which a stream begins, even if nothing of it may be sent yet. */
    call: { id: string; api: OperationApi; signal: AbortSignal; afterMs: number }
    request: OperationRequest
    admission: Pick<Admission, 'mostAt'>
    explanation: Explanation | undefined
    plugins: CallPlugins | undefined
    media: MediaServices
  }
}

/** Measures the usage of a call, of which the provider counted `usage`; `reply` is as much of the answer as is known. */
export function measure(
  { prepared, target }: AnsweredOperation,
  usage: Usage,
  reply: JsonObject | undefined,
  complete: boolean,
): MeasuredUsage {
  const { call, request, admission } = prepared
  return measureOperation(usage, { target, api: call.api, request, admission, reply, complete })
}

/** Returns the facts of a reply besides its content; `reported` is the provider's own usage object. */
export function factsOf(
  { prepared, target, served }: AnsweredOperation,
  { usage, cost }: Settled,
  answer?: { reported: Json | undefined },
): OperationFacts {
  return {
    id: prepared.call.id,
    model: servedId({ target, served }),
    request: prepared.request,
    usage,
    ...(!cost.unpriced && { costUsd: cost.nanoUsd / 1e9 }),
    ...(answer && { reported: answer.reported }),
    now: Math.floor(Date.now() / 1_000),
  }
}

/** Adds the routing facts to a JSON answer, or to its last event, where the call asks for that. */
export function withRouter(
  made: JsonObject,
  { prepared: { explanation } }: Pick<AnsweredOperation, 'prepared'>,
): JsonObject {
  return explanation ? { ...made, router: explanation.facts() } : made
}

/** Returns the cost, for bodies that have no place for it. */
export function costHeader({ cost }: Settled): { 'x-router-cost'?: string } {
  return cost.unpriced ? {} : { 'x-router-cost': String(cost.nanoUsd / 1e9) }
}

/** Returns the text of a server-sent event. */
export function eventText(event: JsonObject, named: boolean): string {
  const name = named && typeof event.type === 'string' ? `event: ${event.type}\n` : ''
  return `${name}data: ${JSON.stringify(event)}\n\n`
}

/** The media type of bytes: their kind is what the client asked for. */
export const bytesType = 'application/octet-stream'
