/**
 * A thousand streams at once for some minutes, while half the clients leave and the provider breaks off, fails and is busy at random:
 * what the router keeps of it, beside what it has kept of a first minute of the same. Ends with 1 if that is a tenth more memory, an
 * open file, a hold, or books that do not balance. `npm run bench -- soak [minutes] [streams]`.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { load } from './load.ts'
import { firstKey, here, startRouter } from './subjects.ts'

const minutes = Number(process.argv[3] ?? 10)
const streams = Number(process.argv[4] ?? 1_000)
const words = 60
const wordMs = 200
const usage = { prompt_tokens: 20, completion_tokens: words, total_tokens: 20 + words }

const chatBody = JSON.stringify({
  model: 'openai/gpt-4o-mini',
  stream: true,
  max_tokens: 100,
  messages: [{ role: 'user', content: 'Hello' }],
})

/** What becomes of a request at the provider: most are answered. */
const faults = [
  'none',
  'none',
  'none',
  'none',
  'none',
  'none',
  'cut',
  'cut',
  'status',
  'busy',
  'reset',
  'silent',
] as const

const provider = createServer((incoming, response) => {
  incoming.resume().on('end', () => void answer(response))
})
provider.listen(0, '127.0.0.1')
await new Promise((resolve) => provider.once('listening', resolve))
const { port } = provider.address() as AddressInfo

async function answer(response: ServerResponse): Promise<void> {
  const fault = hasBegun ? (faults[Math.floor(Math.random() * faults.length)] ?? 'none') : 'none'
  if (fault === 'status') return void response.writeHead(500).end('{"error":{"message":"failed"}}')
  if (fault === 'busy') return void response.writeHead(429, { 'retry-after': '1' }).end('{"error":{"message":"busy"}}')
  if (fault === 'reset') return void response.socket?.resetAndDestroy()
  if (!hasBegun) return whole(response)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const last = fault === 'cut' || fault === 'silent' ? Math.floor(Math.random() * words) : words
  for (let at = 0; at < last && !response.closed; at++) {
    response.write(chunk({ content: `w${at} ` }))
    await setTimeout(wordMs)
  }
  if (fault === 'cut') response.destroy()
  else if (fault === 'none')
    response.end(`${chunk({}, 'stop')}${data({ id: 'c', choices: [], usage })}data: [DONE]\n\n`)
}

function whole(response: ServerResponse): void {
  const choices = [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }]
  const body = JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage })
  response.writeHead(200, { 'content-type': 'application/json' }).end(body)
}

function data(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`
}

function chunk(delta: object, finish_reason: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason }]
  return data({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices })
}

let hasBegun = false
const router = await startRouter(here, `http://127.0.0.1:${port}`, {
  // All streams are tried, whatever fails, and silence does not last as long as the soak.
  timeouts: '{ first_event: 10s, between_events: 10s }',
  lines: 'health: { consecutive_failures: 1000000, min_calls: 1000000 }\n',
})
let dispatcher: Agent
const counts = { whole: 0, failed: 0, left: 0, refused: 0 }

async function client(until: number): Promise<void> {
  while (performance.now() < until) {
    const leaver = new AbortController()
    const leavesAt = Math.random() < 0.5 ? Math.floor(Math.random() * words) : Infinity
    try {
      const { statusCode, body } = await request(`${router.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${router.key}`, 'content-type': 'application/json' },
        body: chatBody,
        dispatcher,
        signal: leaver.signal,
      })
      let text = ''
      for await (const piece of body) {
        text += piece
        if (text.split('"content"').length > leavesAt) leaver.abort()
      }
      if (statusCode !== 200) counts.refused++
      else if (text.endsWith('data: [DONE]\n\n')) counts.whole++
      else counts.failed++
      if (statusCode !== 200) await setTimeout(100)
    } catch {
      counts.left++
    }
  }
}

/** Clients for so long, who then close their connections. */
async function clients(ms: number): Promise<void> {
  dispatcher = new Agent({ allowH2: false, connections: 2 * streams })
  const until = performance.now() + ms
  await Promise.all(Array.from({ length: streams }, () => client(until)))
  await dispatcher.destroy()
}

/** What is kept when nothing is asked: V8 collects what has grown old, and gives it back, some time after the last work. */
async function atRest() {
  let rss = Infinity
  for (const until = performance.now() + 90_000; performance.now() < until; await setTimeout(3_000)) {
    rss = Math.min(rss, (await router.used()).rss)
  }
  return { 'RSS MB': Math.round(rss / 1024 ** 2), 'open files': readdirSync(`/proc/${router.pid}/fd`).length }
}

/** Calls that fill the ledger until its cache of 16 MB is full: without them the cache would grow with the soak. */
async function fillLedger(): Promise<void> {
  const body = { ...JSON.parse(chatBody), stream: false }
  const headers = { authorization: `Bearer ${router.key}` }
  await load(`${router.url}/v1/chat/completions`, { calls: 40_000, concurrent: 32, body, headers })
}

await fillLedger()
hasBegun = true
await clients(60_000)
const before = await atRest()
Object.assign(counts, { whole: 0, failed: 0, left: 0, refused: 0 })
await clients(minutes * 60_000)
const after = await atRest()
console.table({ 'after a minute': before, [`after ${minutes} minutes`]: { ...after, ...counts } })
const held = await heldAfter()
const check = ['src/main.ts', 'ledger', 'check', '--config', router.config]
const books = spawnSync(process.execPath, check, { cwd: here, encoding: 'utf8' })
await router.stop()
const failures = [
  after['RSS MB'] > before['RSS MB'] * 1.1 && 'memory is not back within a tenth',
  after['open files'] > before['open files'] + 5 && 'files or connections are open',
  held,
  books.status !== 0 && 'the books do not balance',
].filter(Boolean)
console.log(books.stdout)
console.log(failures.length === 0 ? 'Nothing was left.' : `Left: ${failures.join('; ')}.`)
process.exit(failures.length === 0 ? 0 : 1)

/** A key whose limit is what it has spent and the worst cost of one call more can make that call only if nothing is held. */
async function heldAfter(): Promise<string | false> {
  const headers = { authorization: `Bearer ${firstKey}`, 'content-type': 'application/json' }
  const self = await request(`${router.url}/v1/manage/apikey/self`, {
    headers: { authorization: `Bearer ${router.key}` },
  })
  const known = (await self.body.json()) as { api_key_id: string; monthly_spend?: number }
  const spent = known.monthly_spend ?? 0
  await request(`${router.url}/v1/manage/apikey/${known.api_key_id}/limit`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ monthly_limit: Math.ceil((spent + 0.001) * 1e6) / 1e6 }),
  })
  hasBegun = false
  const { statusCode } = await request(`${router.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${router.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...JSON.parse(chatBody), stream: false }),
  })
  return statusCode !== 200 && `holds: a call that fits was answered with ${statusCode}`
}
