/**
 * What counting costs a call, what a scrape of many series takes and holds, and the router with metrics beside itself without them.
 * `npm run bench -- metrics [pairs]`.
 */
import type { CallRecord } from '../src/core/call.ts'
import { CallMetrics } from '../src/observe/call-metrics.ts'
import { writeMetrics } from '../src/observe/exposition.ts'
import { median } from './load.ts'
import { startMeasured } from './measured.ts'
import { here, startRouter } from './subjects.ts'
import { chatSame, measure, scenarios } from './ways.ts'

const models = 150
const metrics = new CallMetrics({ series: 1_000, labels: [] })
const record = (index: number): CallRecord => ({
  id: String(index),
  at: 0,
  organization: 'o',
  key: 'k',
  api: 'chat',
  operation: 'chat',
  requested: 'm',
  provider: 'provider',
  model: `model-${index % models}`,
  stream: true,
  outcome: 'complete',
  status: 200,
  usage: { input: 100 + index, output: 200 },
  cost: { nanoUsd: 1_234, parts: {}, priceVersion: '' },
  dropped: [],
  attempts: 1,
  durationMs: 800 + index,
  firstEventMs: 120,
})
const records = Array.from({ length: 1_000 }, (_, index) => record(index))
const count = () => {
  const begun = performance.now()
  for (let round = 0; round < 200; round++) for (const one of records) metrics.count(one)
  return ((performance.now() - begun) * 1_000) / 200 / records.length
}
for (let round = 0; round < 5; round++) count()
const counts = Array.from({ length: 9 }, count)
await scrape()
const scrapes = []
for (let round = 0; round < 9; round++) scrapes.push(await scrape())
console.table({
  'µs to count a call': Number(median(counts).toFixed(2)),
  'series of a scrape': scrapes[0]?.series,
  'ms of a scrape': Number(median(scrapes.map(({ ms }) => ms)).toFixed(1)),
  'ms that it holds the event loop at most': Number(median(scrapes.map(({ held }) => held)).toFixed(1)),
})

const pairs = Number(process.argv[3] ?? 3)
const upstream = await startMeasured('upstream.ts', {}, { cpus: '0' })
const [whole, , streams] = scenarios
const found: { whole: number[]; chunk: number[] } = { whole: [], chunk: [] }
for (let pair = 0; pair < pairs; pair++) {
  // Each is first in turn: the machine may become slower or faster meanwhile.
  const order = pair % 2 === 0 ? [true, false] : [false, true]
  const figures = new Map<boolean, { whole: number; chunk: number }>()
  for (const enabled of order) figures.set(enabled, await routerWith(enabled))
  const [on, off] = [figures.get(true), figures.get(false)]
  if (!on || !off) continue
  found.whole.push(on.whole - off.whole)
  found.chunk.push(on.chunk - off.chunk)
  console.log(`${on.whole.toFixed(1)} µs a call with metrics, ${off.whole.toFixed(1)} without`)
}
console.table({
  'µs that metrics add to a call (median of pairs)': Number(median(found.whole).toFixed(1)),
  'µs that they add to a chunk': Number(median(found.chunk).toFixed(2)),
})
await upstream.stop()
process.exit(0)

async function routerWith(enabled: boolean) {
  const router = await startRouter(here, upstream.url, { cpus: '1', lines: `metrics: { enabled: ${enabled} }\n` })
  try {
    if (!whole || !streams) throw new Error('there are no scenarios')
    const { cpuUs } = await measure(router, chatSame, whole)
    return { whole: cpuUs, chunk: (await measure(router, chatSame, streams)).cpuUs }
  } finally {
    await router.stop()
  }
}

async function scrape() {
  const begun = performance.now()
  let last = begun
  let held = 0
  let isOver = false
  const look = () => {
    const now = performance.now()
    held = Math.max(held, now - last)
    last = now
    if (!isOver) setImmediate(look)
  }
  setImmediate(look)
  const families = metrics.families()
  await writeMetrics(families)
  const ms = performance.now() - begun
  isOver = true
  await new Promise(setImmediate)
  return { ms, held, series: families.reduce((sum, { samples }) => sum + samples.length, 0) }
}
