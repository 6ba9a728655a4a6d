/** What a promise resolves with. Rejects with this error, or an Error of this message, when that takes longer. */
export async function within<Value>(
  promise: Value | PromiseLike<Value>,
  ms: number,
  late: string | Error,
): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(typeof late === 'string' ? new Error(late) : late), ms)
  })
  try {
    return await Promise.race([promise, over])
  } finally {
    clearTimeout(timer)
  }
}
