import type { ClientApi, Counting } from '../../api/client-api.ts'
import { RouterError } from '../../core/errors.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import { estimatePromptTokens } from '../../money/meter.ts'
import { andThen } from '../../runtime/maybe-promise.ts'
import { requestJson } from '../../upstream/provider-answer.ts'
import { admitFree, foreseen } from '../admission/admission.ts'
import { speaksSameFormat, translationOf } from '../attempt/choose-translation.ts'
import { bodyToSend, resending } from '../attempt/provider-call.ts'
import { comparing } from '../targets/unable-targets.ts'
import { unstreamed } from './compact.ts'
import { type ConversationKind, conversationIn, preparedFor } from './conversation.ts'

/** The tokens of a prompt, as the provider counts them or by our own estimate. */
type Count = { count: JsonObject & { input_tokens: number; estimated?: true } }

/**
 * Returns the kind of conversations whose input tokens are counted: `{input_tokens}` as the provider counts them if it can, else our
 * estimate with `estimated: true`. Nothing is generated, so nothing is charged and no row is written, but rate limits count the request.
 */
export function countKind(clientApi: ClientApi): ConversationKind<Count> {
  const counting = countingOf(clientApi)
  const shared = conversationIn(countable(clientApi, counting))
  return {
    ...shared,
    operation: 'chat',
    isFree: true,
    read: async (body, context) => unstreamed(await shared.read(body, context)),
    reserve(applicant, services) {
      const { request } = applicant.read
      const promptTokens = estimatePromptTokens(request)
      // The target that would serve the call counts its tokens.
      return andThen(foreseen({ ...applicant, request }, services), (expected) =>
        andThen(admitFree({ ...applicant, promptTokens }, services), (free) => ({ ...free, ...expected })),
      )
    },
    serve(admitted, services) {
      const { call, read, admission, explanation } = admitted
      const prepared = preparedFor(admitted, clientApi, services)
      const { forwardedHeaders = [] } = call
      return {
        canTake: comparing(read.request, admission.promptTokens),
        async ask(target, attempt) {
          const { provider } = target
          if (!provider.count || !speaksSameFormat(target, clientApi)) {
            return { count: { input_tokens: estimatePromptTokens(read.request), estimated: true } }
          }
          const { path } = provider.count
          return await resending(read.turn, target, async () => {
            const translation = translationOf(target, prepared)
            const body = counting.body(await bodyToSend(target, prepared, { translation, attempt }))
            const outgoing = { ...attempt, path, body, forwardedHeaders }
            const answer = await requestJson(target, outgoing, await attempt.client())
            return { count: countIn(answer.body, provider.slug), exhaustedMs: answer.exhaustedMs }
          })
        },
        reportedModel: () => undefined,
        measure: () => ({ usage: {}, estimated: false }),
        async reply({ answer, settlement, headers, ...attempt }) {
          await settlement.complete({ ...attempt, measured: { usage: {}, estimated: false } })
          const written = counting.write(answer.count)
          return { headers, body: JSON.stringify(explanation ? { ...written, router: explanation.facts() } : written) }
        },
      }
    },
    plugins: { ...shared.plugins, operation: 'count' },
  }
}

function countIn(body: JsonObject, provider: string): Count['count'] {
  const { input_tokens } = body
  if (typeof input_tokens === 'number') return { ...body, input_tokens }
  const message = 'The provider sent a count without `input_tokens`.'
  throw new RouterError('provider_unreadable', message, { provider })
}

/** Returns the API for requests that are only counted: they may leave out what only generating needs. */
function countable(clientApi: ClientApi, { defaults }: Counting): ClientApi {
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
