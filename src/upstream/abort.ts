/** Settles as `work` does, or rejects with the reason of a signal that is aborted first. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const abort = () => reject(signal.reason)
  // The one that loses the race may reject later, when nobody listens any more.
  aborted.catch(() => {})
  work.catch(() => {})
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([aborted, work])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
