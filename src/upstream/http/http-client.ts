import { subscribe } from 'node:diagnostics_channel'
import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type * as undici from 'undici'
import { RouterError } from '../../core/errors.ts'
import { Deadlines, LoopStalls } from './deadlines.ts'
import { decompressed } from './decompress.ts'
import { Exchange } from './exchange.ts'
import type { HttpClient, HttpRequest, HttpResponse } from './types.ts'

/** Opens the client: one pool of HTTP/1.1 connections per connect limit, for the life of the process. */
export function openHttpClient(): HttpClient {
  const keeping = new Map<number, Agent>()
  const fresh = new Map<number, Agent>()
  const stalls = new LoopStalls()
  const deadlines = new Deadlines(stalls)
  const agentIn = (agents: Map<number, Agent>, { timeouts: { connectMs } }: HttpRequest): Agent => {
    let agent = agents.get(connectMs)
    if (!agent) {
      agent = openAgent({ connectMs, keeps: agents === keeping })
      agents.set(connectMs, agent)
    }
    return agent
  }
  const clock = { stalls, deadlines }
  return {
    async send(outgoing) {
      try {
        return await send(outgoing, agentIn(keeping, outgoing), clock)
      } catch (thrown) {
        if (!closedUnused(thrown) || !isRepeatable(outgoing)) throw thrown
        return await send(outgoing, agentIn(fresh, outgoing), clock)
      }
    },
    close: async () => {
      stalls.stop()
      await Promise.all([...keeping.values(), ...fresh.values()].map((agent) => agent.close()))
    },
  }
}

/** Checks whether a kept connection was closed by the provider as the request was sent, before it answered anything. */
function closedUnused(thrown: unknown): boolean {
  return thrown instanceof RouterError && thrown.code === 'provider_unreachable' && wasKept(thrown.cause)
}

function isRepeatable({ body, once }: HttpRequest): boolean {
  return !once && (body === undefined || typeof body === 'string' || body instanceof Uint8Array || isInPieces(body))
}

type Clock = { stalls: LoopStalls; deadlines: Deadlines }

async function send(outgoing: HttpRequest, agent: Agent, { stalls, deadlines }: Clock): Promise<HttpResponse> {
  // Connections that were closed during a stall are known only when it has been caught up with.
  const { catchingUp } = stalls
  if (catchingUp) await catchingUp
  const { method = 'POST', provider } = outgoing
  const exchange = new Exchange(outgoing, deadlines)
  const { headers, body } = framed(outgoing, exchange)
  const { origin, path } = addressOf(outgoing.url)
  const { status, headers: received } = await exchange.begin(agent, { origin, path, method, headers, body })
  const discard = () => exchange.discard()
  const encoding = received['content-encoding']
  const bytes = decompressed(exchange, { encoding, provider, discard })
  return { status, headers: received, bytes, progressed: () => exchange.progressed(), discard }
}

/** Frames the body for undici: a text is sent at once; of anything else the exchange watches how it is taken. */
function framed({ headers, body, length }: HttpRequest, exchange: Exchange) {
  if (typeof body === 'string') return { headers, body }
  const known = body instanceof Uint8Array ? body.length : isInPieces(body) ? lengthOf(body) : length
  if (body === undefined || known === 0) return { headers, body: null }
  const own = known === undefined ? headers : { ...headers, 'content-length': String(known) }
  // undici accepts iterables, though its types do not show it.
  return { headers: own, body: exchange.sending(body) as unknown as Readable }
}

function isInPieces(body: HttpRequest['body']): body is readonly Uint8Array[] {
  return Array.isArray(body)
}

function lengthOf(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, piece) => sum + piece.length, 0)
}

type Address = { origin: string; path: string }

/** Returns the parts of a URL, remembered because nearly all requests go to a few. */
function addressOf(url: string): Address {
  let address = addresses.get(url)
  if (!address) {
    const parsed = URL.parse(url)
    // One that is no URL is refused by undici, as an error of the exchange.
    address = parsed ? { origin: parsed.origin, path: parsed.pathname + parsed.search } : { origin: url, path: '/' }
    if (addresses.size >= maxAddresses) addresses.clear()
    addresses.set(url, address)
  }
  return address
}

const addresses = new Map<string, Address>()
const maxAddresses = 1_000

const load = createRequire(import.meta.url)

/** A pool of connections. The package as a whole also loads fetch, WebSocket and caches, which nothing here uses: 6 MB. */
export const Agent = load('undici/lib/dispatcher/agent.js') as typeof undici.Agent
const buildConnector = load('undici/lib/core/connect.js') as typeof undici.buildConnector
export type Agent = undici.Agent

/** Opens a pool of HTTP/1.1 connections, whose errors report `wasKept`; a pool that keeps none opens one for each request. */
function openAgent({ connectMs, keeps }: { connectMs: number; keeps: boolean }): Agent {
  countRequests()
  const connect = buildConnector({ timeout: connectMs, allowH2: false })
  const connector: undici.buildConnector.connector = (options, callback) =>
    connect(options, (...result) => {
      const [, socket] = result
      // Before undici's own listener: it hands the error on.
      socket?.on('error', (error) => {
        if ((requests.get(socket) ?? 0) > 1) kept.add(error)
      })
      callback(...result)
    })
  return new Agent({
    connect: connector,
    // Our own deadlines limit the response: the pool's limits are too coarse.
    headersTimeout: 0,
    bodyTimeout: 0,
    connections: null,
    ...(!keeps && { pipelining: 0 }),
  })
}

/**
 * Checks whether an error belongs to a connection that had served a request before: its other end may have closed it as this one was sent.
 */
function wasKept(error: unknown): boolean {
  return typeof error === 'object' && error !== null && kept.has(error)
}

const kept = new WeakSet<object>()
const requests = new WeakMap<Socket, number>()
let isCounting = false

function countRequests(): void {
  if (isCounting) return
  isCounting = true
  subscribe('undici:client:sendHeaders', (message) => {
    const { socket } = message as { socket: Socket }
    requests.set(socket, (requests.get(socket) ?? 0) + 1)
  })
}
