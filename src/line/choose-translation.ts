import type { ClientApi } from '../api/client-api.ts'
import type { Target } from '../manifest/target.ts'
import type { TargetedCall, Translation } from './call.ts'
import { otherFormatTranslation } from './other-format.ts'
import { sameFormatTranslation } from './same-format.ts'

/** The translation for one attempt: bodies of the same format are edited, all others are translated by mappings. */
export function translationOf(target: Target, prepared: TargetedCall): Translation {
  return speaksSameFormat(target, prepared.call.clientApi)
    ? sameFormatTranslation(target, prepared)
    : otherFormatTranslation(target, prepared)
}

/** Whether a target's own format is that of the client API. */
export function speaksSameFormat({ provider }: Pick<Target, 'provider'>, clientApi: ClientApi): boolean {
  return provider.sameAs === clientApi.api
}
