/** What counting costs a call, and what a scrape of many series takes and holds. `npm run bench -- metrics`. */
import type { CallRecord } from '../src/core/call.ts'
import { CallMetrics } from '../src/observe/call-metrics.ts'
import { writeMetrics } from '../src/observe/exposition.ts'
import { median } from './load.ts'

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
