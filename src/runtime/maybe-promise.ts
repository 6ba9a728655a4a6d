/** A value that is there at once, or later. What is there at once costs no promise, and no turn of the event loop. */
export type MaybePromise<Value> = Value | Promise<Value>

/** Continues with a value at once, or when its promise resolves. */
export function andThen<T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(next) : next(value)
}
