import { asRouterError, RouterError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import { type TraceContext, traceHeaders } from '../../core/trace.ts'
import { type Target, targetId } from '../../manifest/target.ts'
import type { CallPlugins } from '../../plugin/call-plugins.ts'
import type { MaybePromise } from '../../plugin/contract.ts'
import { pluginTarget } from '../../plugin/plugin-target.ts'
import { type ServedModel, servedModel } from '../../routing/served-model.ts'
import type { Trial, UnseenUsage } from '../../routing/types.ts'
import { andThen } from '../../runtime/maybe-promise.ts'
import { withoutSecretsOf } from '../../upstream/auth/secrets.ts'
import { Overtime } from '../../upstream/http/overtime.ts'
import type { HttpClient } from '../../upstream/http/types.ts'
import type { AttemptResult, Serving, TargetAnswer } from '../call-kind.ts'
import type { Admission, AdmittedCall, AttemptContext, Services } from '../types.ts'
import { growthOf, requireSameTerms } from './sent-body.ts'

/** Makes the attempts of a call: what its kind asks a target, with everything that each attempt has. */
export function attemptOf<Answer extends object>(
  admitted: AdmittedCall,
  { ask, acts = false, measure, reportedModel }: Pick<Serving<Answer>, 'ask' | 'acts' | 'measure' | 'reportedModel'>,
  { answerBounds: bounds, directory }: Pick<Services, 'answerBounds' | 'directory'>,
): Trial<AttemptResult<Answer>>['attempt'] {
  const { call, route, strict, admission, plugins, nextClient } = admitted
  const { id: idempotencyKey, signal, stop } = call
  const { ignored: ignoredPreferences = [] } = route
  return async (target, limits) => {
    let lost: readonly string[] = []
    let sent = false
    const tracedClient = nextClient()
    const sending = plugins?.have('send') ? new PluginSending(target, plugins, admission) : undefined
    const overtimeMs = admission.overtimeAt(target)
    const overtime = overtimeMs === undefined ? undefined : new Overtime(overtimeMs, stop)
    const begunMs = performance.now()
    const endBy = begunMs + (limits.totalMs ?? Infinity) - earlyMs
    const isCharged = ({ code }: RouterError) =>
      admission.abandonedUsage !== undefined && (code === 'client_gone' || performance.now() >= endBy)
    const read = async (answer: Answer): Promise<UnseenUsage> => ({
      measured: await measure(answer, target, begunMs),
      served: servedModel(target, reportedModel(answer), directory),
    })
    const attempt: AttemptContext = {
      ...{ limits, signal, bounds, idempotencyKey, once: acts, overtime },
      onSent() {
        sent = true
      },
      report(names) {
        lost = names
      },
      beforeSend(body) {
        if (strict && lost.length > 0) throw lossRefused(lost, target)
        return andThen(sending ? sending.edited(body) : body, (sent) => {
          const covering = admission.cover(target, sent)
          return covering ? covering.then(() => sent) : sent
        })
      },
      client: () => (sending ? sending.client(tracedClient) : tracedClient),
    }
    const asking = ask(target, attempt)
    try {
      const answer = overtime ? await unlessOver(asking, overtime, isCharged) : await asking
      return { ...answer, dropped: [...lost, ...ignoredPreferences], overtime }
    } catch (thrown) {
      const error = withoutSecretsOf(target.provider, asRouterError(thrown))
      const servedFor = ({ billedModel }: RouterError) => servedModel(target, billedModel, directory)
      const rest = overtime?.isOpen ? restOf(asking, read, servedFor) : undefined
      const served = error.billed && servedFor(error)
      return {
        dropped: [...lost, ...ignoredPreferences],
        error,
        sent,
        ...(served && { served }),
        ...(rest && { rest }),
      }
    }
  }
}

/**
 * Waits for an answer until the call is over. An answer that would not be charged then is not read on: neither where the call goes on with
 * another target, nor where clients that leave before any output pay nothing.
 */
async function unlessOver<Answer>(
  asking: Promise<TargetAnswer<Answer>>,
  overtime: Overtime,
  isCharged: (error: RouterError) => boolean,
): Promise<TargetAnswer<Answer>> {
  try {
    return await overtime.unlessOver(asking)
  } catch (thrown) {
    if (!overtime.isOpen || isCharged(asRouterError(thrown))) throw thrown
    overtime.cancel()
    return await asking
  }
}

/** Reads an answer in overtime, to the end of that at most, and returns what it used. */
async function restOf<Answer>(
  asking: Promise<TargetAnswer<Answer>>,
  read: (answer: Answer) => Promise<UnseenUsage>,
  servedFor: (error: RouterError) => ServedModel | undefined,
): Promise<UnseenUsage> {
  try {
    return await read(await asking)
  } catch (thrown) {
    const error = asRouterError(thrown)
    return { billed: error.billed, served: servedFor(error) }
  }
}

/** Time by which a timer may be early. Milliseconds. */
const earlyMs = 5

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

/** The `send` hooks of one attempt: headers besides the router's own, and edits of the body. All methods throw RouterError. */
class PluginSending {
  readonly #target: Target
  readonly #plugins: CallPlugins
  readonly #admission: Pick<Admission, 'grow'>
  #headers: Readonly<Record<string, string>> | undefined

  constructor(target: Target, plugins: CallPlugins, admission: Pick<Admission, 'grow'>) {
    this.#target = target
    this.#plugins = plugins
    this.#admission = admission
  }

  /** Returns a body as plugins edit it. */
  edited(body: JsonObject): MaybePromise<JsonObject> {
    return andThen(this.#send(body), ({ body: edited = body }) => {
      if (edited !== body) this.#admission.grow(growthOf(edited, body))
      return edited
    })
  }

  /** Adds the headers of plugins; they are asked for them where no body was sent. */
  client(httpClient: HttpClient): MaybePromise<HttpClient> {
    const asking = this.#headers ?? andThen(this.#send(undefined), ({ headers }) => headers)
    return andThen(asking, (headers) => {
      if (Object.keys(headers).length === 0) return httpClient
      return {
        ...httpClient,
        send: (request) => httpClient.send({ ...request, headers: { ...headers, ...request.headers } }),
      }
    })
  }

  #send(body: JsonObject | undefined) {
    const accept = (edited: JsonObject) => requireSameTerms(edited, body ?? {}, this.#target)
    return andThen(this.#plugins.send(pluginTarget(this.#target, Date.now()), { body, accept }), (sent) => {
      this.#headers = sent.headers
      return sent
    })
  }
}
