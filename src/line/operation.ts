import type { Key } from '../access/keys.ts'
import type { OperationApi, OperationBody } from '../api/operation-api.ts'
import { asRouterError, RouterError } from '../core/errors.ts'
import { type OperationRequest, operations } from '../core/operation.ts'
import type { RoutingRequest } from '../core/routing-request.ts'
import { recordedTrace } from '../core/trace.ts'
import { promptTokens, type Usage } from '../core/usage.ts'
import { withLoans } from '../lending/with-loans.ts'
import type { Target } from '../manifest/target.ts'
import { tryTargets } from '../routing/attempts.ts'
import { Explanation } from '../routing/explanation.ts'
import type { Purpose, Route, Targets } from '../routing/resolve.ts'
import { routeForRequest } from '../routing/route-for-request.ts'
import type { Tried } from '../routing/trial.ts'
import { type CallMedia, openCallMedia } from '../upstream/inline.ts'
import { type Admission, admitOperation, requireLedger, requireMoney } from './admission.ts'
import { attemptClients } from './attempt-clients.ts'
import type { Call, CallResponse } from './call.ts'
import { explained } from './explained.ts'
import type { Services } from './gateway.ts'
import { type GovernedCall, governedTargets } from './governed-targets.ts'
import { callerOf, readInTurn } from './let-in.ts'
import { hasEndpoint, isAskedByChat, mostAt } from './operation-by-chat.ts'
import { callOperation, type OperationResult } from './operation-call.ts'
import { operationReply } from './operation-reply.ts'
import { orderForOperation } from './order-targets.ts'
import { withoutUnpriced } from './refuse-unpriced.ts'
import { type CallStart, Settlement } from './settlement.ts'
import { recordedFor } from './tags.ts'
import { isLarger } from './unable-targets.ts'
import { reporting } from './unheeded.ts'

/** One client request for an operation. */
export type OperationCall = Pick<
  Call,
  'id' | 'requestId' | 'secret' | 'strict' | 'explain' | 'timeoutMs' | 'tags' | 'signal' | 'atEnd' | 'trace'
> & {
  api: OperationApi
  /** The body is a form, which may be large. */
  uploads: boolean
  /**
   * Reads the body; `onField` hears of each field of a form as it comes, and may refuse the rest, `onSlow` when it takes longer than
   * bodies do that are sent at once.
   */
  readBody(hearing: { onField(name: string, value: string): void; onSlow(): void }): Promise<OperationBody>
}

/** The services that operations depend on. */
export type OperationServices = Pick<
  Services,
  | 'authenticate'
  | 'revalidate'
  | 'rulesOf'
  | 'directory'
  | 'admission'
  | 'httpClient'
  | 'ledger'
  | 'maxUnknownFields'
  | 'answerBounds'
  | 'media'
  | 'held'
  | 'routing'
  | 'gate'
>

/**
 * One call for an operation, from the endpoint to the reply. Who may not call, or cannot pay for an upload, is told before the
 * body is read; which model is not allowed, as soon as a form names it. Throws RouterError.
 */
export async function handleOperation(call: OperationCall, services: OperationServices): Promise<CallResponse> {
  if (!call.explain) return await serve(call, services)
  return await explained(new Explanation(), (explanation) => serve(call, services, explanation))
}

async function serve(
  call: OperationCall,
  services: OperationServices,
  explanation?: Explanation,
): Promise<CallResponse> {
  const { api } = call
  const at = Date.now()
  const monotonicMs = performance.now()
  const authenticated = services.authenticate(call.secret)
  const purpose = { ...purposeOf(api), explanation }
  const routeFor = (key: Key, model: string, asked?: RoutingRequest, promptTokens = () => 0): Route => {
    const rules = services.rulesOf(key.organization)
    const scope = { rules, accessList: key.accessList }
    const route = routeForRequest(model, asked, { directory: services.directory, scope, purpose, at, promptTokens })
    return { ...route, targets: withoutUnpriced(route.targets, { key, rules, at }, explanation) }
  }
  // A model that costs nothing can be called without money; an upload is not read to find that out.
  if (call.uploads) await withLoans(() => requireMoney(payer(authenticated, services, at), services.admission))
  let hasOthers = false
  const onField = (name: string, value: string) => {
    hasOthers ||= name === 'models' || name.startsWith('models[')
    if (name === 'model' && value !== '' && !hasOthers) routeFor(authenticated, value)
  }
  const readBody = (onSlow: () => void) => call.readBody({ onField, onSlow })
  const body = await readInTurn(authenticated, { ...call, readBody }, services)
  // A slow upload must not outlive its key.
  const key = services.revalidate(authenticated)
  requireLedger(services.admission)
  const read = readRequest(api, body, services.maxUnknownFields)
  const request = api.measure ? await api.measure(read) : read
  const routing = withTimeout(request.routing, call.timeoutMs)
  const admitNow = (isRetry: boolean): { admission: Admission; targets: Targets; route: Route } => {
    const caller = isRetry ? services.revalidate(authenticated) : key
    explanation?.begin(monotonicMs)
    const estimated = promptTokens(api.estimate(request))
    const route = routeFor(caller, request.model, routing, () => estimated)
    const able = ableTargets(route.targets, { api, request, explanation })
    const targets = governedTargets(able, governed(request, caller, services, at), explanation)
    const most = (target: Target) => mostAt(target, { api, request, at })
    const asked = {
      ...payer(caller, services, at),
      targets,
      most,
      promptTokens: estimated,
      abandoned: sentUsage(api, request),
    }
    return { admission: admitOperation(asked, services.admission), targets, route }
  }
  const start = startOf(call, { key, request, at, monotonicMs })
  const inputs = openCallMedia(services.media, { param: 'images', signal: call.signal })
  const { admission, targets, route } = await withLoans(admitNow)
  const settlement = new Settlement(start, { ledger: services.ledger, admission, explanation })
  const prepared = { call, request, explanation, admission, media: services.media }
  const strict = call.strict || route.strict === true
  const admitted = {
    call: { ...call, strict },
    request,
    key,
    targets,
    route,
    admission,
    explanation,
    inputs,
    settlement,
  }
  return await operationReply(await askTargets(admitted, services), { prepared, settlement })
}

/** A call that has been admitted. */
type AdmittedOperation = {
  call: OperationCall
  request: OperationRequest
  key: Key
  targets: Targets
  route: Route
  admission: Admission
  explanation: Explanation | undefined
  inputs: CallMedia
  settlement: Settlement
}

async function askTargets(
  { call, request, key, targets, route, admission, explanation, inputs, settlement }: AdmittedOperation,
  services: OperationServices,
): Promise<Tried<OperationResult>> {
  const { api, strict, signal } = call
  const { organization, id } = key
  const asked = { targets, route, admission, explanation, request, organization, key: id }
  const order = orderForOperation(asked, services.routing)
  const nextClient = attemptClients(services.httpClient, call.trace)
  const attempted = await tryTargets<OperationResult>(
    {
      targets: order.targets,
      kind: order.kind,
      rules: route.rules,
      canTake: (other, refusedBy, how) => how === 'larger' && isLarger(other, refusedBy, admission.promptTokens),
      signal,
      caller: callerOf(key),
      explanation,
      attempt: reporting(route.unheeded, (target, limits) =>
        callOperation(
          target,
          { request, api, strict, signal, inputs, admission, limits },
          { ...services, httpClient: nextClient() },
        ),
      ),
      onFailed: (failed) => settlement.failAttempt(failed, failed.error),
    },
    services.routing,
  )
  if (!attempted.error) order.served(attempted.target)
  return attempted
}

function withTimeout(routing: RoutingRequest | undefined, totalMs: number | undefined): RoutingRequest | undefined {
  return totalMs === undefined ? routing : { ...routing, totalMs }
}

/** What a client that leaves has sent: the seconds of its sound, not those of what would be spoken. */
function sentUsage(api: OperationApi, request: OperationRequest): Usage {
  const { seconds, ...usage } = { ...api.estimate(request), ...api.count(request) }
  return { ...usage, ...(request.audio && seconds !== undefined && { seconds }) }
}

function payer(key: Key, services: OperationServices, at: number) {
  return { key, rules: services.rulesOf(key.organization), at }
}

/** What the API does not know of a body goes on where the body is edited: nothing in it may decide what only the router decides. */
function governed(
  { unread, operation }: OperationRequest,
  key: Key,
  { held }: OperationServices,
  at: number,
): GovernedCall {
  return { api: 'chat', operation, body: unread, organization: key.organization, mayStore: false, held, at }
}

/** What targets of an operation must be able to do; some can be done by models for conversations as well. */
function purposeOf(api: OperationApi): Purpose {
  const { models, api: name } = operations[api.operation]
  return {
    apis: models,
    serves: (target) => hasEndpoint(target, api) || isAskedByChat(target, api),
    name: `endpoint for ${name}`,
  }
}

/** The targets whose models can do what is asked. Throws the reason of the first when there are none. */
function ableTargets(
  targets: Targets,
  {
    api: { checkModel },
    request,
    explanation,
  }: { api: OperationApi; request: OperationRequest; explanation: Explanation | undefined },
): Targets {
  if (!checkModel) return targets
  let reason: unknown
  const able = targets.filter((target) => {
    const { entry } = target
    if (!entry) return true
    try {
      checkModel(request, entry)
      return true
    } catch (thrown) {
      reason ??= thrown
      explanation?.skip(target, 'able', asRouterError(thrown).message)
      return false
    }
  })
  const [first, ...others] = able
  if (!first) throw reason
  return [first, ...others]
}

function readRequest(api: OperationApi, body: OperationBody, mostUnknown: number): OperationRequest {
  const request = api.read(body)
  const unknown = Object.keys(request.unread)
  if (unknown.length <= mostUnknown) return request
  const message = `The body has ${unknown.length} fields that this API does not have; max_unknown_fields of this server is ${mostUnknown}.`
  throw new RouterError('invalid_request', message, { param: unknown[mostUnknown] })
}

function startOf(
  { id, requestId, api, tags, trace }: OperationCall,
  { key, request, at, monotonicMs }: { key: Key; request: OperationRequest; at: number; monotonicMs: number },
): CallStart {
  const { user } = request
  return {
    id,
    ...(requestId !== undefined && { requestId }),
    at,
    monotonicMs,
    organization: key.organization,
    key: key.id,
    ...(key.groupId !== null && { group: key.groupId }),
    api: operations[api.operation].api,
    operation: api.operation,
    requested: request.model,
    stream: request.stream,
    ...(trace && { trace: recordedTrace(trace) }),
    ...recordedFor({ ...(user !== undefined && { user }), requesty: request.requesty }, tags ?? {}),
  }
}
