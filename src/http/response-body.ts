import type { ServerResponse } from 'node:http'
import type { Outgoing } from '../line/gateway.ts'

/** When a client is not waited for any longer. */
export type DeliveryLimits = {
  /** Aborted when the call must end. */
  signal: AbortSignal
  /** How long a client may read nothing of what waits for it: then it is taken to be gone. Milliseconds. */
  idleMs: number
  /** What is said in the silence of a stream that has begun, and after how long. Milliseconds. */
  keepAlive?: { ms: number; text: string }
}

/** A line that readers of events pass over. */
export const comment = ': keep-alive\n\n'

/** Sends an answer as fast as the client reads it; resolves when all of it has left the process, or the client has. */
export async function deliver(
  response: ServerResponse,
  { headers, body }: Outgoing,
  limits: DeliveryLimits,
): Promise<void> {
  setHeaders(response, headers)
  if (typeof body === 'string') {
    response.setHeader('content-type', 'application/json; charset=utf-8')
    response.end(body)
  } else {
    response.setHeader('content-type', 'text/event-stream; charset=utf-8')
    response.setHeader('cache-control', 'no-cache')
    response.setHeader('x-accel-buffering', 'no')
    await stream(response, body, limits)
    response.end()
  }
  if (!response.writableFinished) await read(response, 'finish', limits)
  if (!response.writableFinished) response.destroy()
}

/** Sets headers whatever their values: names that clients choose can have any characters, and any length. */
export function setHeaders(response: ServerResponse, headers: Outgoing['headers']): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, headerText(value))
}

async function stream(response: ServerResponse, body: AsyncIterable<string>, limits: DeliveryLimits): Promise<void> {
  const { keepAlive } = limits
  const speak = () => {
    // A client that does not read needs no more to read.
    if (keepAlive && !response.closed && !response.writableNeedDrain) response.write(keepAlive.text)
  }
  let timer: NodeJS.Timeout | undefined
  try {
    for await (const text of body) {
      if (response.closed) break
      // Not before the first words: until then a failure still has a status of its own.
      if (keepAlive) timer = timer?.refresh() ?? setInterval(speak, keepAlive.ms)
      if (!response.write(text)) await read(response, 'drain', limits)
    }
  } finally {
    clearInterval(timer)
  }
}

/** Longer than all that routers write; Node's own limit for all headers together is 16 KiB. Characters. */
const longestHeader = 2_000

function headerText(text: string): string {
  const sendable = text.toWellFormed().replace(/[^\x20-\x7e]/gu, encodeURIComponent)
  return sendable.length > longestHeader ? `${sendable.slice(0, longestHeader)}...` : sendable
}

/** Until the client has read on; until it has left, or is taken to be gone; or a moment after the call must end. */
function read(response: ServerResponse, event: 'drain' | 'finish', { signal, idleMs }: DeliveryLimits): Promise<void> {
  if (response.closed) return Promise.resolve()
  const { promise, resolve } = Promise.withResolvers<void>()
  let last: NodeJS.Timeout | undefined
  const hurry = () => {
    last = setTimeout(resolve, lastMomentMs)
  }
  response.once(event, resolve).once('close', resolve)
  // Node counts what the socket takes, so that a large reply to a slow client is not taken for a standstill.
  response.setTimeout(idleMs, () => response.destroy())
  if (signal.aborted) hurry()
  else signal.addEventListener('abort', hurry, { once: true })
  return promise.finally(() => {
    clearTimeout(last)
    signal.removeEventListener('abort', hurry)
    response.removeAllListeners('timeout').setTimeout(0)
    response.off(event, resolve).off('close', resolve)
  })
}

/** For the last words of a call that must end. */
const lastMomentMs = 1_000
