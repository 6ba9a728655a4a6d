import type { JsonObject } from '../../core/json.ts'
import type { Operation } from '../../core/operation.ts'
import type { EventHooks, Events } from '../../plugin/event-hooks.ts'

/** Events of an operation as plugins change them. */
export type SeenEvents = {
  take(event: JsonObject): JsonObject[]
  /** Returns the events that were held back of an answer that arrived whole. */
  end(): JsonObject[]
}

export function seenEvents(hooks: EventHooks, operation: Operation): SeenEvents {
  return {
    take: (json) => hooks.take([[{ operation, json }]]).flatMap(jsonOf),
    end: () => jsonOf(hooks.end()),
  }
}

function jsonOf(events: Events): JsonObject[] {
  return events.flatMap((event) => ('json' in event ? [event.json as JsonObject] : []))
}
