import type { JsonObject } from '../../core/json.ts'

/** One event of this API as the text of a server-sent event. */
export function named(event: JsonObject): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}
