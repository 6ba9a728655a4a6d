import type { Response } from '../app.ts'
import type { ServerContext } from '../context.ts'
import type { RunningRequest } from '../running-requests.ts'
import { deliver } from './response-body.ts'

/** A body that is sent piece by piece; without a media type the pieces are server-sent events. */
export type StreamedBody = {
  body: AsyncIterator<string, void>
  mediaType?: string | undefined
  endless?: boolean | undefined
}

/** Sends a body as fast as the client reads it, until its end; one that is cut off is not made to look whole. */
export async function sendBody(
  response: Response,
  { body, mediaType, endless = false }: StreamedBody,
  { own, context, isHead }: { own: RunningRequest; context: ServerContext; isHead: boolean },
): Promise<void> {
  const { running, patienceMs: idleMs } = context
  if (endless) {
    running.beginEndless(own)
    // It ends when the router does: the connection has no time left for another request.
    response.shouldKeepAlive = false
  }
  running.beginStream(own)
  const { signal } = own
  try {
    const pieces = isHead ? nothing() : untilAborted(body, signal, endless)
    const answer = { headers: {}, body: pieces, ...(mediaType !== undefined && { mediaType }) }
    await deliver(response, answer, { signal, idleMs })
  } catch (thrown) {
    if (!response.headersSent) throw thrown
    if (!signal.aborted) context.log.warn({ err: thrown }, 'an answer was cut off')
    response.destroy()
  } finally {
    await body.return?.()
  }
}

/** Ends an endless body when the request is aborted; throws the reason where a body would look whole that is not. */
async function* untilAborted(
  body: StreamedBody['body'],
  signal: AbortSignal,
  endless: boolean,
): AsyncGenerator<string, void> {
  const aborted = new Promise<'aborted'>((resolve) => {
    if (signal.aborted) resolve('aborted')
    else signal.addEventListener('abort', () => resolve('aborted'), { once: true })
  })
  for (;;) {
    const next = await Promise.race([body.next(), aborted])
    if (next === 'aborted' && !endless) throw signal.reason
    if (next === 'aborted' || next.done) return
    yield next.value
  }
}

/** HEAD is answered as GET is, without the body. */
async function* nothing(): AsyncGenerator<string, void> {}
