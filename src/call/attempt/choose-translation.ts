import type { ClientApi } from '../../api/client-api.ts'
import type { NeutralRequest } from '../../core/request.ts'
import { streamsWhole } from '../../manifest/provider.ts'
import { needsFunctions } from '../../manifest/run/client-functions.ts'
import { chatEndpoint } from '../../manifest/run/run-mapping.ts'
import type { Target } from '../../manifest/target.ts'
import { otherFormatTranslation } from './other-format.ts'
import { sameFormatTranslation } from './same-format.ts'
import type { TargetedCall, Translation } from './types.ts'

/** Chooses the translation for one attempt: bodies of the same format are edited, all others are translated by mappings. */
export function translationOf(target: Target, asked: TargetedCall): Translation {
  const prepared = askedAtOnce(target, asked)
  const isEdited =
    !prepared.isRewritten &&
    !(prepared.request.stream && chatEndpoint(target.provider).stream.cumulative) &&
    speaksSameFormat(target, prepared.call.clientApi) &&
    !needsFunctions(chatEndpoint(target.provider), prepared.request)
  if (!isEdited) return otherFormatTranslation(target, prepared)
  const own = sameFormatTranslation(target, prepared)
  if (!prepared.plugins?.mayChangeAnswer) return own
  // Changes of plugins to an answer are written from its neutral form: a stream may be changed at any event.
  const changed = () => otherFormatTranslation(target, prepared)
  if (!prepared.request.stream) return Object.assign(own, { changed })
  const { request, forwardedHeaders, clientNames } = own
  return { ...changed(), request, forwardedHeaders, clientNames }
}

/** Returns a call that asks a provider without streams for a whole reply, whatever the client wants: for one choice, which a stream has. */
function askedAtOnce({ provider }: Target, prepared: TargetedCall): TargetedCall {
  if (!prepared.request.stream || !streamsWhole(provider)) return prepared
  const { n, ...request } = prepared.request
  const isOne = n === undefined || n === 1
  return { ...prepared, request: { ...request, stream: false }, ...(!isOne && { isRewritten: true }) }
}

/** Checks whether a call loses its further choices: its stream is made from a whole answer. */
export function losesChoices({ provider }: Target, { stream, n = 1 }: NeutralRequest): boolean {
  return stream === true && n > 1 && streamsWhole(provider)
}

/** Checks whether a target's own format is that of the client API. */
export function speaksSameFormat({ provider }: Pick<Target, 'provider'>, clientApi: ClientApi): boolean {
  return provider.sameAs === clientApi.api
}
