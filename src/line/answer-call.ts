import type { Key } from '../access/keys.ts'
import { letsProviderAct } from '../core/acting.ts'
import type { Reply } from '../core/reply.ts'
import type { Target } from '../manifest/target.ts'
import { tryTargets } from '../routing/attempts.ts'
import type { Route, Targets } from '../routing/resolve.ts'
import { servedModel } from '../routing/served-model.ts'
import type { Trial } from '../routing/trial.ts'
import { attemptClients } from './attempt-clients.ts'
import type { CallResponse, PreparedCall } from './call.ts'
import { clientReply } from './client-reply.ts'
import { earlyReply } from './early-reply.ts'
import type { Services } from './gateway.ts'
import { callerOf } from './let-in.ts'
import { orderTargets } from './order-targets.ts'
import { neutralStream } from './other-format.ts'
import { otherTargets } from './other-targets.ts'
import { orderedByPlugins } from './plugin-targets.ts'
import { callProvider, type ProviderResult } from './provider-call.ts'
import { recoveryFor } from './recovery.ts'
import type { Settlement } from './settlement.ts'
import { comparing } from './unable-targets.ts'
import { reporting } from './unheeded.ts'

/** A call that has been admitted, the targets that it may go to, and the rules for asking them. */
export type AdmittedCall = {
  prepared: PreparedCall
  settlement: Settlement
  key: Key
  targets: Targets
  route: Omit<Route, 'targets'>
}

/** Asks the targets of a call, and answers it. Throws RouterError. */
export async function answerCall(
  { prepared, settlement, key, targets, route }: AdmittedCall,
  { httpClient, routing, signatures, directory }: Pick<Services, 'httpClient' | 'routing' | 'signatures' | 'directory'>,
): Promise<CallResponse> {
  const { call, request, turn, admission, explanation } = prepared
  const { organization, id } = key
  const { rules } = route
  const { session } = call
  const order = orderTargets(
    { organization, key: id, request, session, targets, route, turn, admission, explanation },
    routing,
  )
  const { plugins } = prepared
  const ordering = plugins ? orderedByPlugins(order.targets, { plugins, settlement }) : order.targets
  const ordered = ordering instanceof Promise ? await ordering : ordering
  const nextClient = attemptClients(httpClient, call.trace)
  const trial: Trial<ProviderResult> = {
    targets: ordered,
    kind: order.kind,
    rules,
    signal: call.signal,
    caller: callerOf(key),
    acts: letsProviderAct(request),
    explanation,
    canTake: comparing(request, admission.promptTokens),
    attempt: reporting(route.unheeded, (target, limits) =>
      callProvider(target, prepared, { httpClient: nextClient(), limits, holds: rules.onCut === 'hold' }),
    ),
    onFailed: (failed) => settlement.failAttempt(failed, failed.error),
  }
  const recovery = recoveryFor({ trial, prepared, nextClient, routing })
  const remember = (reply: Reply) => signatures.remember(key, turn.request, reply)
  const servedBy = (target: Target, reported?: string) => servedModel(target, reported, directory)
  const limitHeaders = admission.headers
  const context = { prepared, settlement, servedBy, remember, recovery, limitHeaders }
  const respond = async (trial: Trial<ProviderResult>): Promise<CallResponse> => {
    const attempted = await tryTargets(trial, routing)
    if (!attempted.error) order.served(attempted.target)
    return await clientReply(attempted, { ...context, others: otherTargets(trial, respond) })
  }
  const { early, afterMs } = call.keepAlive
  if (request.stream !== true || !(early || rules.onCut === 'hold')) return await respond(trial)
  const { fail } = neutralStream(prepared, request.model)
  return await earlyReply(respond(trial), afterMs, { headers: limitHeaders, fail })
}
