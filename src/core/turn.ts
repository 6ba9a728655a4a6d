import { setImmediate } from 'node:timers/promises'

/** Whether work of this size, in characters or bytes, is so long that others should have a turn before it. */
export function isLong(size: number): boolean {
  return size > long
}

/** Lets other calls have a turn of the event loop. */
export function nextTurn(): Promise<void> {
  return setImmediate()
}

const long = 256 * 1024
