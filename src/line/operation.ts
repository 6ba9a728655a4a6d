import type { Key } from '../access/keys.ts'
import type { OperationApi, OperationBody } from '../api/operation-api.ts'
import { RouterError } from '../core/errors.ts'
import { type OperationRequest, operations } from '../core/operation.ts'
import { isRefusal, refusedCall } from '../core/refused-call.ts'
import type { RoutingRequest } from '../core/routing-request.ts'
import { recordedTrace } from '../core/trace.ts'
import { promptTokens, type Usage } from '../core/usage.ts'
import { withLoans } from '../lending/with-loans.ts'
import type { Target } from '../manifest/target.ts'
import type { CallPlugins } from '../plugin/call-plugins.ts'
import { tryTargets } from '../routing/attempts.ts'
import { Explanation } from '../routing/explanation.ts'
import type { Route, Targets } from '../routing/resolve.ts'
import type { Tried } from '../routing/trial.ts'
import { type CallMedia, openCallMedia } from '../upstream/inline.ts'
import { type Admission, admitOperation, requireLedger, requireMoney } from './admission.ts'
import { attemptClients } from './attempt-clients.ts'
import type { Call, CallResponse } from './call.ts'
import { explained } from './explained.ts'
import type { Services } from './gateway.ts'
import { governedTargets } from './governed-targets.ts'
import { callerOf, readInTurn } from './let-in.ts'
import { mostAt } from './operation-by-chat.ts'
import { callOperation, type OperationResult } from './operation-call.ts'
import { bodyOf, withOperationPlugins } from './operation-plugins.ts'
import { operationReply } from './operation-reply.ts'
import { ableTargets, governed, routeForOperation } from './operation-targets.ts'
import { orderForOperation } from './order-targets.ts'
import { orderedByPlugins } from './plugin-targets.ts'
import { pluginsOf } from './plugins-of-call.ts'
import { type CallStart, Settlement } from './settlement.ts'
import { recordedFor } from './tags.ts'
import { isLarger } from './unable-targets.ts'
import { reporting } from './unheeded.ts'

/** One client request for an operation. */
export type OperationCall = Pick<
  Call,
  'id' | 'requestId' | 'headers' | 'secret' | 'strict' | 'explain' | 'timeoutMs' | 'tags' | 'signal' | 'atEnd' | 'trace'
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
  | 'plugins'
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
  // A model that costs nothing can be called without money; an upload is not read to find that out.
  if (call.uploads) await withLoans(() => requireMoney(payer(authenticated, services, at), services.admission))
  let hasOthers = false
  const onField = (name: string, value: string) => {
    hasOthers ||= name === 'models' || name.startsWith('models[')
    const isModel = name === 'model' && value !== '' && !hasOthers
    if (isModel) routeForOperation(authenticated, { api, model: value, at, explanation }, services)
  }
  const readBody = (onSlow: () => void) => call.readBody({ onField, onSlow })
  const body = await readInTurn(authenticated, { ...call, readBody }, services)
  // A slow upload must not outlive its key.
  const key = services.revalidate(authenticated)
  requireLedger(services.admission)
  const read = readRequest(api, body, services.maxUnknownFields)
  const request = api.measure ? await api.measure(read, call.signal) : read
  const routing = withTimeout(request.routing, call.timeoutMs)
  const start = startOf(call, { key, request, at, monotonicMs })
  const opened: OpenedOperation = { call, authenticated, key, request, routing, start, explanation }
  const { headers, signal } = call
  const plugins = pluginsOf(start, { key, headers, signal, body: () => bodyOf(request) }, services)
  try {
    if (!plugins) return await answer(opened, services)
    return await withOperationPlugins({ ...opened, plugins }, services, (changed) => answer(changed, services))
  } catch (thrown) {
    if (isRefusal(thrown)) services.ledger.refused?.(refusedCall(start, thrown))
    throw thrown
  }
}

/** A call whose body has been read. */
export type OpenedOperation = {
  call: OperationCall
  /** The key as it was before the body was read, and after. */
  authenticated: Key
  key: Key
  request: OperationRequest
  /** What the request says of how it is routed. */
  routing: RoutingRequest | undefined
  start: CallStart
  explanation: Explanation | undefined
  plugins?: CallPlugins
  /** Only targets in the EU may serve it. */
  inEurope?: boolean
}

async function answer(opened: OpenedOperation, services: OperationServices): Promise<CallResponse> {
  const { call, key, authenticated, request, routing, start, explanation, plugins, inEurope } = opened
  const { api } = call
  const { at } = start
  const admitNow = (isRetry: boolean): { admission: Admission; targets: Targets; route: Route } => {
    const caller = isRetry ? services.revalidate(authenticated) : key
    explanation?.begin(start.monotonicMs)
    const estimated = promptTokens(api.estimate(request))
    const { model } = request
    const asked = { api, model, at, explanation, routing, inEurope, promptTokens: () => estimated }
    const route = routeForOperation(caller, asked, services)
    const able = ableTargets(route.targets, { api, request, explanation })
    const targets = governedTargets(able, governed(request, caller, services, at), explanation)
    const most = (target: Target) => mostAt(target, { api, request, at })
    const admitting = {
      ...payer(caller, services, at),
      targets,
      most,
      promptTokens: estimated,
      abandoned: sentUsage(api, request),
    }
    return { admission: admitOperation(admitting, services.admission), targets, route }
  }
  const inputs = openCallMedia(services.media, { param: 'images', signal: call.signal })
  const { admission, targets, route } = await withLoans(admitNow)
  const settlement = new Settlement(start, { ledger: services.ledger, admission, explanation, plugins })
  const prepared = { call, request, explanation, plugins, admission, media: services.media }
  const strict = call.strict || route.strict === true
  const own = { plugins, explanation, inputs, settlement }
  const admitted = { call: { ...call, strict }, request, key, targets, route, admission, ...own }
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
  plugins: CallPlugins | undefined
  inputs: CallMedia
  settlement: Settlement
}

async function askTargets(
  { call, request, key, targets, route, admission, explanation, plugins, inputs, settlement }: AdmittedOperation,
  services: OperationServices,
): Promise<Tried<OperationResult>> {
  const { api, strict, signal } = call
  const { organization, id } = key
  const asked = { targets, route, admission, explanation, request, organization, key: id }
  const order = orderForOperation(asked, services.routing)
  const ordered = plugins ? await orderedByPlugins(order.targets, { plugins, settlement }) : order.targets
  const nextClient = attemptClients(services.httpClient, call.trace)
  const attempted = await tryTargets<OperationResult>(
    {
      targets: ordered,
      kind: order.kind,
      rules: route.rules,
      canTake: (other, refusedBy, how) => how === 'larger' && isLarger(other, refusedBy, admission.promptTokens),
      signal,
      caller: callerOf(key),
      explanation,
      attempt: reporting(route.unheeded, (target, limits) =>
        callOperation(
          target,
          { request, api, strict, signal, inputs, admission, plugins, limits },
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
