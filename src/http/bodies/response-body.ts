import type { ServerResponse } from 'node:http'
import type { CallResponse } from '../../call/types.ts'
import { collectPassed } from '../../runtime/collect.ts'
import type { Response } from '../app.ts'
import { addHeaders, headersOf, respond } from '../respond.ts'

/** When to stop waiting for a client. */
export type DeliveryLimits = {
  /** Aborted when the call must end. */
  signal: AbortSignal
  /** How long a client may leave pending data unread before it counts as disconnected. Milliseconds. */
  idleMs: number
  /** The text sent when a stream that has begun is silent for this long. Milliseconds. */
  keepAlive?: { ms: number; text: string }
}

/** A comment, which readers of server-sent events ignore. */
export const comment = ': keep-alive\n\n'

/** Sends a response as fast as the client reads it; resolves when all of it is sent, or the client has disconnected. */
export async function deliver(
  response: Response,
  { headers, body, mediaType }: CallResponse,
  limits: DeliveryLimits,
): Promise<void> {
  addHeaders(response, headers)
  if (typeof body === 'string') respond(response, 200, body, mediaType)
  else {
    const own = mediaType === undefined ? streamHeaders : { 'content-type': mediaType }
    for (const [name, value] of Object.entries({ ...headersOf(response), ...own })) {
      response.setHeader(name, value)
    }
    const { keepAlive, ...others } = limits
    await stream(response, body, mediaType === undefined ? limits : others)
    response.end()
  }
  if (response.writableLength > 0) await clientRead(response, 'finish', limits)
  if (response.writableLength > 0) response.destroy()
}

const streamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no',
}

async function stream(
  response: ServerResponse,
  body: AsyncIterable<string | Uint8Array>,
  limits: DeliveryLimits,
): Promise<void> {
  const { keepAlive } = limits
  const sendKeepAlive = () => {
    // A client that does not read needs no more data.
    if (keepAlive && !response.closed && !response.writableNeedDrain) response.write(keepAlive.text)
  }
  let timer: NodeJS.Timeout | undefined
  try {
    for await (const text of body) {
      if (response.closed) break
      // Not before the first event: until then an error still has its own status.
      if (keepAlive) timer = timer?.refresh() ?? setInterval(sendKeepAlive, keepAlive.ms)
      if (!response.write(text)) await clientRead(response, 'drain', limits)
      if (typeof text !== 'string') collectPassed(text.length)
    }
  } finally {
    clearInterval(timer)
  }
}

/** Resolves when the client has read more or disconnected, or a moment after the call must end. */
function clientRead(
  response: ServerResponse,
  event: 'drain' | 'finish',
  { signal, idleMs }: DeliveryLimits,
): Promise<void> {
  if (response.closed) return Promise.resolve()
  const { promise, resolve } = Promise.withResolvers<void>()
  let timer: NodeJS.Timeout | undefined
  const endSoon = () => {
    timer = setTimeout(resolve, lastMomentMs)
  }
  response.once(event, resolve).once('close', resolve)
  // Node restarts this timeout whenever the socket takes data, so a slow client of a large response is not cut off.
  response.setTimeout(idleMs, () => response.destroy())
  if (signal.aborted) endSoon()
  else signal.addEventListener('abort', endSoon, { once: true })
  return promise.finally(() => {
    clearTimeout(timer)
    signal.removeEventListener('abort', endSoon)
    response.removeAllListeners('timeout').setTimeout(0)
    response.off(event, resolve).off('close', resolve)
  })
}

/** Time for the last event of an aborted call. */
const lastMomentMs = 1_000
