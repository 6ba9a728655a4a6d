import type { ServerResponse } from 'node:http'
import type { CallResponse } from '../../call/types.ts'
import { collectPassed } from '../../runtime/collect.ts'
import type { Response } from '../app.ts'
import type { ServerContext } from '../context.ts'
import { addHeaders, headersOf, respond } from '../respond.ts'
import type { RunningRequest, Taking, Transfer } from '../running-requests.ts'

/** Limits at which a client is given up. */
type DeliveryLimits = {
  /** The request; its signal is aborted when the call must end. */
  running: RunningRequest
  /** Maximum time for which a client may take nothing of pending data before it counts as disconnected. Milliseconds. */
  idleMs: number
  /** Least number of bytes of pending data that it takes in a second, on average over that time. */
  minRate: number
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
  await requireRead(response, limits)
}

/** Waits until a response that has ended is sent; one that its client does not take is cut off. */
export async function requireRead(response: ServerResponse, limits: DeliveryLimits): Promise<void> {
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
  { running, idleMs, minRate }: DeliveryLimits,
): Promise<void> {
  if (response.closed) return Promise.resolve()
  const { signal } = running
  const { promise, resolve } = Promise.withResolvers<void>()
  let timer: NodeJS.Timeout | undefined
  const endSoon = () => {
    timer = setTimeout(resolve, lastMomentMs)
  }
  response.once(event, resolve).once('close', resolve)
  running.transfer = unread(response, running, { idleMs, minRate })
  if (signal.aborted) endSoon()
  else signal.addEventListener('abort', endSoon, { once: true })
  return promise.finally(() => {
    clearTimeout(timer)
    signal.removeEventListener('abort', endSoon)
    running.transfer = undefined
    response.off(event, resolve).off('close', resolve)
  })
}

/**
 * Cuts a client off that takes no byte for a time, or too few over it: a shorter time where others wait for its place. What it takes counts
 * from one wait to the next: a few bytes now and then are enough to end each of them.
 */
function unread(
  response: ServerResponse,
  running: RunningRequest,
  { idleMs, minRate }: Pick<DeliveryLimits, 'idleMs' | 'minRate'>,
): Transfer {
  let last = -1
  let quietMs = 0
  return {
    waited(ms) {
      // Until earlier requests of its connection are answered, nothing can be taken.
      if (!response.socket) return
      const left = unsentBytes(response)
      quietMs = left === last ? quietMs + ms : 0
      last = left
      const taking = takingAfter(response, running, ms)
      const isSlow = taking.bytes < (minRate * taking.ms) / 1_000
      const isOver = quietMs >= idleMs || (isSlow && taking.ms >= idleMs)
      const isYielding = quietMs >= yieldingMs || (isSlow && taking.ms >= slowMs)
      if (isOver || (isYielding && running.admitted?.giveWay())) response.destroy()
      else if (taking.ms >= idleMs) running.taking = { ms: 0, bytes: 0, seen: taking.seen }
    },
  }
}

/** Records how much a client has taken by now, and that it had something to take for some time. */
function takingAfter(response: ServerResponse, running: RunningRequest, ms: number): Taking {
  const seen = (response.socket?.bytesWritten ?? 0) - unsentBytes(response)
  running.taking ??= { ms: 0, bytes: 0, seen }
  const { taking } = running
  taking.ms += ms
  taking.bytes += Math.max(seen - taking.seen, 0)
  taking.seen = Math.max(seen, taking.seen)
  return taking
}

/** Returns how much the system has not taken yet. Node counts what is queued only until it hands it on: the rest is the handle's. */
function unsentBytes({ writableLength, socket }: ServerResponse): number {
  const { _handle: handle } = (socket ?? {}) as { _handle?: { writeQueueSize?: number } | null }
  return writableLength + (handle?.writeQueueSize ?? 0)
}

/** Time after which a client that takes nothing loses its place to others. Milliseconds. */
const yieldingMs = 1_000
/** Time after which one that takes too little does. Milliseconds. */
const slowMs = 5_000

/** Time for the last event of an aborted call. */
const lastMomentMs = 1_000

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
  const { running } = context
  const [idleMs, minRate] = [context.clientTimeoutMs(), context.clientMinRate()]
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
    await deliver(response, answer, { running: own, idleMs, minRate })
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

/** Yields nothing, as the body of a HEAD request, which is otherwise answered like GET. */
async function* nothing(): AsyncGenerator<string, void> {}
