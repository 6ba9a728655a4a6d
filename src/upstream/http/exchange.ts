import type { Dispatcher } from 'undici'
import { RouterError } from '../../core/errors.ts'
import type { BodyBytes } from '../outgoing-body.ts'
import type { Deadlines, Limited } from './deadlines.ts'
import type { HttpRequest } from './types.ts'

/** The status and the headers of a response. */
export type ResponseHead = { status: number; headers: Record<string, string | string[] | undefined> }

type ExchangeFacts = Pick<HttpRequest, 'timeouts' | 'signal' | 'provider' | 'onSent' | 'untilContent' | 'overtime'>

type Reader = PromiseWithResolvers<IteratorResult<Uint8Array, undefined>>

/**
 * One request and its response, as undici reports it: its head, then its bytes for one reader, together as many as have come
 * since it read last. A slow reader slows the provider. Throws RouterError when time runs out or the connection breaks.
 */
export class Exchange implements Dispatcher.DispatchHandler, Limited, AsyncIterableIterator<Uint8Array, undefined> {
  place = -1
  readonly #request: ExchangeFacts
  readonly #deadlines: Deadlines
  /** Pending response head, until it has arrived. */
  #head: PromiseWithResolvers<ResponseHead> | undefined
  #firstBy: number
  readonly #endBy: number
  readonly #abort = () => this.#interrupt(this.#request.signal.reason)
  #controller: Dispatcher.DispatchController | undefined
  /** A body is being sent piece by piece; `#offeredAt` since when the connection has not taken the last one. */
  #isSending = false
  #isSent = false
  #offeredAt: number | undefined
  /** Chunks that have arrived and are not read, and their total length. */
  #chunks: Uint8Array[] = []
  #length = 0
  /** Set when bytes that count have begun to arrive; `#hasBytes`: any bytes have. */
  #hasBegun = false
  #hasBytes = false
  #reader: Reader | undefined
  #isWaking = false
  /** Time for which the reader has been seen waiting for bytes that count, and when it was last seen so. */
  #silentMs = 0
  #seenWaiting: number | undefined
  #hasEnded = false
  #error: RouterError | undefined
  /** Set in overtime: why the call is over, and when the answer is no longer read. */
  #interruption: { error: RouterError; endBy: number } | undefined

  constructor({ timeouts, signal, provider, onSent, untilContent, overtime }: ExchangeFacts, deadlines: Deadlines) {
    // Not the body: a response may take long.
    this.#request = { timeouts, signal, provider, onSent, untilContent: untilContent === true, overtime }
    this.#deadlines = deadlines
    const { now } = deadlines
    const { firstEventMs, totalMs } = timeouts
    this.#firstBy = now + firstEventMs
    this.#endBy = now + totalMs
  }

  /**
   * Yields a body that is made as it is sent, piece by piece. The time until the first event counts from its end; until then the provider
   * must go on taking it.
   */
  async *sending(body: Exclude<BodyBytes, string>): AsyncGenerator<Uint8Array> {
    this.#isSending = true
    for await (const chunk of body instanceof Uint8Array ? [body] : body) {
      for (let at = 0; at < chunk.length; at += maxOffered) {
        this.#offeredAt = this.#deadlines.now
        yield chunk.subarray(at, at + maxOffered)
        this.#offeredAt = undefined
      }
    }
  }

  /** Sends the request and waits for the head of the response. */
  begin(dispatcher: Dispatcher, options: Dispatcher.DispatchOptions): Promise<ResponseHead> {
    const { signal, overtime } = this.#request
    overtime?.attach((error) => this.#interrupt(error))
    const head = Promise.withResolvers<ResponseHead>()
    this.#head = head
    if (signal.aborted) {
      this.#abort()
    } else {
      signal.addEventListener('abort', this.#abort)
      this.#deadlines.add(this)
      dispatcher.dispatch(options, this)
    }
    return head.promise
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    // It may have waited for a connection longer than it was allowed to.
    if (this.#error) controller.abort(this.#error)
  }

  onRequestSent(): void {
    if (this.#isSending) this.#firstBy = this.#deadlines.now + this.#request.timeouts.firstEventMs
    this.#isSending = false
    this.#isSent = true
    this.#request.onSent?.()
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: ResponseHead['headers']): void {
    // They are slices of the bytes read from the connection, and would keep all of those as long as the response.
    controller.rawHeaders = null
    // Informational responses may precede the response.
    if (status < 200) return
    this.#head?.resolve({ status, headers })
    this.#head = undefined
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.#hasBytes = true
    if (!this.#request.untilContent) this.#hasBegun = true
    this.#chunks.push(chunk)
    this.#length += chunk.length
    if (this.#length >= maxUnread) controller.pause()
    this.#wakeReader()
  }

  onResponseEnd(): void {
    this.#end()
  }

  onResponseError(_: Dispatcher.DispatchController | null, error: Error): void {
    this.#end(this.#errorFor(error))
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<Uint8Array, undefined>> {
    const reader = Promise.withResolvers<IteratorResult<Uint8Array, undefined>>()
    this.#reader = reader
    this.#seenWaiting = undefined
    if (!this.#request.untilContent) this.#silentMs = 0
    if (this.#chunks.length > 0 || this.#hasEnded) this.#answerReader()
    return reader.promise
  }

  return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.discard()
    return Promise.resolve({ done: true, value: undefined })
  }

  /** Records that bytes arrived which count: those that a provider sends only to keep its connection do not. */
  progressed(): void {
    this.#hasBegun = true
    this.#silentMs = 0
  }

  /** Closes the connection without reading on. */
  discard(): void {
    if (!this.#hasEnded) this.#stop(new Error('The rest of the response was not read.'))
  }

  checkLimits(now: number): void {
    if (this.#interruption) {
      if (now >= this.#interruption.endBy) this.#stop(this.#interruption.error)
      return
    }
    const { firstEventMs, betweenEventsMs, totalMs } = this.#request.timeouts
    if (now >= this.#endBy) this.#expire(`did not finish within ${totalMs} ms`)
    else if (!this.#hasBegun) {
      const what = this.#hasBytes ? 'no content' : 'nothing'
      if (!this.#isSending && now >= this.#firstBy) this.#expire(`sent ${what} within ${firstEventMs} ms`)
      // While a file is read, the provider waits.
      const untaken = this.#isSending && this.#offeredAt !== undefined ? now - this.#offeredAt : 0
      if (untaken >= betweenEventsMs) this.#expire(`accepted no part of the request for ${betweenEventsMs} ms`)
    } else if (this.#reader) {
      // Without one the reader is slow, not the provider.
      this.#silentMs += now - (this.#seenWaiting ?? now)
      this.#seenWaiting = now
      if (this.#silentMs >= betweenEventsMs) this.#expire(`sent nothing more for ${betweenEventsMs} ms`)
    }
  }

  #expire(what: string): void {
    const { provider } = this.#request
    this.#interrupt(new RouterError('provider_timeout', `The provider ${what}.`, { provider }))
  }

  /** Ends the exchange because the call is over; an answer that has overtime is read on, and nothing else limits it any more. */
  #interrupt(reason: unknown): void {
    if (this.#interruption || this.#hasEnded) return
    const { overtime } = this.#request
    const error = this.#errorFor(reason)
    const isReadOn = overtime && this.#isSent && overtime.begin(error, () => this.#stop(error))
    if (isReadOn) this.#interruption = { error, endBy: this.#deadlines.now + overtime.ms }
    else this.#stop(error)
  }

  /** Ends the exchange although its response is not complete, and closes the connection: data that has arrived is not read. */
  #stop(reason: unknown): void {
    const error = this.#errorFor(reason)
    this.#chunks = []
    this.#end(error)
    this.#controller?.abort(error)
  }

  #end(error?: RouterError): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#error = error
    this.#deadlines.delete(this)
    this.#request.signal.removeEventListener('abort', this.#abort)
    if (this.#interruption) this.#request.overtime?.ended()
    if (error) this.#head?.reject(error)
    this.#wakeReader()
  }

  /** Wakes the reader in a moment, so that chunks that arrive together are read together. */
  #wakeReader(): void {
    if (!this.#reader || this.#isWaking) return
    this.#isWaking = true
    queueMicrotask(() => this.#answerReader())
  }

  #answerReader(): void {
    const reader = this.#reader
    this.#reader = undefined
    this.#isWaking = false
    if (this.#chunks.length > 0) reader?.resolve({ done: false, value: this.#take() })
    else if (this.#error) reader?.reject(this.#error)
    else reader?.resolve({ done: true, value: undefined })
  }

  /** Takes everything that has arrived, but large chunks one by one: nothing is gained by copying them together. */
  #take(): Uint8Array {
    const isLarge = (this.#chunks[0]?.length ?? 0) >= largeChunk
    const chunks = this.#chunks.splice(0, isLarge ? 1 : this.#chunks.length)
    const taken = chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks)
    this.#length -= taken.length
    if (this.#controller?.paused && this.#length < maxUnread) this.#controller.resume()
    return taken
  }

  /** Returns the error of a failed exchange: why it was stopped, or how its connection broke. */
  #errorFor(error: unknown): RouterError {
    if (error instanceof RouterError) return error
    const { provider } = this.#request
    const { code = '', message = String(error) } = error as { code?: string; message?: string }
    // The system's and the library's words contain addresses.
    const facts = { provider, cause: error, forLog: message.includes(code) ? message : `${code} ${message}` }
    if (code === 'UND_ERR_CONNECT_TIMEOUT') {
      return new RouterError(
        'provider_unreachable',
        'The connection to the provider could not be established in time.',
        facts,
      )
    }
    if (this.#hasBytes) return new RouterError('provider_cut', 'The connection to the provider broke.', facts)
    return new RouterError('provider_unreachable', 'The provider could not be reached.', facts)
  }
}

/** Bytes of a chunk that is read alone. */
const largeChunk = 16 * 1024

/** Bytes that are taken before the provider must wait for the reader. */
const maxUnread = 64 * 1024
/** Bytes of a body that a provider must take without a pause; large ones would look like one. */
const maxOffered = 64 * 1024
