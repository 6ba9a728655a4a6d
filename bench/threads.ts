/**
 * The router with one thread and with several, on all cores, beside the load and the upstream: `npm run bench -- threads [rounds]
 * [threads]`. What the load takes is counted: `calls/s alone` is what the router would do with all cores to itself, from its CPU
 * per call where it keeps all cores busy, and as measured where a single event loop is what limits it.
 */
import { availableParallelism } from 'node:os'
import { median } from './load.ts'
import { startMeasured } from './measured.ts'
import { here, startRouter } from './subjects.ts'
import { chatSame, type Figures, measure, type Scenario } from './ways.ts'

const rounds = Number(process.argv[3] ?? 3)
const several = Number(process.argv[4] ?? availableParallelism())
const cores = availableParallelism()
const scenario: Scenario = { name: 'whole replies', stream: false, calls: 8_000, warm: 4_000, concurrent: 64 }

type Row = Figures & { loadUs: number }

const upstream = await startMeasured('upstream.ts')
const found = new Map<number, Row[]>()
for (let round = 1; round <= rounds; round++) {
  for (const threads of [1, several]) {
    const router = await startRouter(here, upstream.url, { threads })
    const before = await loadCpu()
    const figures = await measure(router, chatSame, scenario)
    const loadUs = ((await loadCpu()) - before) / (scenario.calls + scenario.warm)
    await router.stop()
    found.set(threads, [...(found.get(threads) ?? []), { ...figures, loadUs }])
  }
  console.error(`round ${round} of ${rounds}`)
}

const of = (threads: number, figure: keyof Row) => median((found.get(threads) ?? []).map((row) => row[figure]))
const alone = (threads: number) =>
  threads === 1 ? of(1, 'callsPerSecond') : Math.min(threads, cores) * (1e6 / of(threads, 'cpuUs'))
console.table(
  Object.fromEntries(
    [...found.keys()].map((threads) => [
      `${threads} thread${threads === 1 ? '' : 's'}`,
      {
        'calls/s': of(threads, 'callsPerSecond').toFixed(0),
        'CPU µs/call': of(threads, 'cpuUs').toFixed(0),
        '÷ one thread': (of(threads, 'cpuUs') / of(1, 'cpuUs')).toFixed(2),
        'load µs/call': of(threads, 'loadUs').toFixed(0),
        'calls/s alone': alone(threads).toFixed(0),
        'p50 ms': of(threads, 'p50').toFixed(2),
        'p99 ms': of(threads, 'p99').toFixed(2),
        'RSS MB': of(threads, 'rssMb').toFixed(0),
      },
    ]),
  ),
)
console.log(`${several} threads ÷ one, alone: ${(alone(several) / alone(1)).toFixed(2)}`)
await upstream.stop()
process.exit(0)

/** Of the load, which is this process, and of the upstream. */
async function loadCpu(): Promise<number> {
  const { user, system } = process.cpuUsage()
  return user + system + (await upstream.used()).cpuUs
}
