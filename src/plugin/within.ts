/** What a promise resolves with. Rejects with an Error of this message when that takes longer. */
export async function within<Value>(promise: Value | Promise<Value>, ms: number, message: string): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(message)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
