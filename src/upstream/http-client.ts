import { Agent, type Dispatcher, request } from 'undici'
import { RouterError } from '../core/errors.ts'
import type { Timeouts } from '../manifest/provider.ts'
import { decompressed } from './decompress.ts'
import { LoopStalls } from './loop-stalls.ts'

/** One HTTP request to a provider. */
export type HttpRequest = {
  url: string
  headers: Record<string, string>
  body: string
  timeouts: Timeouts
  /** Aborted when the client disconnects or the process stops. */
  signal: AbortSignal
  provider: string
  /** Called when all of the request has been handed to the connection. */
  onSent?: () => void
}

/**
 * A response whose headers have come. `bytes`, decompressed, throws RouterError when time runs out, the connection breaks or they
 * cannot be decompressed.
 */
export type HttpResponse = {
  status: number
  headers: Record<string, string | string[] | undefined>
  bytes: AsyncIterable<Uint8Array>
  /** Closes the connection without reading on. */
  discard(): void
}

/** Sends requests to providers; nothing else does. */
export type HttpClient = { send(request: HttpRequest): Promise<HttpResponse>; close(): Promise<void> }

/** Opens the client: one pool of HTTP/1.1 connections per connect limit, for the life of the process. */
export function openHttpClient(): HttpClient {
  const agents = new Map<number, Agent>()
  const stalls = new LoopStalls()
  const agentFor = (connectMs: number): Agent => {
    let agent = agents.get(connectMs)
    if (!agent) {
      // Deadlines below limit the response: the pool's own limits are too coarse.
      agent = new Agent({
        connect: { timeout: connectMs },
        headersTimeout: 0,
        bodyTimeout: 0,
        allowH2: false,
        connections: null,
      })
      agents.set(connectMs, agent)
    }
    return agent
  }
  return {
    send: (outgoing) => send(outgoing, agentFor(outgoing.timeouts.connectMs), stalls),
    close: async () => {
      stalls.stop()
      await Promise.all([...agents.values()].map((agent) => agent.close()))
    },
  }
}

async function send(outgoing: HttpRequest, dispatcher: Agent, stalls: LoopStalls): Promise<HttpResponse> {
  // Connections that were closed during a stall are known only when it has been caught up with.
  const catchingUp = stalls.catchingUp
  if (catchingUp) await catchingUp
  const deadlines = new Deadlines(outgoing, stalls)
  let answer: Dispatcher.ResponseData
  try {
    answer = await request(outgoing.url, {
      method: 'POST',
      headers: outgoing.headers,
      body: outgoing.body,
      signal: deadlines.signal,
      dispatcher: outgoing.onSent ? telling(dispatcher, outgoing.onSent) : dispatcher,
    })
  } catch (error) {
    deadlines.stop()
    throw deadlines.errorFor(error)
  }
  const { body } = answer
  const discard = () => {
    deadlines.stop()
    body.on('error', () => {})
    body.destroy()
  }
  return {
    status: answer.statusCode,
    headers: answer.headers,
    bytes: decompressed(timed(body, deadlines), {
      encoding: answer.headers['content-encoding'],
      provider: outgoing.provider,
      discard,
    }),
    discard,
  }
}

/** The same dispatcher, which calls back when the request has been sent. */
function telling(agent: Agent, onSent: () => void): Dispatcher {
  const dispatch: Dispatcher['dispatch'] = (options, handler) =>
    agent.dispatch(options, Object.assign(handler, { onRequestSent: onSent }))
  return { dispatch } as Dispatcher
}

async function* timed(body: Dispatcher.ResponseData['body'], deadlines: Deadlines): AsyncGenerator<Uint8Array, void> {
  try {
    for await (const chunk of body) {
      deadlines.arrived()
      yield chunk
      deadlines.waiting()
    }
  } catch (error) {
    throw deadlines.errorFor(error)
  } finally {
    deadlines.stop()
  }
}

/** The time limits of one request: to the first byte, between bytes, in total; and the caller's abort signal. */
class Deadlines {
  readonly #outgoing: HttpRequest
  readonly #controller = new AbortController()
  readonly #stalls: LoopStalls
  #total: NodeJS.Timeout | undefined
  #idle: NodeJS.Timeout | undefined
  #hasBegun = false
  #reading = false
  readonly #abort = () => this.#controller.abort(this.#outgoing.signal.reason)

  constructor(outgoing: HttpRequest, stalls: LoopStalls) {
    this.#outgoing = outgoing
    this.#stalls = stalls
    const { firstEventMs, totalMs } = outgoing.timeouts
    this.#arm(totalMs, `did not finish within ${totalMs} ms`, (timer) => {
      this.#total = timer
    })
    this.#arm(firstEventMs, `sent nothing within ${firstEventMs} ms`, (timer) => {
      this.#idle = timer
    })
    if (outgoing.signal.aborted) this.#abort()
    else outgoing.signal.addEventListener('abort', this.#abort, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Bytes came. Until they are consumed the reader is slow, not the provider, so the limit does not apply. */
  arrived(): void {
    this.#reading = true
    if (this.#hasBegun) return
    this.#hasBegun = true
    clearTimeout(this.#idle)
    const { betweenEventsMs } = this.#outgoing.timeouts
    let stalledMs = this.#stalls.totalMs
    this.#idle = setTimeout(() => {
      const before = stalledMs
      stalledMs = this.#stalls.totalMs
      if (this.#reading || stalledMs > before) this.#idle?.refresh()
      else this.#expire(`sent nothing more for ${betweenEventsMs} ms`)
    }, betweenEventsMs)
  }

  /** The bytes are consumed, the next ones are awaited. */
  waiting(): void {
    this.#reading = false
    this.#idle?.refresh()
  }

  stop(): void {
    clearTimeout(this.#total)
    clearTimeout(this.#idle)
    this.#outgoing.signal.removeEventListener('abort', this.#abort)
  }

  /** The error of a failed request: a time limit, an abort by the caller, or a broken connection. */
  errorFor(error: unknown): RouterError {
    const { signal } = this.#controller
    if (signal.aborted && signal.reason instanceof RouterError) return signal.reason
    const { provider } = this.#outgoing
    const { code = '', message = String(error) } = error as { code?: string; message?: string }
    // The system's and the library's words contain addresses.
    const facts = { provider, cause: error, forLog: message.includes(code) ? message : `${code} ${message}` }
    if (code === 'UND_ERR_CONNECT_TIMEOUT') {
      return new RouterError('provider_timeout', 'The provider could not be connected in time.', facts)
    }
    if (this.#hasBegun) return new RouterError('provider_cut', 'The connection to the provider broke.', facts)
    return new RouterError('provider_unreachable', 'The provider could not be reached.', facts)
  }

  /** A limit; time in which the loop stood still is added to it. */
  #arm(ms: number, what: string, keep: (timer: NodeJS.Timeout) => void, stalledMs = this.#stalls.totalMs): void {
    const end = () => {
      const now = this.#stalls.totalMs
      if (now > stalledMs) this.#arm(now - stalledMs, what, keep, now)
      else this.#expire(what)
    }
    keep(setTimeout(end, ms))
  }

  #expire(what: string): void {
    const { provider } = this.#outgoing
    this.#controller.abort(new RouterError('provider_timeout', `The provider ${what}.`, { provider }))
  }
}
