/**
 * The values one by one, as a stream of them. A generator that a function makes anew has tables of its own for each call, which V8 keeps,
 * with all of the call that they refer to, until it collects what is old; this one is made once.
 */
export async function* yieldEach<Value>(values: readonly Value[]): AsyncGenerator<Value, void> {
  yield* values
}
