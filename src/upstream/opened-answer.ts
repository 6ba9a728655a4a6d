/**
 * Returns an answer whose first part has been read, as one iteration; that part is not kept once it is taken. A reader that ends early
 * closes the connection, also while it waits for more: a generator that waits would end only with the next part.
 */
export function openedAnswer<Part>(
  first: Part,
  rest: AsyncGenerator<Part, void>,
  { discard }: { discard(): void },
): AsyncIterableIterator<Part, void> {
  let unread: Part | undefined = first
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    next() {
      if (unread === undefined) return rest.next()
      const value = unread
      unread = undefined
      return Promise.resolve({ done: false, value })
    },
    return() {
      discard()
      return rest.return()
    },
  }
}
