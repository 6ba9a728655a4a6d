import type { JsonObject } from '../core/json.ts'

/** An event named by its `type`, as the text of a server-sent event. */
export function writeEvent(event: JsonObject): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}
