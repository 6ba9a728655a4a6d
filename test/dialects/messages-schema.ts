import type { JsonObject } from '../../src/core/json.ts'
import { schemaMissing, violations } from '../api/messagesSchema.ts'

/** Why the published schema of Messages cannot be read here; undefined when it can. */
export const messagesSchemaMissing = schemaMissing

/** What is wrong with a request for Messages by its published schema; an empty list when nothing is. */
export function messagesViolations(request: JsonObject): string[] {
  // The newest schema no longer knows these; families before 4.7 still take them.
  const { temperature, top_p, top_k, ...body } = request
  return messagesSchemaMissing ? [] : violations('MessageCreateParams', body)
}
