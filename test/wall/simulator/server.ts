import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { answerTo } from './answer.ts'
import { chat } from './chat.ts'
import { answerJson, control, type Outages } from './control.ts'
import { failureOf } from './failures.ts'
import { behaviourOf } from './faults.ts'
import type { Body, Format } from './format.ts'
import { type Entry, Journal } from './journal.ts'
import { messages } from './messages.ts'
import type { Plan } from './plan.ts'
import { play } from './play.ts'
import { responses } from './responses.ts'

/** A provider that fails as the names of its models say. */
export type Simulator = {
  /** Its address, without a path. */
  url: string
  journal: Journal
  /** Takes requests at one more address as well, and returns it: gateways may judge a provider by its address. */
  listen(port?: number): Promise<string>
  close(): Promise<void>
}

type Shared = { journal: Journal; outages: Outages; time: number; connections: WeakMap<Socket, Connection> }
type Connection = { number: number; requests: number }

const formats = new Map([chat, messages, responses].map((format) => [format.path, format]))

/** Starts a simulator on `host`. `time` is the factor of all its times: at 0.01 a minute takes 600 ms. */
export async function startSimulator(
  options: { port?: number; host?: string; time?: number } = {},
): Promise<Simulator> {
  const { port = 0, host = '127.0.0.1', time = 1 } = options
  const shared: Shared = { journal: new Journal(), outages: new Map(), time, connections: new WeakMap() }
  const servers: Server[] = []
  const listen = async (at = 0) => {
    const server = createServer((request, response) => {
      serve(request, response, shared).catch(() => response.destroy())
    })
    let opened = 0
    server.on('connection', (socket) => shared.connections.set(socket, { number: ++opened, requests: 0 }))
    // Kept connections stay open: it is the faults that close them.
    server.keepAliveTimeout = 10 * 60 * 1_000
    servers.push(server)
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(at, host, resolve)
    })
    return `http://${host}:${(server.address() as AddressInfo).port}`
  }
  const close = async () => void (await Promise.all(servers.map(closed)))
  return { url: await listen(port), journal: shared.journal, listen, close }
}

async function serve(request: IncomingMessage, response: ServerResponse, shared: Shared): Promise<void> {
  const text = await textOf(request)
  const path = new URL(request.url ?? '/', 'http://simulator').pathname
  if (path.startsWith('/wall')) return control(request, response, text, shared)
  const format = formats.get(path.startsWith('/v1/') ? path : `/v1${path}`)
  const body = bodyIn(text)
  if (!format || body === undefined) return answerJson(response, 404, chat.error(failureOf(404)).body)
  const { entry, plan } = planned(request, { format, body, text, path }, shared)
  response.once('close', () => {
    entry.endedAt = Date.now()
    entry.endedBy ??= response.writableFinished ? 'simulator' : 'gateway'
  })
  if (plan === 'reset') {
    entry.endedBy = 'simulator'
    request.socket.resetAndDestroy()
  } else {
    const onCut = () => {
      entry.endedBy = 'simulator'
    }
    await play(plan, response, { time: shared.time, onCut })
  }
}

type Received = { format: Format; body: Body; text: string; path: string }

function planned(request: IncomingMessage, received: Received, shared: Shared): { entry: Entry; plan: Plan } {
  const { format, body, text, path } = received
  const connection = shared.connections.get(request.socket) ?? { number: 0, requests: 0 }
  connection.requests++
  const asked = format.read(body)
  const at = Date.now()
  const entry: Entry = {
    model: asked.model.split('~')[0] ?? '',
    target: asked.model,
    caller: callerOf(text, request),
    path,
    stream: asked.stream,
    at,
    connection: connection.number,
    requestsOfConnection: connection.requests,
    headers: request.headers,
    body,
  }
  const { earlier, first } = shared.journal.add(entry)
  const answer = answerTo(asked, `${earlier + 1}${asked.model.replaceAll(/\W/g, '')}`)
  const ask = {
    format,
    asked,
    answer,
    stream: asked.stream ? format.stream(answer, asked) : undefined,
    earlier,
    sinceFirst: (at - first) / shared.time,
    isReused: connection.requests > 1,
    seconds: (atFactor1: number) => String(atFactor1 * shared.time),
  }
  if (isDown(entry, shared.outages)) return { entry, plan: 'reset' }
  const notFound = (): Plan => ({
    status: 404,
    headers: {},
    steps: [JSON.stringify(format.error(failureOf(404)).body)],
  })
  return { entry, plan: (behaviourOf(asked.model) ?? notFound)(ask) }
}

function isDown({ model, target, at }: Entry, outages: Outages): boolean {
  return [model, target].some((name) => (outages.get(name) ?? 0) > at)
}

/** What a text of the request says after `case:`, else the key. */
function callerOf(text: string, { headers }: IncomingMessage): string {
  return /\bcase:([\w.~-]+)/.exec(text)?.[1] ?? String(headers.authorization ?? headers['x-api-key'] ?? '')
}

function bodyIn(text: string): Body | undefined {
  try {
    return Object(JSON.parse(text))
  } catch {
    return undefined
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return Buffer.concat(pieces).toString('utf8')
}

async function closed(server: Server): Promise<void> {
  const done = new Promise((resolve) => server.close(resolve))
  server.closeAllConnections()
  await done
}
