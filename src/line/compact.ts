import { compactedBody } from '../api/responses/other-calls.ts'
import { readRouting, withFirstModel } from '../api/routing-fields.ts'
import { asRouterError, RouterError } from '../core/errors.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import type { NeutralRequest } from '../core/request.ts'
import { mergeUsage, type Usage } from '../core/usage.ts'
import { withLoans } from '../lending/with-loans.ts'
import { readUsage } from '../manifest/read-usage.ts'
import { type Target, targetId } from '../manifest/target.ts'
import { boundedCall, costBound, longestOutput, promptBound } from '../money/max-cost.ts'
import { measuredOperation } from '../money/measured-operation.ts'
import { estimatePromptTokens } from '../money/meter.ts'
import { tryTargets } from '../routing/attempts.ts'
import { Explanation } from '../routing/explanation.ts'
import { callKind } from '../routing/measurements.ts'
import { forChat, type Route, type Targets } from '../routing/resolve.ts'
import { routeForRequest } from '../routing/route-for-request.ts'
import type { AttemptLimits } from '../routing/trial.ts'
import { withBilled } from '../upstream/answer-json.ts'
import { type CallMedia, openCallMedia } from '../upstream/inline.ts'
import { requestJson } from '../upstream/provider-answer.ts'
import { withoutSecretsOf } from '../upstream/secrets.ts'
import { type Admission, admitOperation, type MostUsed, requireLedger } from './admission.ts'
import { attemptClients } from './attempt-clients.ts'
import type { Call, CallResponse } from './call.ts'
import { attemptHeaders } from './client-reply.ts'
import { conversationBody } from './conversation-body.ts'
import { explained } from './explained.ts'
import { type OpenedCall, type Services, startOf } from './gateway.ts'
import { governedTargets } from './governed-targets.ts'
import { callerOf, readInTurn } from './let-in.ts'
import { clientByPlugins, orderedByPlugins } from './plugin-targets.ts'
import { pluginsOf } from './plugins-of-call.ts'
import { withoutUnpriced } from './refuse-unpriced.ts'
import { Settlement } from './settlement.ts'
import { refuseManyUnknown } from './unknown-fields.ts'
import { changedByPlugins, toldByPlugins } from './with-plugins.ts'

/** A conversation made shorter by a provider, and what that used. */
type Compacted = { body: JsonObject; usage: Usage }

type Result = { dropped: string[] } & (
  | { compacted: Compacted; error?: undefined }
  | { error: RouterError; sent: boolean }
)

/**
 * Compacts a conversation of the Responses API, by a provider of that format: the reply is its own, with the cost. Throws
 * RouterError 400 that names who can where the model cannot.
 */
export async function compact(call: Call, services: Services): Promise<CallResponse> {
  if (!call.explain) return await serve(call, services)
  return await explained(new Explanation(), (explanation) => serve(call, services, explanation))
}

async function serve(call: Call, services: Services, explanation?: Explanation): Promise<CallResponse> {
  const authenticated = services.authenticate(call.secret)
  const body = await readInTurn(authenticated, call, services)
  // A slow upload must not outlive its key.
  const key = services.revalidate(authenticated)
  requireLedger(services.admission)
  const turn = services.conversations.open(call.clientApi, key.organization, withFirstModel(body))
  refuseManyUnknown(turn.request, services.maxUnknownFields)
  const request = services.signatures.restore(key, turn.request)
  const routing = readRouting(request.origin.body, call.timeoutMs)
  const start = { ...startOf(call, key, request), operation: 'compact' as const, stream: false }
  const { headers, signal } = call
  const plugins = pluginsOf(start, { key, headers, signal, body: () => request.origin.body }, services)
  const opened: OpenedCall = { call, authenticated, key, turn, request, routing, start, explanation, plugins }
  if (!plugins) return await answer(opened, services)
  return await toldByPlugins(
    plugins,
    start,
    async () => await answer(await changedByPlugins(opened, services), services),
  )
}

async function answer(opened: OpenedCall, services: Services): Promise<CallResponse> {
  const { call, authenticated, request, start, explanation, plugins } = opened
  const { admission, targets, rules } = await withLoans((isRetry) => {
    const key = isRetry ? services.revalidate(authenticated) : opened.key
    explanation?.begin(start.monotonicMs)
    return admitted({ ...opened, key }, services)
  })
  const settlement = new Settlement(start, { ledger: services.ledger, admission, explanation, plugins })
  const media = openCallMedia(services.media, { param: 'input', signal: call.signal })
  const ordered = plugins ? await orderedByPlugins(targets, { plugins, settlement }) : targets
  const { promptTokens } = admission
  const nextClient = attemptClients(services.httpClient, call.trace)
  const attempted = await tryTargets(
    {
      targets: ordered,
      kind: callKind('compact', false, promptTokens),
      rules,
      signal: call.signal,
      caller: callerOf(opened.key),
      explanation,
      attempt: (target, limits) =>
        compactAt(target, { ...opened, media, limits }, { ...services, httpClient: nextClient() }),
      onFailed: (failed) => settlement.failAttempt(failed, failed.error),
    },
    services.routing,
  )
  const headers = { ...admission.headers, ...attemptHeaders(attempted, undefined) }
  try {
    if (attempted.error) {
      await settlement.fail(attempted, attempted.error).catch(() => {})
      throw attempted.error
    }
    const { compacted, target } = attempted
    const estimate = { input: estimatePromptTokens(request) }
    const most = admission.mostAt(target, false)
    const known = { counted: {}, estimate, complete: true, entry: target.entry, most }
    const measured = measuredOperation(compacted.usage, known)
    const { cost } = await settlement.complete({ ...attempted, measured })
    const reply = withCost(compacted.body, cost.unpriced ? undefined : cost.nanoUsd / 1e9)
    return { headers, body: JSON.stringify(explanation ? { ...reply, router: explanation.facts() } : reply) }
  } catch (thrown) {
    throw asRouterError(thrown).withHeaders(headers)
  } finally {
    if (!attempted.error) attempted.passage.ended()
  }
}

function admitted(
  { key, request, turn, start: { at }, routing, inEurope, explanation }: OpenedCall,
  services: Services,
): { admission: Admission } & Pick<Route, 'targets' | 'rules'> {
  const rules = services.rulesOf(key.organization)
  const scope = { rules, accessList: key.accessList }
  const { directory } = services
  const tokens = estimatePromptTokens(request)
  const purpose = { ...forChat(request, explanation), ...(inEurope && { inEurope }) }
  const context = { directory, scope, purpose, at, promptTokens: () => tokens }
  const route = routeForRequest(request.model, routing, context)
  const able = compacting(route.targets, services, explanation)
  const priced = withoutUnpriced(able, { key, rules, at }, explanation)
  const { organization } = key
  const governed = { ...request.origin, organization, mayStore: turn.mayStore, held: services.held, at }
  const left = governedTargets(priced, governed, explanation)
  const targets: Targets = route.onlyFirst ? [left[0]] : left
  explanation?.ordered(targets, { rules: { sort: 'order', sticky: 'none' }, costOf: () => undefined })
  const asked = { key, rules, at, targets, promptTokens: tokens, abandoned: { input: tokens } }
  return {
    admission: admitOperation({ ...asked, most: (target) => mostAt(target, request, at) }, services.admission),
    targets,
    rules: route.rules,
  }
}

/** The targets that can compact. */
function compacting(targets: Targets, { directory }: Services, explanation?: Explanation): Targets {
  const [first, ...others] = targets.filter(({ provider }) => provider.compact)
  for (const target of targets) if (!target.provider.compact) explanation?.skip(target, 'able', 'compacts nothing')
  if (first) return [first, ...others]
  const able = [...directory.providers.values()].filter((one) => one.compact && one.missing.length === 0)
  const names = able.map(({ slug }) => `${slug}/<model>`).join(', ')
  const who = names === '' ? 'no provider that is configured can' : `these can: ${names}`
  const message = `'${targetId(targets[0])}' cannot compact conversations; ${who}.`
  throw new RouterError('invalid_request', message, { param: 'model' })
}

/** Nothing limits what is written but the model. */
function mostAt(target: Target, request: NeutralRequest, at: number): MostUsed {
  const call = boundedCall(request, at)
  const output = longestOutput(target)
  return { usage: { input: promptBound(call, target), output }, nanoUsd: costBound(call, target, output) }
}

type Compacting = OpenedCall & { media: CallMedia; limits: AttemptLimits }

async function compactAt(target: Target, asked: Compacting, services: Services): Promise<Result> {
  const state = { sent: false }
  try {
    const httpClient = await clientByPlugins(services.httpClient, target, asked.plugins)
    const own = { ...services, httpClient }
    const compacted = await compactOnce(target, { ...asked, state }, own).catch((thrown: unknown) => {
      if (!asked.turn.mustResend(asRouterError(thrown), target.provider)) throw thrown
      return compactOnce(target, { ...asked, state }, own)
    })
    return { dropped: [], compacted }
  } catch (thrown) {
    return { dropped: [], error: withoutSecretsOf(target.provider, asRouterError(thrown)), sent: state.sent }
  }
}

async function compactOnce(
  target: Target,
  { state, limits, ...asked }: Compacting & { state: { sent: boolean } },
  { httpClient, answerBounds: bounds }: Services,
): Promise<Compacted> {
  const { provider } = target
  const { signal, forwardedHeaders = [] } = asked.call
  const whole = await conversationBody(target, asked)
  const path = provider.compact?.path ?? ''
  const onSent = () => {
    state.sent = true
  }
  const outgoing = { path, body: compactedBody(whole), signal, forwardedHeaders, bounds, onSent, limits }
  const body = await requestJson(target, outgoing, httpClient)
  const counts = isObject(body.usage)
    ? await readUsage(provider, { service_tier: body.service_tier, ...body.usage })
    : {}
  const usage = mergeUsage({}, counts)
  if (Array.isArray(body.output)) return { body, usage }
  const message = 'The provider sent a compacted conversation without `output`.'
  throw withBilled(new RouterError('provider_unreadable', message, { provider: provider.slug }), usage)
}

function withCost(body: JsonObject, costUsd: number | undefined): JsonObject {
  if (costUsd === undefined || !isObject(body.usage)) return body
  return { ...body, usage: { ...body.usage, cost: costUsd } }
}
