import { asRouterError, RouterError } from '../../core/errors.ts'
import { type TraceContext, traceHeaders } from '../../core/trace.ts'
import { andThen } from '../../manifest/run/run-mapping.ts'
import { type Target, targetId } from '../../manifest/target.ts'
import type { CallPlugins } from '../../plugin/call-plugins.ts'
import type { MaybePromise } from '../../plugin/contract.ts'
import { pluginTarget } from '../../plugin/plugin-target.ts'
import type { Trial } from '../../routing/types.ts'
import { withoutSecretsOf } from '../../upstream/auth/secrets.ts'
import type { HttpClient } from '../../upstream/http/types.ts'
import type { Answered, AttemptResult, Serving } from '../call-kind.ts'
import type { AdmittedCall, AttemptContext, Services } from '../types.ts'

/** Makes the attempts of a call: what its kind asks a target, with everything that each attempt has. */
export function attemptOf<Answer extends object>(
  admitted: AdmittedCall,
  { ask, acts = false }: Pick<Serving<Answer>, 'ask' | 'acts'>,
  { answerBounds: bounds }: Pick<Services, 'answerBounds'>,
): Trial<AttemptResult<Answer>>['attempt'] {
  const { call, route, strict, admission, plugins, nextClient } = admitted
  const { id: idempotencyKey, signal } = call
  const { ignored: ignoredPreferences = [] } = route
  return async (target, limits) => {
    let lost: readonly string[] = []
    let sent = false
    const tracedClient = nextClient()
    let client: MaybePromise<HttpClient> | undefined
    const attempt: AttemptContext = {
      ...{ limits, signal, bounds, idempotencyKey, once: acts },
      onSent() {
        sent = true
      },
      report(names) {
        lost = names
      },
      beforeSend(body) {
        if (strict && lost.length > 0) throw lossRefused(lost, target)
        return admission.cover(target, body)
      },
      client() {
        client ??= withPluginHeaders(tracedClient, target, plugins)
        return client
      },
    }
    try {
      const answer: Answered<Answer> = await ask(target, attempt)
      return { ...answer, dropped: [...lost, ...ignoredPreferences] }
    } catch (thrown) {
      const error = withoutSecretsOf(target.provider, asRouterError(thrown))
      return { dropped: [...lost, ...ignoredPreferences], error, sent }
    }
  }
}

function lossRefused(dropped: readonly string[], target: Target): RouterError {
  const fields = dropped.join(', ')
  const message = `${targetId(target)} does not support: ${fields}. Remove the fields, or send the request without x-router-strict and provider.require_parameters.`
  return new RouterError('loss_refused', message, { param: dropped[0] ?? '' })
}

/** Returns the client for each attempt of a call, in their order: it sends the provider the attempt's place in the trace. */
export function attemptClients(httpClient: HttpClient, trace: TraceContext | undefined): () => HttpClient {
  if (!trace) return () => httpClient
  const base = httpClient.base ?? httpClient
  let attempt = 0
  return () => {
    const own = traceHeaders(trace, ++attempt)
    return {
      ...httpClient,
      base,
      send: (request) => httpClient.send({ ...request, headers: { ...request.headers, ...own } }),
    }
  }
}

/** Adds the headers that plugins send to a target besides the router's own. Throws RouterError. */
function withPluginHeaders(
  httpClient: HttpClient,
  target: Target,
  plugins: CallPlugins | undefined,
): MaybePromise<HttpClient> {
  if (!plugins?.have('send')) return httpClient
  return andThen(plugins.send(pluginTarget(target, Date.now())), (headers) => {
    if (Object.keys(headers).length === 0) return httpClient
    return {
      ...httpClient,
      send: (request) => httpClient.send({ ...request, headers: { ...headers, ...request.headers } }),
    }
  })
}
