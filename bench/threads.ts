/**
 * The router with one thread and with several, on all cores, beside the load and the upstream: `npm run bench -- threads [rounds]
 * [threads]`. What the load takes of the cores is left out of `calls/s alone`, what the router would do with all of them: one
 * thread is limited by its event loop, several by the cores.
 */
import { availableParallelism } from 'node:os'
import { median } from './load.ts'
import { startMeasured } from './measured.ts'
import { here, startRouter } from './subjects.ts'
import { chatSame, type Figures, measure, type Scenario } from './ways.ts'

const rounds = Number(process.argv[3] ?? 3)
const several = Number(process.argv[4] ?? availableParallelism())
const cores = availableParallelism()
const scenario: Scenario = { name: 'whole replies', stream: false, calls: 20_000, warm: 0, concurrent: 64 }
/** Each thread compiles the code for itself. */
const warmPerThread = 25_000

/** CPU in microseconds per call: of all threads, of the main one, of the load and the upstream. */
type Row = Figures & { allUs: number; mainUs: number; loadUs: number }

const upstream = await startMeasured('upstream.ts')
const found = new Map<number, Row[]>()
for (let round = 1; round <= rounds; round++) {
  for (const threads of [1, several]) {
    const router = await startRouter(here, upstream.url, { threads })
    await measure(router, chatSame, { ...scenario, calls: 1, warm: warmPerThread * threads })
    const [usedBefore, loadBefore] = [await router.used(), await loadCpu()]
    const figures = await measure(router, chatSame, scenario)
    const [used, loaded] = [await router.used(), await loadCpu()]
    const per = (all: number) => all / scenario.calls
    const allUs = per(used.cpuUs - usedBefore.cpuUs)
    const mainUs = per((used.mainUs ?? 0) - (usedBefore.mainUs ?? 0))
    await router.stop()
    const row = { ...figures, allUs, mainUs, loadUs: per(loaded - loadBefore) }
    found.set(threads, [...(found.get(threads) ?? []), row])
  }
  console.error(`round ${round} of ${rounds}`)
}

const of = (threads: number, figure: keyof Row) => median((found.get(threads) ?? []).map((row) => row[figure]))
/** One event loop is busy with each call for what it takes of the main thread, several share all cores. */
const alone = (threads: number) => (threads === 1 ? 1e6 / of(1, 'mainUs') : (cores * 1e6) / of(threads, 'allUs'))
console.table(
  Object.fromEntries(
    [...found.keys()].map((threads) => [
      `${threads} thread${threads === 1 ? '' : 's'}`,
      {
        'calls/s': of(threads, 'callsPerSecond').toFixed(0),
        'CPU µs/call': of(threads, 'allUs').toFixed(0),
        '÷ one thread': (of(threads, 'allUs') / of(1, 'allUs')).toFixed(2),
        'main thread µs/call': of(threads, 'mainUs').toFixed(0),
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
