/** Waits for a promise and returns its value. Rejects with this error, or an Error of this message, when that takes longer. */
export function within<Value>(
  promise: Value | PromiseLike<Value>,
  ms: number,
  late: string | (() => Error),
): Promise<Awaited<Value>> {
  return new Promise((resolve, reject) => {
    let isOver = false
    let timer: NodeJS.Timeout | undefined
    const end = () => {
      isOver = true
      clearTimeout(timer)
    }
    Promise.resolve(promise).then(
      (value) => {
        end()
        resolve(value)
      },
      (thrown: unknown) => {
        end()
        reject(thrown)
      },
    )
    // A result that is ready immediately needs no timer, which takes longer than the rest.
    queueMicrotask(() => {
      if (!isOver) timer = setTimeout(() => reject(typeof late === 'string' ? new Error(late) : late()), ms)
    })
  })
}
