import type { ServerResponse } from 'node:http'
import { RouterError } from '../core/errors.ts'
import type { CallPlace } from '../routing/health/concurrency-limiter.ts'
import { type Listed, UnorderedSet } from '../runtime/unordered-set.ts'

/** The requests that are being answered, to wait for them or to end them. One timer looks after the clients of all. */
export class RunningRequests {
  readonly #running = new UnorderedSet<RunningRequest>()
  #timer: NodeJS.Timeout | undefined
  readonly #stop = new AbortController()
  #endlessEnd = false
  #allEnded = () => {}
  #begun = 0
  #streams = 0
  /** Called every 50 ms while requests run, and for every 16th that begins. */
  onLook: (() => void) | undefined

  /** Returns the number of requests that are running. */
  get size(): number {
    return this.#running.size
  }

  /** Returns the number of requests that have begun since the start. */
  get begun(): number {
    return this.#begun
  }

  /** Returns the total length of the JSON bodies of the running requests. */
  get bodyBytes(): number {
    let sum = 0
    for (const { bodyBytes } of this.#running) sum += bodyBytes
    return sum
  }

  /** Returns the number of running requests that are streams. */
  get streams(): number {
    return this.#streams
  }

  /** Aborted when everything ends that still runs, also what goes on after its response. */
  get stop(): AbortSignal {
    return this.#stop.signal
  }

  begin(response: ServerResponse): RunningRequest {
    const request = new RunningRequest()
    this.#running.add(request)
    if (++this.#begun % lookEach === 0) this.onLook?.()
    this.#timer ??= setInterval(() => this.#look(), everyMs).unref()
    response.on('close', () => {
      if (!response.writableFinished) request.abort(new RouterError('client_gone', 'The client disconnected.'))
    })
    if (this.#stop.signal.aborted) request.abort(stopping())
    return request
  }

  /** Records that the answer to a request is a stream. */
  beginStream(request: RunningRequest): void {
    request.isStream = true
    this.#streams++
  }

  /** Records that the answer to a request goes on until the client leaves, or endless ones end here. */
  beginEndless(request: RunningRequest): void {
    request.isEndless = true
    if (this.#endlessEnd) request.abort(stopping())
  }

  /** Ends those that would go on forever, also when they begin from now on. */
  endEndless(): void {
    this.#endlessEnd = true
    for (const request of this.#running) if (request.isEndless) request.abort(stopping())
  }

  /** Ends a request whose response is over, once the work is done that goes on after it: until then others may take its place. */
  end(request: RunningRequest): void {
    const { remaining } = request
    request.remaining = undefined
    if (remaining) {
      request.admitted?.offer()
      void remaining.catch(() => {}).finally(() => this.end(request))
    } else this.#end(request)
  }

  #end(request: RunningRequest): void {
    this.#running.delete(request)
    if (request.isStream) this.#streams--
    request.end()
    if (this.#running.size === 0) this.#allEnded()
  }

  /** Ends all running requests, and all that begin from now on. */
  abortAll(): void {
    this.#stop.abort(stopping())
    for (const request of this.#running) request.abort(stopping())
  }

  /** Resolves when all have ended: endless ones now, what still runs after so many milliseconds then. */
  async endWithin(deadlineMs: number): Promise<void> {
    this.endEndless()
    const timer = setTimeout(() => this.abortAll(), deadlineMs)
    await this.allEnded()
    clearTimeout(timer)
  }

  /** Resolves when none runs. */
  async allEnded(): Promise<void> {
    while (this.#running.size > 0) {
      await new Promise<void>((resolve) => {
        this.#allEnded = resolve
      })
    }
  }

  /** Resolves when those have ended that run now. */
  async presentEnded(): Promise<void> {
    await Promise.all([...this.#running].map((request) => new Promise<void>(request.atEnd)))
  }

  #look(): void {
    for (const { transfer } of this.#running) transfer?.waited(everyMs)
    this.onLook?.()
    if (this.#running.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/** Interval of the checks: much shorter than clients may stall. */
const everyMs = 50
const lookEach = 16

/** A body while it is received, or an answer while its client has yet to take it. */
export type Transfer = {
  /** Records that time has passed. */
  waited(ms: number): void
  fail?(error: RouterError): void
}

/** Bytes that a client took of an answer in a time in which some were waiting, and all that its connection had taken when it was last seen. */
export type Taking = { ms: number; bytes: number; seen: number }

/** One request. Its signal is aborted, with a RouterError as reason, when its client disconnects or it must end. */
export class RunningRequest implements Listed {
  place = -1
  readonly #controller = new AbortController()
  readonly #ended: (() => void)[] = []
  /** Work that goes on after the response; it never rejects. */
  remaining: Promise<unknown> | undefined
  transfer: Transfer | undefined
  /** The place of the call, once it has one. */
  admitted: CallPlace | undefined
  /** Record of how fast its client takes the answer. */
  taking: Taking | undefined
  /** The length of its JSON body, once that has been read. */
  bodyBytes = 0
  isStream = false
  isEndless = false

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Calls `ended` when the request has ended. */
  readonly atEnd = (ended: () => void): void => {
    this.#ended.push(ended)
  }

  /** Keeps the request running, whatever becomes of its response, until the work is done, which must not reject. */
  readonly outlive = (work: Promise<void>): void => {
    this.remaining = this.remaining ? Promise.all([this.remaining, work]) : work
  }

  end(): void {
    for (const ended of this.#ended.splice(0)) ended()
  }

  abort(reason: RouterError): void {
    this.#controller.abort(reason)
    this.transfer?.fail?.(reason)
  }
}

function stopping(): RouterError {
  return new RouterError('stopping', 'The router is stopping.')
}
