/** A database of many keys and rows: made, then asked what a router asks of it. Goals in brackets. */
import { spawn, spawnSync } from 'node:child_process'
import { randomInt, randomUUIDv7 } from 'node:crypto'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import type { CallRecord } from '../src/core/call.ts'
import { openStore } from '../src/store/open.ts'
import type { UsageQuery } from '../src/store/queries/usage-query.ts'
import { percentile } from './load.ts'
import { busy, keyHash, keyId, large, makeDatabase, organizationId, type Size } from './store-data.ts'

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    keys: { type: 'string', default: '1000000' },
    rows: { type: 'string', default: '10000000' },
    /** One that an earlier run has made and kept. */
    database: { type: 'string' },
    keep: { type: 'boolean' },
  },
})
const end = Math.floor(Date.now() / 3_600_000) * 3_600_000
const size: Size = { keys: Number(values.keys), rows: Number(values.rows), organizations: 100, days: 90, end }
const folder = mkdtempSync(join(tmpdir(), 'bench-store-'))
const path = values.database ?? join(folder, 'router.sqlite')
process.once('exit', () => {
  if (!values.keep) rmSync(folder, { recursive: true, force: true })
})
process.once('SIGINT', () => process.exit(130))

if (values.database === undefined) {
  console.log(`making ${size.keys} keys and ${size.rows} rows in ${folder}`)
  await makeDatabase(path, size, (text) => console.log(`  ${text}`))
}
console.log(`  ${(statSync(path).size / 2 ** 30).toFixed(1)} GB\n`)

await start('on an empty database', join(folder, 'empty.sqlite'))
forget()
await start('cold', path)
await start('warm', path)
await lookups('cold')
await lookups('warm')
await usageQueries()
await settling()

/** Without this the files would be read from memory: the system has just written them. */
function forget(): boolean {
  const done = spawnSync('dd', [`if=${path}`, 'iflag=nocache', 'count=0', 'status=none'])
  return done.status === 0
}

/** From the start of the process to its first answer. */
async function start(how: string, database: string): Promise<void> {
  const config = join(folder, 'config.yaml')
  const root = join(import.meta.dirname, '..')
  const folders = { providers: join(root, 'providers'), catalog: join(root, 'catalog') }
  const port = await freePort()
  writeFileSync(
    config,
    JSON.stringify({ server: { host: '127.0.0.1', port }, store: { url: `sqlite:${database}` }, folders }),
  )
  const begun = performance.now()
  const router = spawn(process.execPath, [join(root, 'src/start.js'), 'serve', '--config', config], { stdio: 'ignore' })
  const ended = new Promise((resolve) => router.once('exit', resolve))
  while (router.exitCode === null && !(await answers(`http://127.0.0.1:${port}/ready`)))
    await new Promise((resolve) => setTimeout(resolve, 5))
  const tookMs = performance.now() - begun
  if (router.exitCode !== null) throw new Error('the router did not start')
  router.kill('SIGTERM')
  await ended
  line(`router started, ${how}`, `${tookMs.toFixed(0)} ms`, '< 2 s')
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function answers(url: string): Promise<boolean> {
  return await fetch(url).then(
    (response) => response.status === 200,
    () => false,
  )
}

/** Keys by the hash of their secret, as a call finds its own: each once, in no order. */
async function lookups(how: 'cold' | 'warm'): Promise<void> {
  if (how === 'cold') forget()
  const store = await openStore(`sqlite:${path}`)
  const tookUs = (
    await Promise.all(
      Array.from({ length: 20_000 }, async () => {
        const hash = keyHash(randomInt(size.keys))
        const begun = performance.now()
        if (!(await store.keys.findByHash(hash))) throw new Error('a key is missing')
        return (performance.now() - begun) * 1_000
      }),
    )
  ).sort((one, other) => one - other)
  await store.close()
  const [p50, p99, worst] = [percentile(tookUs, 0.5), percentile(tookUs, 0.99), tookUs.at(-1) ?? 0]
  line(
    `key lookup, ${how}`,
    `p50 ${p50.toFixed(0)} µs, p99 ${p99.toFixed(0)} µs, worst ${worst.toFixed(0)} µs`,
    'p99 < 1 ms',
  )
}

async function usageQueries(): Promise<void> {
  const month = {
    organization: organizationId(large),
    from: end - 30 * 86_400_000,
    to: end,
    resolution: 'day',
  } as const
  const small = organizationId(1)
  const questions: [name: string, goal: string, question: UsageQuery][] = [
    ['large organization by day', '< 200 ms', { ...month, groupBy: [] }],
    ['large organization by model', '< 200 ms', { ...month, groupBy: ['model'] }],
    ['large organization by hour and model', '< 200 ms', { ...month, resolution: 'hour', groupBy: ['model'] }],
    ['busy key by day', '< 200 ms', { ...month, key: keyId(busy), groupBy: [] }],
    ['busy key by model', '< 200 ms', { ...month, key: keyId(busy), groupBy: ['model'] }],
    ['any key by day', '< 200 ms', { ...month, key: keyId(size.keys - 10), groupBy: [] }],
    ['organization by key and month', '', { ...month, organization: small, resolution: 'month', groupBy: ['key'] }],
    ['large organization by label', '', { ...month, groupBy: ['label.team'] }],
    ['organization by user', '', { ...month, organization: small, groupBy: ['user'] }],
    ['organization by extra.task', '', { ...month, organization: small, groupBy: ['extra.task'] }],
    ['busy key by user', '', { ...month, key: keyId(busy), groupBy: ['user'] }],
    ['large organization by user', '', { ...month, resolution: 'month', groupBy: ['user'] }],
  ]
  for (const [name, goal, question] of questions) {
    forget()
    const store = await openStore(`sqlite:${path}`)
    await store.usage.query({ ...question, organization: 'nobody' })
    const loop = monitorEventLoopDelay({ resolution: 5 })
    loop.enable()
    const tookMs: number[] = []
    let rows = 0
    for (let round = 0; round < 4; round++) {
      const begun = performance.now()
      rows = (await store.usage.query(question)).length
      tookMs.push(performance.now() - begun)
    }
    loop.disable()
    await store.close()
    const [cold = 0, ...warm] = tookMs
    const blocked = (loop.max / 1e6).toFixed(0)
    line(
      `usage, ${name}`,
      `cold ${cold.toFixed(0)} ms, warm ${percentile(
        warm.sort((one, other) => one - other),
        0.5,
      ).toFixed(0)} ms, ${rows} rows, loop ${blocked} ms`,
      goal,
    )
  }
}

/** Batches of calls of random keys, by the thread that writes. */
async function settling(): Promise<void> {
  const store = await openStore(`sqlite:${path}`)
  const writer = store.ledger.openWriter()
  // The code of the thread is compiled while it runs.
  for (let round = 0; round < 20; round++) await writer.write(Array.from({ length: 100 }, settledCall))
  for (const calls of [1, 20, 200]) {
    const batches = Array.from({ length: 50 }, () => Array.from({ length: calls }, settledCall))
    const tookMs: number[] = []
    const before = process.cpuUsage()
    for (const batch of batches) {
      const begun = performance.now()
      await writer.write(batch)
      tookMs.push(performance.now() - begun)
    }
    const { user, system } = process.cpuUsage(before)
    tookMs.sort((one, other) => one - other)
    const perCall = (user + system) / (50 * calls)
    line(
      `settling ${calls} calls at once`,
      `p50 ${percentile(tookMs, 0.5).toFixed(1)} ms, p99 ${percentile(tookMs, 0.99).toFixed(1)} ms, CPU ${perCall.toFixed(0)} µs per call`,
      '',
    )
  }
  await writer.close()
  await store.close()
}

function settledCall(): CallRecord {
  const key = randomInt(size.keys)
  const model = randomInt(20)
  return {
    id: randomUUIDv7(),
    at: end,
    organization: organizationId(key % 10 === 0 ? large : 1 + (key % (size.organizations - 1))),
    key: keyId(key),
    api: 'chat',
    operation: 'chat',
    requested: `provider-${model % 5}/model-${model}`,
    provider: `provider-${model % 5}`,
    model: `model-${model}`,
    stream: false,
    outcome: 'complete',
    status: 200,
    usage: { input: 1_000, output: 200 },
    cost: { nanoUsd: 1_400_000, parts: { input: 1_000_000, output: 400_000 }, priceVersion: '0123456789ab' },
    dropped: [],
    attempts: 1,
    durationMs: 900,
  }
}

function line(what: string, figures: string, goal: string): void {
  console.log(`${what.padEnd(44)} ${figures}${goal && `   (${goal})`}`)
}
