import { setImmediate } from 'node:timers/promises'

/** Lets other calls have a turn of the event loop before work of this size, in characters or bytes, where it is long. */
export async function turnFor(size: number): Promise<void> {
  if (size > long) await setImmediate()
}

const long = 256 * 1024
