import type { RouterError } from '../../core/errors.ts'

/** The start of a streamed response: until it has begun, a refusal is a status of its own, and no event. */
export class StreamStart {
  hasBegun: boolean

  constructor(hasBegun: boolean) {
    this.hasBegun = hasBegun
  }

  /** Returns a piece that is sent now. */
  sent(piece: string): string {
    if (piece !== '') this.hasBegun = true
    return piece
  }

  /** Throws an error by which a plugin ends the call, where the client can get its status. */
  requireEvent(error: RouterError): void {
    if (this.takesStatus(error)) throw error
  }

  /** Checks for an error by which a plugin ends the call, whose status the client can still get. */
  takesStatus({ pluginRefusal, code }: RouterError): boolean {
    return !this.hasBegun && (pluginRefusal !== undefined || code === 'plugin_failed')
  }
}

type Pieces = AsyncGenerator<string, void>

/**
 * Returns a stream that plugins may refuse when its first piece is there, or after a time in any case: the response begins then. Rejects
 * with the refusal of a stream that has not begun.
 */
export async function begunStream(pieces: Pieces, start: StreamStart, afterMs: number): Promise<Pieces> {
  const first = pieces.next()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, afterMs)
  })
  try {
    await Promise.race([first, late])
  } finally {
    clearTimeout(timer)
  }
  start.hasBegun = true
  return following(first, pieces)
}

async function* following(first: Promise<IteratorResult<string, void>>, pieces: Pieces): Pieces {
  try {
    for (let next = await first; !next.done; next = await pieces.next()) yield next.value
  } finally {
    await pieces.return()
  }
}

/**
 * Yields batches as they arrive, and an empty one when the time has passed that `dueMs` returns: what plugins keep back then has to be
 * sent.
 */
export async function* withDueBatches<Item>(
  batches: AsyncIterable<Item[]>,
  dueMs: () => number | undefined,
): AsyncGenerator<Item[], void> {
  const source = batches[Symbol.asyncIterator]()
  let pending: Promise<IteratorResult<Item[]>> | undefined
  try {
    for (;;) {
      pending ??= source.next()
      const next = await unlessDue(pending, dueMs())
      if (next === 'due') {
        yield []
        continue
      }
      pending = undefined
      if (next.done) return
      yield next.value
    }
  } finally {
    const closing = source.return?.()
    // A batch that is still waited for is given up.
    if (!pending) await closing
    else for (const promise of [pending, closing]) promise?.catch(() => {})
  }
}

async function unlessDue<Value>(pending: Promise<Value>, ms: number | undefined): Promise<Value | 'due'> {
  if (ms === undefined) return await pending
  let timer: NodeJS.Timeout | undefined
  const due = new Promise<'due'>((resolve) => {
    timer = setTimeout(resolve, Math.ceil(ms), 'due')
  })
  try {
    return await Promise.race([pending, due])
  } finally {
    clearTimeout(timer)
  }
}
