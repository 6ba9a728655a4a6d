import { isObject, type JsonObject } from '../../core/json.ts'
import type { NeutralRequest } from '../../core/request.ts'

/** The container that a message was made in, and the message itself where it is part of a thread. */
export function heldIds({ id, container }: JsonObject, { origin }: NeutralRequest): string[] {
  const ids = [isObject(container) ? container.id : undefined, isObject(origin.body.thread) ? id : undefined]
  return ids.filter((held) => typeof held === 'string')
}
