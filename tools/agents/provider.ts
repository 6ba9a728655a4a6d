import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Format, Reply } from './conversation.ts'
import { type Fields, fieldsOf, textOf } from './fields.ts'
import { decideTurn } from './script.ts'
import { endpointOf, type Target } from './targets.ts'

/** The ways in which a provider can fail. */
export const faults = ['500', '503', '529', '429', 'reset', 'cut'] as const
export type Fault = (typeof faults)[number]

/** The share of the requests that fail, and the way. */
export type Failing = { fault: Fault; rate: number; random: () => number }

/** Time between the last byte of a stream and its cut. */
const cutMs = 100

/** One request that reached the provider. */
export type Seen = { path: string; body: Fields; rule?: string; refusal?: string; fault?: Fault }

/** A provider on loopback that enforces the limits of a target. */
export type LoopbackProvider = { url: string; seen: Seen[]; failing: Failing | undefined; close(): void }

/** Starts the provider of a target on a free port. */
export async function startProvider(target: Target): Promise<LoopbackProvider> {
  const server = createServer((request, response) => {
    answer(provider, target, request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const provider: LoopbackProvider = {
    url: `http://127.0.0.1:${port}${target.base}`,
    seen: [],
    failing: undefined,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
  return provider
}

async function answer(
  provider: LoopbackProvider,
  target: Target,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await bodyOf(request)
  const path = textOf(request.url).split('?')[0] ?? ''
  if (/(count_tokens|input_tokens|:countTokens)$/.test(path))
    return sendJson(response, 200, { input_tokens: 900, totalTokens: 900 })
  const endpoint = endpointOf(target, path)
  const seen: Seen = { path, body }
  provider.seen.push(seen)
  if (!endpoint) {
    seen.rule = 'endpoints'
    seen.refusal = `there is no ${request.method} ${path}`
    return sendJson(response, 404, { error: { message: seen.refusal, type: 'not_found_error' } })
  }
  const fault = faultOf(provider.failing)
  if (fault) seen.fault = fault
  if (fault && fault !== 'cut') return fail(response, fault, endpoint.format)
  for (const { name, refusal } of endpoint.rules) {
    const message = refusal(body)
    if (!message) continue
    Object.assign(seen, { rule: name, refusal: message })
    return sendJson(response, 400, endpoint.format.error(message, 400))
  }
  const reply = endpoint.format.write(decideTurn(endpoint.format.read(body)), body, target.thoughts)
  const isStream = body.stream === true || path.endsWith(':streamGenerateContent')
  if (isStream) sendStream(response, reply, fault === 'cut')
  else sendWhole(response, reply, fault === 'cut')
}

function faultOf(failing: Failing | undefined): Fault | undefined {
  return failing && failing.random() < failing.rate ? failing.fault : undefined
}

/** Fails before any of the answer. */
function fail(response: ServerResponse, fault: Fault, format: Format): void {
  if (fault === 'reset') {
    response.socket?.resetAndDestroy()
    return
  }
  const status = Number(fault)
  const headers: Record<string, string> = fault === '429' ? { 'retry-after': '1' } : {}
  sendJson(response, status, format.error('The provider is not well.', status), headers)
}

function sendStream(response: ServerResponse, { events }: Reply, isCut: boolean): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const { name, data } of isCut ? events.slice(0, Math.ceil(events.length / 2)) : events) {
    response.write(`${name ? `event: ${name}\n` : ''}data: ${data === '[DONE]' ? data : JSON.stringify(data)}\n\n`)
  }
  if (!isCut) {
    response.end()
    return
  }
  // Clients have read what was written before the connection breaks: some forget it where both come at once.
  setTimeout(() => response.socket?.destroy(), cutMs)
}

function sendWhole(response: ServerResponse, { whole }: Reply, isCut: boolean): void {
  if (!isCut) {
    sendJson(response, 200, whole)
    return
  }
  const text = JSON.stringify(whole)
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length })
  response.write(text.slice(0, text.length / 2), () => response.socket?.destroySoon())
}

function sendJson(response: ServerResponse, status: number, body: Fields, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

async function bodyOf(request: IncomingMessage): Promise<Fields> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  try {
    return fieldsOf(JSON.parse(Buffer.concat(chunks).toString()))
  } catch {
    return {}
  }
}
