import type { ClientApi, Counting } from '../api/client-api.ts'
import { readRouting, withFirstModel } from '../api/routing-fields.ts'
import { asRouterError, RouterError } from '../core/errors.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import { withLoans } from '../lending/with-loans.ts'
import type { Target } from '../manifest/target.ts'
import { estimatePromptTokens } from '../money/meter.ts'
import { forChat } from '../routing/resolve.ts'
import { routeForRequest } from '../routing/route-for-request.ts'
import { openCallMedia } from '../upstream/inline.ts'
import { requestJson } from '../upstream/provider-answer.ts'
import { withoutSecretsOf } from '../upstream/secrets.ts'
import { admitUncharged } from './admission.ts'
import type { Call, CallResponse } from './call.ts'
import { speaksSameFormat } from './choose-translation.ts'
import { conversationBody } from './conversation-body.ts'
import { type OpenedCall, type Services, startOf } from './gateway.ts'
import { governedTargets } from './governed-targets.ts'
import { readInTurn } from './let-in.ts'
import { clientByPlugins } from './plugin-targets.ts'
import { pluginsOf } from './plugins-of-call.ts'
import { refuseManyUnknown } from './unknown-fields.ts'
import { changedByPlugins } from './with-plugins.ts'

/**
 * Counts the input tokens of a request: `{input_tokens}` as the provider counts them if it can, else our estimate with
 * `estimated: true`. Nothing is generated, so nothing is charged and no row is written, but rate limits count the request.
 * Throws RouterError.
 */
export async function countTokens(call: Call, services: Services): Promise<CallResponse> {
  const authenticated = services.authenticate(call.secret)
  const body = await readInTurn(authenticated, call, services)
  // A slow upload must not outlive its key.
  const key = services.revalidate(authenticated)
  const turn = services.conversations.open(countable(call.clientApi), key.organization, withFirstModel(body))
  refuseManyUnknown(turn.request, services.maxUnknownFields)
  const request = services.signatures.restore(key, turn.request)
  const routing = readRouting(request.origin.body)
  const start = startOf(call, key, request)
  const { headers, signal } = call
  const told = { key, headers, signal, body: () => request.origin.body, isCounted: true }
  const plugins = pluginsOf(start, told, services)
  const opened = { call, authenticated, key, turn, request, routing, start, explanation: undefined, plugins }
  return await count(await changedByPlugins(opened, services), services)
}

async function count(opened: OpenedCall, services: Services): Promise<CallResponse> {
  const { call, key, turn, request, routing, start, plugins, inEurope } = opened
  const { organization } = key
  const rules = services.rulesOf(organization)
  const scope = { rules, accessList: key.accessList }
  const { held, directory } = services
  const { at } = start
  const purpose = { ...forChat(request), ...(inEurope && { inEurope }) }
  const context = { directory, scope, purpose, at, promptTokens: () => estimatePromptTokens(request) }
  const { targets } = routeForRequest(request.model, routing, context)
  const governed = { ...request.origin, organization, mayStore: turn.mayStore, held, at }
  const [target] = governedTargets(targets, governed)
  const { headers, settle } = await withLoans(() => admitUncharged({ key, rules }, services.admission))
  try {
    const httpClient = await clientByPlugins(services.httpClient, target, plugins)
    const counted = await countAt(target, opened, { ...services, httpClient })
    return {
      headers: { ...plugins?.headers, ...headers },
      body: JSON.stringify(countingOf(call.clientApi).write(counted)),
    }
  } catch (thrown) {
    throw withoutSecretsOf(target.provider, asRouterError(thrown)).withHeaders(headers)
  } finally {
    settle(0)
  }
}

async function countAt(
  target: Target,
  { call, request, turn, isRewritten }: OpenedCall,
  { httpClient, answerBounds: bounds, media: fetching }: Pick<Services, 'httpClient' | 'answerBounds' | 'media'>,
): Promise<JsonObject & { input_tokens: number; estimated?: true }> {
  const { provider } = target
  const { clientApi, signal, forwardedHeaders = [], timeoutMs } = call
  const limits = timeoutMs === undefined ? {} : { totalMs: timeoutMs }
  if (!provider.count || !speaksSameFormat(target, clientApi)) {
    return { input_tokens: estimatePromptTokens(request), estimated: true }
  }
  const { path } = provider.count
  const media = openCallMedia(fetching, { param: 'messages', signal })
  const ask = async () => {
    const body = await conversationBody(target, { call, request, turn, media, isRewritten })
    const counted = countingOf(clientApi).body(body)
    return await requestJson(target, { path, body: counted, signal, forwardedHeaders, bounds, limits }, httpClient)
  }
  const counted = await ask().catch((thrown: unknown) => {
    if (!turn.mustResend(asRouterError(thrown), provider)) throw thrown
    return ask()
  })
  const { input_tokens } = counted
  if (typeof input_tokens === 'number') return { ...counted, input_tokens }
  const message = 'The provider sent a count without `input_tokens`.'
  throw new RouterError('provider_unreadable', message, { provider: provider.slug })
}

/** The API for requests that are only counted: they may leave out what only generating needs. */
function countable(clientApi: ClientApi): ClientApi {
  const { defaults } = countingOf(clientApi)
  const read = (body: unknown) => {
    if (!isObject(body)) return clientApi.read(body)
    return { ...clientApi.read({ ...defaults, ...body }), origin: { api: clientApi.api, body } }
  }
  return { ...clientApi, read }
}

function countingOf({ api, counting }: ClientApi): Counting {
  if (!counting) throw new Error(`requests of ${api} are not counted`)
  return counting
}
