import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { mergeUsage, type ReportedUsage, type Usage } from '../../core/usage.ts'
import type { Provider } from '../provider.ts'
import { andThen, chatEndpoint, runMapping } from './run-mapping.ts'

/** A provider's usage object as counts by class; a result that is not an object counts nothing. */
export function readUsage(provider: Provider, usage: Json): ReportedUsage | Promise<ReportedUsage> {
  const { usage: mapping } = chatEndpoint(provider)
  if (!mapping) return (isObject(usage) ? usage : {}) as ReportedUsage
  return andThen(
    runMapping(provider, 'usage', mapping, usage),
    (counts) => (isObject(counts) ? counts : {}) as ReportedUsage,
  )
}

/** The usage in an answer that cannot be read as a whole, in the places where formats have it; undefined when there is none. */
export async function usageIn(provider: Provider, answer: JsonObject): Promise<Usage | undefined> {
  const reported = [answer.usage, answer.usageMetadata].find(isObject)
  return reported && mergeUsage({}, await readUsage(provider, reported))
}
