import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { piecesOf, speechModel, spoken, transcribed, transcriptionModel } from './audio.ts'
import { type Fault, failWith, replyTo } from './reply.ts'
import { modelNames, readRequest, SimulatedError } from './request.ts'
import { maxBodyLength, maxConversationLength, otherModels, requireLength } from './words.ts'
import { chunksOf, completionOf, errorOf } from './write.ts'

// An import would evaluate all exports of the module, a second HTTP client among them: 12 MB and 30 ms.
const { createServer } = process.getBuiltinModule('node:http')

/** A running simulator; `url` ends in `/v1`. */
export type Simulator = { url: string; close(): Promise<void> }

/**
 * Starts a provider without a model, on loopback: it speaks the OpenAI Chat Completions format over real HTTP, and the same
 * request always gets the same reply. `port` 0, the default, takes any free one.
 */
export async function startSimulator({ port = 0 }: { port?: number } = {}): Promise<Simulator> {
  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => refuse(response, error))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, close: () => close(server) }
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = (request.url ?? '').replace(/\?.*$/, '')
  if (request.method === 'GET' && path === '/v1/models') return writeJson(response, 200, modelList())
  if (request.method === 'POST' && path === '/v1/audio/speech') return await speak(request, response)
  if (request.method === 'POST' && path === '/v1/audio/transcriptions') return await listen(request, response)
  if (request.method === 'POST' && path === '/v1/images/edits') return await repaint(request, response)
  const other = others[path]
  if (request.method === 'POST' && other) {
    const text = await textOf(request)
    requireLength(text.length, path === '/v1/completions' ? 2 * maxConversationLength : maxBodyLength)
    const answered = await other(parse(text))
    if ('whole' in answered) return writeJson(response, 200, answered.whole)
    return await writeStream(response, answered.chunks, undefined)
  }
  if (request.method !== 'POST' || path !== '/v1/chat/completions') {
    throw new SimulatedError(404, `Unknown request URL: ${request.method} ${path}`, { code: 'unknown_url' })
  }
  const chatRequest = readRequest(parse(await textOf(request)))
  const { fault, ...reply } = replyTo(chatRequest)
  if (typeof fault === 'object') throw new SimulatedError(fault.status, `Failing with ${fault.status}, as asked for.`)
  const head = { id: reply.id, created: Math.floor(Date.now() / 1_000), model: chatRequest.model }
  if (chatRequest.stream) return await writeStream(response, chunksOf(reply, chatRequest, head), fault)
  if (fault) return await failWith(response, fault)
  writeJson(response, 200, completionOf(reply, chatRequest, head))
}

async function speak(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const speech = spoken(parse(await textOf(request)))
  const { format, events, usage } = speech
  response.writeHead(200, { 'content-type': events ? 'text/event-stream' : `audio/${format}` })
  const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`
  for (const piece of piecesOf(speech)) {
    const text = events && event({ type: 'speech.audio.delta', audio: piece.toString('base64') })
    if (!response.write(text || piece)) await drained(response)
    if (response.destroyed) return
  }
  response.end(events ? event({ type: 'speech.audio.done', usage }) : undefined)
}

async function listen(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { searchParams } = new URL(request.url ?? '', 'http://localhost')
  writeJson(response, 200, transcribed(await bytesOf(request), searchParams))
}

async function repaint(request: IncomingMessage, response: ServerResponse): Promise<void> {
  // Loaded when it is asked for: most processes never are.
  const { imagesOf, editOf } = await import('./images.ts')
  const { body, files } = await editOf(await bytesOf(request), request.headers['content-type'] ?? '')
  writeJson(response, 200, imagesOf(body, { created: Math.floor(Date.now() / 1_000), files }))
}

/** Maximum size of a body, the same as the router itself accepts. Bytes. */
const bodyLimit = 64 * 1_024 * 1_024

async function textOf(request: IncomingMessage): Promise<string> {
  return (await bytesOf(request)).toString('utf8')
}

async function bytesOf(request: IncomingMessage): Promise<Buffer<ArrayBuffer>> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of request) {
    size += (piece as Buffer).length
    if (size > bodyLimit) throw new SimulatedError(413, `The body must not exceed ${bodyLimit} bytes.`)
    pieces.push(piece as Buffer)
  }
  return Buffer.concat(pieces)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new SimulatedError(400, 'We could not parse the JSON body of your request.')
  }
}

async function writeStream(response: ServerResponse, chunks: object[], fault: Fault | undefined): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
  const half = Math.ceil(chunks.length / 2)
  for (const chunk of fault ? chunks.slice(0, half) : chunks) {
    if (!response.write(`data: ${JSON.stringify(chunk)}\n\n`)) await drained(response)
    if (response.destroyed) return
  }
  if (fault) return await failWith(response, fault)
  response.end('data: [DONE]\n\n')
}

/** Resolves when the reader has caught up, or is gone. */
async function drained(response: ServerResponse): Promise<void> {
  await new Promise<void>((resolve) => {
    const go = () => {
      response.off('drain', go).off('close', go)
      resolve()
    }
    response.on('drain', go).on('close', go)
  })
}

function refuse(response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) {
    response.destroy()
    return
  }
  const refusal = error instanceof SimulatedError ? error : new SimulatedError(500, 'The simulator failed.')
  if (refusal.status === 429) response.setHeader('retry-after', '1')
  writeJson(response, refusal.status, errorOf(refusal))
}

function writeJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function modelList(): object {
  const data = [...modelNames, speechModel, transcriptionModel, ...Object.values(otherModels)].map((id) => ({
    id,
    object: 'model',
    created: 0,
    owned_by: 'simulator',
  }))
  return { object: 'list', data }
}

async function close(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve))
  server.closeAllConnections()
  await closed
}

/** Answer of the simulator at non-chat paths: one body, or the chunks of a stream. */
type Answered = { whole: object } | { chunks: object[] }

/** Answers a body at a path; loaded when it is asked for, since most processes never are. */
const others: { readonly [path: string]: (body: unknown) => Promise<Answered> } = {
  '/v1/images/generations': async (body) => {
    const { imagesOf } = await import('./images.ts')
    return { whole: imagesOf(body, { created: Math.floor(Date.now() / 1_000) }) }
  },
  '/v1/embeddings': async (body) => ({ whole: (await import('./other-operations.ts')).embeddingsOf(body) }),
  '/v1/decisions': async (body) => ({ whole: (await import('./other-operations.ts')).decisionsOf(body) }),
  '/v1/rerank': async (body) => ({ whole: (await import('./other-operations.ts')).rankingOf(body) }),
  '/v1/moderations': async (body) => ({ whole: (await import('./other-operations.ts')).moderationsOf(body) }),
  '/v1/completions': async (body) => {
    const { completionsOf } = await import('./other-operations.ts')
    return completionsOf(body, Math.floor(Date.now() / 1_000))
  },
}
