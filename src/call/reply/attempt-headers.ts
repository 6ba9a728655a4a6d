import { isRetired, type RetiredNotice } from '../../core/models/model.ts'
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
  const retired = retiredTarget(target)
  if (retired) headers['x-router-retired'] = retiredText(retired)
  return headers
}

/** Describes a target whose announced retirement has come; undefined for all others. */
export function retiredTarget(target: AnsweredCall['target']): RetiredNotice | undefined {
  const { entry, provider } = target
  if (entry?.shutdown === undefined || !isRetired(entry, Date.now())) return undefined
  const { shutdown, successor } = entry
  return { model: targetId(target), shutdown, ...(successor && { successor: `${provider.slug}/${successor}` }) }
}

/** Writes a notice as the value of a header: the day, and the model to call instead. */
function retiredText({ shutdown, successor }: RetiredNotice): string {
  return successor === undefined ? shutdown : `${shutdown}; successor=${successor}`
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
