/**
 * What streams on other threads notice of a body of 50 MB on one: the longest time between two of their chunks, which the upstream
 * writes every 5 ms, without a body and with each shape of it in turn. `npm run bench -- neighbours [rounds] [threads]`.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Asked, Sent } from './large-bodies.ts'
import { median } from './load.ts'
import { startMeasured } from './measured.ts'
import { here, startRouter } from './subjects.ts'
import { pacedStream } from './ways.ts'

const rounds = Number(process.argv[3] ?? 5)
const threads = Number(process.argv[4] ?? 4)
const streams = 12
const shapes = [
  'nothing',
  'one text',
  'many values',
  'an image',
  'one text, mapped',
  'many values, mapped',
  'one text, stored',
] as const

/** The time between two chunks of a stream, and when the second came; the last one waits until the row of the call is on disk. Milliseconds. */
type Gap = { port: number; at: number; ms: number; isLast: boolean }
type Row = { inside: number[]; last: number[]; same: number[]; took: number[]; status: number }
const gaps: Gap[] = []
let isOver = false

process.env.BENCH_CONNECTIONS = '1'
const upstream = await startMeasured('upstream.ts')
const sender = fork(join(import.meta.dirname, 'large-bodies.ts'), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
const [{ url: provider }] = (await once(sender, 'message')) as [{ url: string }]
const router = await startRouter(here, upstream.url, { threads, anthropic: provider })
const running = Promise.all(Array.from({ length: streams }, readStreams))
await setTimeout(5_000)

const found = new Map<string, Row>()
for (let round = 0; round <= rounds; round++) {
  for (const shape of shapes) await measure(shape, round)
  console.error(`round ${round} of ${rounds}`)
}
isOver = true
await running
console.table(
  Object.fromEntries(
    [...found].map(([shape, { inside, last, same, took, status }]) => [
      shape,
      {
        status,
        'took ms': Math.round(median(took)),
        'longest gap ms: least': text(Math.min(...inside)),
        median: text(median(inside)),
        most: text(Math.max(...inside)),
        'before the last event, median': text(median(last)),
        'same thread, median': text(median(same)),
      },
    ]),
  ),
)
sender.kill()
await router.stop()
await upstream.stop()
process.exit(0)

/** The longest gap of the streams of other threads while one body is on its way. The first round compiles what it needs. */
async function measure(shape: (typeof shapes)[number], round: number): Promise<void> {
  const begun = performance.now()
  const { port, status } = await send(shape)
  const ended = performance.now()
  const threadOf = new Map((await router.used()).threadOf)
  // A gap that has begun is known when it ends.
  await setTimeout(200)
  const meanwhile = gaps.filter(({ at, ms }) => at > begun && at - ms < ended)
  gaps.length = 0
  if (round === 0) return
  const isSame = (gap: Gap) => threadOf.get(gap.port) === threadOf.get(port)
  const longest = (some: (gap: Gap) => boolean) => Math.max(0, ...meanwhile.filter(some).map(({ ms }) => ms))
  const row: Row = found.get(shape) ?? { inside: [], last: [], same: [], took: [], status }
  found.set(shape, row)
  row.inside.push(longest((gap) => !isSame(gap) && !gap.isLast))
  row.last.push(longest((gap) => !isSame(gap) && gap.isLast))
  row.same.push(longest(isSame))
  row.took.push(ended - begun)
}

async function send(shape: (typeof shapes)[number]): Promise<Sent> {
  if (shape === 'nothing') return await setTimeout(1_000, { port: -1, status: 0 })
  const asked: Asked = { url: router.url, key: router.key, shape }
  sender.send(asked)
  const [sent] = (await once(sender, 'message')) as [Sent]
  return sent
}

/** One stream after the other on one connection, until all is over. */
async function readStreams(): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const body = JSON.stringify(pacedStream)
  const headers = { authorization: `Bearer ${router.key}`, 'content-type': 'application/json' }
  while (!isOver) {
    const call = request(`${router.url}/v1/chat/completions`, { method: 'POST', headers, agent })
    call.end(body)
    const [response] = await once(call, 'response')
    let before: number | undefined
    for await (const chunk of response) {
      const at = performance.now()
      const isLast = String(chunk).includes('[DONE]')
      if (before !== undefined) gaps.push({ port: call.socket?.localPort ?? 0, at, ms: at - before, isLast })
      before = at
    }
  }
  agent.destroy()
}

function text(ms: number): string {
  return ms.toFixed(1)
}
