import { setImmediate } from 'node:timers/promises'

/** Lets other calls have a turn of the event loop before work of this size, in characters or bytes, where it is long. */
export function turnFor(size: number): Promise<void> | undefined {
  return size > long ? setImmediate() : undefined
}

const long = 256 * 1024
