/**
 * Requests and answers of 5 and 50 MB of every shape that costs more than its size: how long each holds the event loop, and
 * how much memory it takes, in a router of its own with a heap of 512 MB. `npm run bench -- bounds [words of names…]`.
 */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { answers, type HostileAnswer, type HostileRequest, requests } from './bounds-cases.ts'
import { startMeasured } from './measured.ts'

/** The key that the measured routers accept. */
const key = 'ir-bench-key-of-the-benches'
const words = process.argv.slice(3)
const megabytes = (process.env.BENCH_MB ?? '5,31,50').split(',').map(Number)
const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
const dispatcher = new Agent({ headersTimeout: 120_000, bodyTimeout: 120_000 })

let answer = (response: ServerResponse): void => {
  response.end()
}
const upstream = createServer((incoming, response) => {
  incoming.resume().on('end', () => answer(response))
})
await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
const upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`

type Row = { status: string; 'held ms': number; 'took ms': number; 'RSS MB': number; '÷ size': number }
const rows: Record<string, Row> = {}

for (const mb of megabytes) {
  for (const one of requests.filter(({ name }) => isWanted(name))) await measureRequest(one, mb)
  for (const one of answers.filter(({ name }) => isWanted(name))) await measureAnswer(one, mb)
}
console.table(rows)
process.exit(0)

function isWanted(name: string): boolean {
  return words.every((word) => name.includes(word))
}

async function measureRequest({ name, path, body }: HostileRequest, mb: number): Promise<void> {
  answer = (response) => {
    response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"no"}}')
  }
  await measure(`${mb} MB ${name}`, mb, path, Buffer.from(body(mb * 1024 * 1024 - 4_096)))
}

async function measureAnswer({ name, path, model, stream, write }: HostileAnswer, mb: number): Promise<void> {
  answer = (response) => {
    response.on('error', () => {})
    write(response, mb * 1024 * 1024 - 4_096)
  }
  const ask = { model, max_tokens: 100, stream, store: false }
  const messages = [{ role: 'user', content: 'Hi' }]
  const body = path.endsWith('responses') ? { ...ask, max_tokens: undefined, input: messages } : { ...ask, messages }
  await measure(`${mb} MB ${name}`, mb, path, Buffer.from(JSON.stringify(body)))
}

async function measure(name: string, mb: number, path: string, body: Buffer): Promise<void> {
  const router = await startMeasured('router.ts', { BENCH_UPSTREAM: upstreamUrl, BENCH_KEY: key }, { heapMb: 512 })
  await warmUp(router.url, path, body)
  const before = await router.used()
  const begun = performance.now()
  const status = await send(router.url, path, body)
  const tookMs = performance.now() - begun
  // The loop's delay is known when its timer has fired once more.
  await setTimeout(100)
  const after = await Promise.race([router.used(), setTimeout(30_000, undefined)])
  const grown = after ? (after.mostRss - before.rss) / 1024 / 1024 : Number.NaN
  rows[name] = {
    status,
    'held ms': Math.round(after?.heldMs ?? Number.NaN),
    'took ms': Math.round(tookMs),
    'RSS MB': Math.round(grown),
    '÷ size': Math.round((grown / mb) * 10) / 10,
  }
  console.error(name, JSON.stringify(rows[name]))
  await router.stop()
}

/** Most routers have served calls before a hostile one comes: those of its way are compiled. */
async function warmUp(url: string, path: string, body: Buffer): Promise<void> {
  const [, model] = /"model": ?"([^"]+)"/.exec(body.subarray(0, 1_000).toString()) ?? []
  const messages = Array.from({ length: 5 }, () => ({ role: 'user', content: [{ type: 'text', text: 'Hi' }] }))
  const input = messages.map((each) => ({ ...each, content: [{ type: 'input_text', text: 'Hi' }] }))
  const ask = path.endsWith('responses') ? { input, store: false } : { messages, max_tokens: 100 }
  const small = Buffer.from(JSON.stringify({ model, ...ask }))
  const whole = answer
  answer = (response) => {
    response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"no"}}')
  }
  for (let call = 0; call < 300; call++) await send(url, path, small)
  answer = whole
}

async function send(url: string, path: string, body: Buffer): Promise<string> {
  try {
    const response = await request(url + path, { method: 'POST', headers, body, dispatcher })
    let bytes = 0
    let last = ''
    for await (const chunk of response.body) {
      bytes += chunk.length
      last = `${last}${chunk}`.slice(-300)
    }
    const code = /"(?:code|type)": ?"((?:provider|invalid|internal|too|api|model)\w*)"/.exec(last)?.[1] ?? ''
    if (process.env.BENCH_SHOW) console.error(last)
    return `${response.statusCode} ${code} ${bytes} bytes`
  } catch (error) {
    return `broke: ${(error as Error).message}`
  }
}
