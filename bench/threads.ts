/**
 * The router with several threads on all cores beside one thread on one core. The load and the upstream use the same cores as the
 * router in both, one or all, so that they take the same share of its caches and time. And as several processes that know nothing of
 * each other: what those cost more than one is due to the cores, and the rest to what threads tell each other.
 * `npm run bench -- threads [rounds] [threads]`.
 */
import { availableParallelism } from 'node:os'
import { median } from './load.ts'
import { type Measured, pin, startMeasured } from './measured.ts'
import { here, type Router, startRouter } from './subjects.ts'
import { chatSame, measure, type Scenario } from './ways.ts'

const rounds = Number(process.argv[3] ?? 3)
const several = Number(process.argv[4] ?? availableParallelism())
const cores = availableParallelism()
const scenario: Scenario = { name: 'whole replies', stream: false, calls: 20_000, warm: 0, concurrent: 64 }
/** Each thread compiles the code for itself. */
const warmPerThread = 25_000

/** CPU in microseconds per call: of the router, of its main threads, of the load and the upstream. */
type Row = {
  callsPerSecond: number
  p50: number
  p99: number
  rssMb: number
  allUs: number
  mainUs: number
  loadUs: number
}
type Case = { name: string; processes: number; threads: number; cpus: string }
const [oneCore, allCores] = ['0', `0-${cores - 1}`]
const onOne: Case = { name: '1 thread, 1 core', processes: 1, threads: 1, cpus: oneCore }
const one: Case = { name: '1 thread', processes: 1, threads: 1, cpus: allCores }
const together: Case = { name: `${several} threads`, processes: 1, threads: several, cpus: allCores }
const apart: Case = { name: `${several} processes`, processes: several, threads: 1, cpus: allCores }

let upstream: Measured
const found = new Map<Case, Row[]>()
for (let round = 1; round <= rounds; round++) {
  for (const each of [onOne, one, together, apart]) {
    const { processes, threads, cpus } = each
    pin(process.pid, cpus)
    upstream = await startMeasured('upstream.ts', {}, { cpus })
    const routers = await Promise.all(
      Array.from({ length: processes }, () => startRouter(here, upstream.url, { threads, cpus })),
    )
    found.set(each, [...(found.get(each) ?? []), await measureAll(routers, threads)])
    await Promise.all(routers.map((router) => router.stop()))
    await upstream.stop()
  }
  console.error(`round ${round} of ${rounds}`)
}

const of = (each: Case, figure: keyof Row) => median((found.get(each) ?? []).map((row) => row[figure]))
const ratio = (figure: keyof Row, of1: Case, of2: Case) => (of(of1, figure) / of(of2, figure)).toFixed(2)
console.table(
  Object.fromEntries(
    [...found.keys()].map((each) => [
      each.name,
      {
        'calls/s': of(each, 'callsPerSecond').toFixed(0),
        'CPU µs/call': of(each, 'allUs').toFixed(0),
        '÷ 1 thread, 1 core': ratio('allUs', each, onOne),
        'main threads µs/call': of(each, 'mainUs').toFixed(0),
        'load µs/call': of(each, 'loadUs').toFixed(0),
        'p50 ms': of(each, 'p50').toFixed(2),
        'p99 ms': of(each, 'p99').toFixed(2),
        'RSS MB': of(each, 'rssMb').toFixed(0),
      },
    ]),
  ),
)
/** What a router would serve if the load took nothing of its cores. */
const alone = (each: Case, onCores: number) => (onCores * 1e6) / of(each, 'allUs')
const own = alone(together, cores) / alone(onOne, 1)
console.log(
  `${several} threads on ${cores} cores ÷ one thread on one core: ${ratio('callsPerSecond', together, onOne)}`,
)
console.log(`the same without the CPU of the load: ${own.toFixed(2)}`)
console.log(`CPU of a call ÷ that of one thread on one core: ${ratio('allUs', together, onOne)}`)
console.log(`CPU of a call ÷ that of processes: ${ratio('allUs', together, apart)}`)
process.exit(0)

/** All routers at once, each with its share of the calls. */
async function measureAll(routers: readonly Router[], threads: number): Promise<Row> {
  const { length } = routers
  const share = { ...scenario, calls: scenario.calls / length, concurrent: Math.round(scenario.concurrent / length) }
  const all = (work: Scenario) => Promise.all(routers.map((router) => measure(router, chatSame, work)))
  await all({ ...share, calls: 1, warm: warmPerThread * threads })
  const before = await usedBy(routers)
  const figures = await all(share)
  const after = await usedBy(routers)
  const sum = (figure: 'callsPerSecond' | 'rssMb') => figures.reduce((total, row) => total + row[figure], 0)
  const per = (of: keyof typeof before) => (after[of] - before[of]) / scenario.calls
  return {
    callsPerSecond: sum('callsPerSecond'),
    rssMb: sum('rssMb'),
    p50: median(figures.map(({ p50 }) => p50)),
    p99: Math.max(...figures.map(({ p99 }) => p99)),
    allUs: per('all'),
    mainUs: per('main'),
    loadUs: per('load'),
  }
}

/** CPU so far; the load is this process and the upstream. */
async function usedBy(routers: readonly Router[]): Promise<{ all: number; main: number; load: number }> {
  const used = await Promise.all(routers.map((router) => router.used()))
  const { user, system } = process.cpuUsage()
  return {
    all: used.reduce((total, { cpuUs }) => total + cpuUs, 0),
    main: used.reduce((total, { mainUs = 0 }) => total + mainUs, 0),
    load: user + system + (await upstream.used()).cpuUs,
  }
}
