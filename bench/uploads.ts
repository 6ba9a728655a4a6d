/**
 * Many transcriptions of large files at once: how much memory the router takes for them, how long its event loop is held, and that
 * no file is left. `npm run bench -- uploads [calls] [megabytes]`.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { lateFlags, serverFlags, serverVariables } from '../src/runtime/restart.ts'
import { startMeasured } from './measured.ts'

const calls = Number(process.argv[3] ?? 100)
const megabytes = Number(process.argv[4] ?? 30)
const key = 'ir-bench-key-of-the-benches'
const dispatcher = new Agent({ headersTimeout: 600_000, bodyTimeout: 600_000, connections: calls })

/** A frame of MPEG audio: 26 milliseconds at 128 kbit/s. Half a mebibyte of them at a time. */
const frame = Buffer.alloc(417)
frame.set([0xff, 0xfb, 0x90, 0])
const piece = Buffer.concat(Array(1_257).fill(frame))

let received = 0
const upstream = createServer(async (incoming, response) => {
  for await (const chunk of incoming) received += chunk.length
  const usage = { type: 'duration', seconds: 60 }
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ text: 'Hello.', usage }))
})
await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
const upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`

const router = await startMeasured(
  'router.ts',
  { ...serverVariables, BENCH_UPSTREAM: upstreamUrl, BENCH_KEY: key },
  { flags: [...serverFlags, ...lateFlags(1)] },
)
for (let call = 0; call < 20; call++) await transcribe(1)
await setTimeout(500)
const before = await router.used()
received = 0
const begun = performance.now()
const statuses = await Promise.all(Array.from({ length: calls }, () => transcribe(megabytes * 2)))
const seconds = (performance.now() - begun) / 1_000
await setTimeout(100)
const after = await router.used()
const mega = 1024 * 1024
console.table({
  [`${calls} calls of ${megabytes} MB`]: {
    answered: statuses.filter((status) => status === 200).length,
    'sent on MB': Math.round(received / mega),
    seconds: Math.round(seconds * 10) / 10,
    'CPU s': Math.round((after.cpuUs - before.cpuUs) / 100_000) / 10,
    'RSS grown MB': Math.round((after.mostRss - before.rss) / mega),
    'held ms': Math.round(after.heldMs),
  },
})
await router.stop()
process.exit(0)

/** Sends so many pieces; returns the status of the answer. */
async function transcribe(pieces: number): Promise<number> {
  const field = (head: string) => `--b\r\ncontent-disposition: form-data; ${head}\r\n\r\n`
  const begin = `${field('name="model"')}same/heard\r\n${field('name="file"; filename="a.mp3"')}`
  const end = '\r\n--b--\r\n'
  const { statusCode, body } = await request(`${router.url}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'multipart/form-data; boundary=b',
      'content-length': String(begin.length + pieces * piece.length + end.length),
    },
    body: Readable.from([begin, ...Array.from({ length: pieces }, () => piece), end]),
    dispatcher,
  })
  await body.dump()
  return statusCode
}
