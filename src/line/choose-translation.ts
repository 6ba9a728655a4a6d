import type { ClientApi } from '../api/client-api.ts'
import type { Target } from '../manifest/target.ts'
import type { TargetedCall, Translation } from './call.ts'
import { otherFormatTranslation } from './other-format.ts'
import { sameFormatTranslation } from './same-format.ts'

/** The translation for one attempt: bodies of the same format are edited, all others are translated by mappings. */
export function translationOf(target: Target, prepared: TargetedCall): Translation {
  const isEdited = !prepared.isRewritten && speaksSameFormat(target, prepared.call.clientApi)
  if (!isEdited) return otherFormatTranslation(target, prepared)
  const { request, forwardedHeaders, ...answer } = sameFormatTranslation(target, prepared)
  // What plugins may change of an answer is written from its neutral form.
  if (prepared.plugins?.mayChangeAnswer) {
    return { ...otherFormatTranslation(target, prepared), request, forwardedHeaders }
  }
  return { request, forwardedHeaders, ...answer }
}

/** Whether a target's own format is that of the client API. */
export function speaksSameFormat({ provider }: Pick<Target, 'provider'>, clientApi: ClientApi): boolean {
  return provider.sameAs === clientApi.api
}
