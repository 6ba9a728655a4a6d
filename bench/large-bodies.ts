/**
 * Sends bodies of 50 MB when it is asked to, and is the provider that reads and answers them: what that takes is no work of the
 * process that measures streams.
 */
import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { shapes } from './bounds-cases.ts'

/** What is to be sent where. */
export type Asked = { url: string; key: string; shape: string }
/** The local port of the connection, and the answer. */
export type Sent = { port: number; status: number }

const bytes = 50 * 1024 * 1024 - 64 * 1024
const model = 'anthropic/claude-sonnet-4-5'
const image = () => {
  const data = 'iVBORw0KGgo'.padEnd(bytes - (bytes % 4), 'A')
  const part = { type: 'image', source: { type: 'base64', media_type: 'image/png', data } }
  return JSON.stringify({ model, max_tokens: 100, messages: [{ role: 'user', content: [part] }] })
}
const stored = (body: string) => body.replace('"store":false', '"store":true')
const made: Record<string, () => [path: string, body: string]> = {
  'one text': () => ['/v1/messages', shapes['one text']('messages', model, bytes)],
  'many values': () => ['/v1/messages', shapes['texts of 1 kB']('messages', model, bytes)],
  'an image': () => ['/v1/messages', image()],
  'one text, mapped': () => ['/v1/chat/completions', shapes['one text']('chat', model, bytes)],
  'one text, stored': () => ['/v1/responses', stored(shapes['one text']('responses', model, bytes))],
  'many values, mapped': () => ['/v1/chat/completions', shapes['texts of 1 kB']('chat', model, bytes)],
}
const message = JSON.stringify({
  id: 'msg_bench',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-5-20250929',
  content: [{ type: 'text', text: 'That is long.' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 120, output_tokens: 5 },
})
const bodies = new Map<string, [path: string, body: Buffer]>()
const agent = new Agent({ keepAlive: true, maxSockets: 1 })

const server = createServer((incoming, response) => {
  incoming.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end(message))
})
server.listen(0, '127.0.0.1', () =>
  process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }),
)
process.on('disconnect', () => process.exit(1))
process.on('message', async ({ url, key, shape }: Asked) => {
  const [path, body] = bodyOf(shape)
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'content-length': body.length }
  const call = request(url + path, { method: 'POST', headers, agent })
  call.end(body)
  const [response] = await once(call, 'response')
  const port = call.socket?.localPort ?? 0
  let answer = ''
  for await (const chunk of response) answer += chunk
  if (response.statusCode !== 200) console.error(shape, response.statusCode, answer.slice(0, 300))
  process.send?.({ port, status: response.statusCode } satisfies Sent)
})

function bodyOf(shape: string): [path: string, body: Buffer] {
  const known = bodies.get(shape)
  if (known) return known
  const [path, text] = (made[shape] as (typeof made)[string])()
  const kept: [string, Buffer] = [path, Buffer.from(text)]
  bodies.set(shape, kept)
  return kept
}
