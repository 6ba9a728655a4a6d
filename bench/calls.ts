/** What the console asks of a ledger of many rows: pages of calls by every filter, figures, tables. Goal: 300 ms at p95. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { callsCsv } from '../src/management/calls/calls.ts'
import { openStore } from '../src/store/open.ts'
import type { CallFilters } from '../src/store/queries/call-filters.ts'
import { percentile } from './load.ts'
import { busy, keyId, large, makeDatabase, organizationId } from './store-data.ts'

const { values, positionals } = parseArgs({
  args: process.argv.slice(3),
  options: {
    /** One that an earlier run has made and kept. */
    database: { type: 'string' },
    keep: { type: 'boolean' },
  },
  allowPositionals: true,
})
const rows = Number(positionals[0] ?? 10_000_000)
const end = Math.floor(Date.now() / 3_600_000) * 3_600_000
const folder = mkdtempSync(join(tmpdir(), 'bench-calls-'))
const path = values.database ?? join(folder, 'router.sqlite')
process.once('exit', () => {
  if (!values.keep) rmSync(folder, { recursive: true, force: true })
})
process.once('SIGINT', () => process.exit(130))
if (values.database === undefined) {
  console.log(`making ${rows} rows in ${folder}`)
  // Of ten organizations, one has a tenth of the rows and more: most of them are seen by one page.
  makeDatabase(path, { keys: 100_000, rows, organizations: 10, days: 90, end }, (text) => console.log(`  ${text}`))
}

const filters: { readonly [name: string]: CallFilters } = {
  none: {},
  'busy key': { key: keyId(busy) },
  'rare key': { key: keyId(500) },
  'key of another organization': { key: keyId(1) },
  model: { provider: 'provider-1', model: 'model-6' },
  'unknown model': { provider: 'x', model: 'y' },
  provider: { provider: 'provider-2' },
  'outcome complete': { outcome: 'complete' },
  'outcome failed': { outcome: 'failed' },
  'outcome partial (none)': { outcome: 'partial' },
  'rare code': { code: 'provider_timeout' },
  'code of no call': { code: 'rate_limited' },
  asked: { requested: 'provider-3/model-3' },
  user: { user: 'user 5' },
  'unknown user': { user: 'nobody' },
  'unknown label': { labels: [['team', 'nobody']] },
  label: { labels: [['team', 'team 10']] },
  'field of metadata': { extra: [['task', 'task 3']] },
  'unknown value of a field': { extra: [['task', 'none']] },
  "client's request id": { requestId: 'none' },
  group: { group: 'none' },
  'busy key and unknown user': { key: keyId(busy), user: 'nobody' },
  'rare key and model': { key: keyId(500), provider: 'provider-0', model: 'model-5' },
}
const query = { organization: organizationId(large), from: 0, to: 253_402_300_800_000, limit: 50 }

line('', ['cold', 'p50', 'p95', 'worst'], 'calls on these pages')
for (const [name, chosen] of Object.entries(filters)) await pages(name, chosen)
await figures()
await table()

/** Pages one after the other, as a reader scrolls. */
async function pages(name: string, chosen: CallFilters): Promise<void> {
  const tookMs: number[] = []
  let after: string | undefined
  let found = 0
  forget()
  const store = openStore(`sqlite:${path}`)
  // The thread starts with the first query.
  await store.calls.page({ ...query, organization: 'nobody', filters: {} })
  for (let page = 0; page < 40; page++) {
    const begun = performance.now()
    const { calls, next } = await store.calls.page({ ...query, filters: chosen, ...(after !== undefined && { after }) })
    tookMs.push(performance.now() - begun)
    found += calls.length
    after = next
  }
  store.close()
  line(name, spread(tookMs), String(found))
}

async function figures(): Promise<void> {
  const { organization, to } = query
  const day = { organization, from: end - 86_400_000, to: end }
  const month = { organization, from: end - 30 * 86_400_000, to: end, resolution: 'day' } as const
  const quarter = { ...month, from: end - 89 * 86_400_000 }
  const week = { ...month, from: end - 7 * 86_400_000 }
  // The console counts whole hours, the present one among them.
  const pace = { ...month, from: end - 25 * 3_600_000 }
  const lately = { from: end - 86_400_000, periodMs: 3_600_000 }
  const asked: [string, (store: ReturnType<typeof openStore>) => Promise<unknown>][] = [
    ['latency of a day', ({ calls }) => calls.latency({ ...day, filters: {} })],
    ['latency of a day by model', ({ calls }) => calls.latency({ ...day, filters: {}, groupBy: 'model' })],
    ['latency of all time by key', ({ calls }) => calls.latency({ ...day, from: 0, to, filters: {}, groupBy: 'key' })],
    ['usage of a month', ({ usage }) => usage.query({ ...month, groupBy: [] })],
    ['usage of a month by model', ({ usage }) => usage.query({ ...month, groupBy: ['model'] })],
    ['usage of a day by key', ({ usage }) => usage.query({ ...month, from: end - 86_400_000, groupBy: ['key'] })],
    ['stacked spend of 7 days', ({ usage }) => usage.query({ ...week, resolution: 'hour', groupBy: ['model'] })],
    ['stacked spend of 90 days', ({ usage }) => usage.query({ ...quarter, groupBy: ['model'] })],
    ['spend of a key by model', ({ usage }) => usage.query({ ...month, key: keyId(busy), groupBy: ['model'] })],
    ['pace of a balance', ({ usage }) => usage.query({ ...pace, groupBy: [] })],
    ['pace of keys', ({ usage }) => usage.query({ ...pace, groupBy: ['key'] })],
    ['pace of groups', ({ usage }) => usage.query({ ...pace, groupBy: ['group_id'] })],
    ['targets', ({ calls }) => calls.targets({ organization, ...lately })],
    ['targets of all organizations', ({ calls }) => calls.targets(lately)],
  ]
  for (const [name, ask] of asked) {
    forget()
    const store = openStore(`sqlite:${path}`)
    await store.calls.latency({ ...day, organization: 'nobody', filters: {} })
    await store.usage.query({ ...month, organization: 'nobody', groupBy: [] })
    const tookMs: number[] = []
    for (let round = 0; round < 20; round++) {
      const begun = performance.now()
      await ask(store)
      tookMs.push(performance.now() - begun)
    }
    store.close()
    line(name, spread(tookMs), '')
  }
}

/** A table of all calls of the organization, as far as it comes in some seconds. */
async function table(): Promise<void> {
  const store = openStore(`sqlite:${path}`)
  const { organization, from, to } = query
  const pieces = callsCsv({ organization, from, to, filters: {} }, store, () => {})
  const cpu = process.cpuUsage()
  const begun = performance.now()
  let lines = 0
  let bytes = 0
  while (performance.now() - begun < 3_000) {
    const { value, done } = await pieces.next()
    if (done) break
    lines += value.split('\r\n').length - 1
    bytes += value.length
  }
  const tookMs = performance.now() - begun
  const { user, system } = process.cpuUsage(cpu)
  store.close()
  console.log(
    `table: ${Math.round((lines / tookMs) * 1_000)} lines/s, ${(bytes / tookMs / 1_000).toFixed(1)} MB/s, ` +
      `${((user + system) / lines).toFixed(0)} µs of CPU a line; ${Math.round(process.memoryUsage().rss / 2 ** 20)} MB resident`,
  )
}

/** Without this the file would be read from memory. */
function forget(): void {
  spawnSync('dd', [`if=${path}`, 'iflag=nocache', 'count=0', 'status=none'])
}

function spread([cold = 0, ...warm]: number[]): string[] {
  const sorted = warm.length === 0 ? [cold] : warm.sort((one, other) => one - other)
  return [cold, percentile(sorted, 0.5), percentile(sorted, 0.95), sorted.at(-1) ?? 0].map(
    (ms) => `${ms.toFixed(0)} ms`,
  )
}

function line(name: string, figures: readonly string[], found: string): void {
  console.log(`${name.padEnd(32)}${figures.map((text) => text.padStart(9)).join('')}   ${found}`)
}
