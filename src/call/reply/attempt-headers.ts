import { withoutSecrets } from '../../core/secrets.ts'
import { targetId } from '../../manifest/target.ts'
import type { AnsweredCall } from '../call-kind.ts'

/** Names the model that served, or was tried last, the number of attempts, and the fields that were left out. */
export function attemptHeaders(
  { target, attempts, dropped }: Pick<AnsweredCall, 'target' | 'attempts' | 'dropped'>,
  served: AnsweredCall['served'],
): Record<string, string> {
  const headers: Record<string, string> = {
    'x-router-model': withoutSecrets(servedId({ target, served })).slice(0, maxLength).toWellFormed(),
    'x-router-attempts': String(attempts),
  }
  if (dropped.length > 0) headers['x-router-dropped'] = dropped.join(',')
  return headers
}

/** Maximum length of a name in the header: a provider may call a model anything, and longer names are cut. */
const maxLength = 512

/** Returns the model that served, by its name for clients. */
export function servedId({
  target,
  served,
}: Pick<AnsweredCall, 'target'> & { served?: AnsweredCall['served'] }): string {
  return targetId(served ? { ...target, model: served.model } : target)
}
