import type { JsonObject } from '../../core/json.ts'
import type { Operation } from '../../core/operation.ts'
import type { MaybePromise } from '../../plugin/contract.ts'
import type { EventHooks, Events } from '../../plugin/event-hooks.ts'
import { andThen } from '../../runtime/maybe-promise.ts'

/** Events of an operation as plugins change them. */
export type SeenEvents = {
  take(event: JsonObject): MaybePromise<JsonObject[]>
  /** Returns the events that have been kept back for long enough. */
  due(): MaybePromise<JsonObject[]>
  /** Returns the events that were held back of an answer that arrived whole. */
  end(): MaybePromise<JsonObject[]>
  /** Returns the milliseconds until some have to be sent; undefined where none are kept back. */
  dueMs(): number | undefined
}

export function seenEvents(hooks: EventHooks, operation: Operation): SeenEvents {
  const jsonOfAll = (frames: readonly Events[]) => frames.flatMap(jsonOf)
  return {
    take: (json) => andThen(hooks.take([[{ operation, json }]]), jsonOfAll),
    due: () => andThen(hooks.take([]), jsonOfAll),
    end: () => andThen(hooks.end(), jsonOf),
    dueMs: () => hooks.dueMs,
  }
}

/** Shows plugins the last event of a provider, and returns what the client gets at the end: `last` carries the usage. */
export async function lastEvents(
  end: JsonObject,
  seen: SeenEvents,
): Promise<{ before: JsonObject[]; last: JsonObject[] }> {
  const ends = await seen.take(end)
  const heldBack = await seen.end()
  // Where it was kept back as well, it has come in between.
  const at = heldBack.indexOf(end)
  if (at < 0) return { before: heldBack, last: ends }
  return { before: [...ends, ...heldBack.toSpliced(at, 1)], last: [end] }
}

function jsonOf(events: Events): JsonObject[] {
  return events.flatMap((event) => ('json' in event ? [event.json as JsonObject] : []))
}
