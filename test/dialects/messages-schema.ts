import type { JsonObject } from '../../src/core/json.ts'
import { schemaMissing, violations } from '../api/messagesSchema.ts'

/** Why the published schema of Messages cannot be read here; undefined when it can. */
export const messagesSchemaMissing = schemaMissing

/** The violations of the published schema in a request for Messages. */
export function messagesViolations(request: JsonObject): string[] {
  // The newest schema no longer knows these; families before 4.7 still take them.
  const { temperature, top_p, top_k, ...body } = request
  return messagesSchemaMissing ? [] : violations('MessageCreateParams', body)
}
