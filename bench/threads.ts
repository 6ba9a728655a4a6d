/**
 * The router with several threads on all cores beside one thread on one core. The load and the upstream use the same cores as the
 * router in both, one or all, so that they take the same share of its caches and time. And as several processes that know nothing of
 * each other: what those cost more than one is due to the cores, and the rest to what threads tell each other. In a round all of
 * them run and take turns within seconds, so that they have the same machine, whoever else uses it.
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
const scenario: Scenario = { name: 'whole replies', stream: false, calls: 6_000, warm: 0, concurrent: 64 }
const turnsPerRound = 8
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
const cases = [onOne, one, together, apart]

const upstreams = new Map<string, Measured>()
for (const cpus of [oneCore, allCores]) upstreams.set(cpus, await startMeasured('upstream.ts', {}, { cpus }))
const found = new Map<Case, Row[]>(cases.map((each) => [each, []]))
for (let round = 1; round <= rounds; round++) {
  const running = new Map<Case, Router[]>()
  for (const each of cases) running.set(each, await started(each))
  for (let turn = 0; turn < turnsPerRound; turn++)
    for (const [each, routers] of running) found.get(each)?.push(await measureAll(each, routers))
  await Promise.all([...running.values()].flat().map((router) => router.stop()))
  console.error(`round ${round} of ${rounds}`)
}

const of = (each: Case, figure: keyof Row) => median((found.get(each) ?? []).map((row) => row[figure]))
/** The median of the ratios of one turn each. */
const ratio = (figure: keyof Row, of1: Case, of2: Case) => {
  const [rows, others] = [found.get(of1) ?? [], found.get(of2) ?? []]
  return median(rows.map((row, turn) => row[figure] / (others[turn]?.[figure] ?? Number.NaN)))
}
console.table(
  Object.fromEntries(
    cases.map((each) => [
      each.name,
      {
        'calls/s': of(each, 'callsPerSecond').toFixed(0),
        'CPU µs/call': of(each, 'allUs').toFixed(0),
        '÷ 1 thread, 1 core': ratio('allUs', each, onOne).toFixed(2),
        'main threads µs/call': of(each, 'mainUs').toFixed(0),
        'load µs/call': of(each, 'loadUs').toFixed(0),
        'p50 ms': of(each, 'p50').toFixed(2),
        'p99 ms': of(each, 'p99').toFixed(2),
        'RSS MB': of(each, 'rssMb').toFixed(0),
      },
    ]),
  ),
)
const dearer = ratio('allUs', together, onOne)
console.log(
  `${several} threads on ${cores} cores ÷ one thread on one core: ${ratio('callsPerSecond', together, onOne).toFixed(2)}`,
)
console.log(`what they would serve if the load took nothing of the cores: ${(cores / dearer).toFixed(2)}`)
console.log(`CPU of a call ÷ that of one thread on one core: ${dearer.toFixed(2)}`)
console.log(`CPU of a call ÷ that of processes: ${ratio('allUs', together, apart).toFixed(2)}`)
process.exit(0)

/** The routers of a case, when V8 has compiled their code. */
async function started(each: Case): Promise<Router[]> {
  const { processes, threads, cpus } = each
  const url = upstreams.get(cpus)?.url ?? ''
  const routers = await Promise.all(Array.from({ length: processes }, () => startRouter(here, url, { threads, cpus })))
  await measureAll(each, routers, { ...scenario, calls: processes, warm: warmPerThread * several })
  return routers
}

/** All routers at once, each with its share of the calls. */
async function measureAll(
  { cpus }: Case,
  routers: readonly Router[],
  { calls, concurrent, ...work } = scenario,
): Promise<Row> {
  const { length } = routers
  pin(process.pid, cpus)
  const share = {
    ...work,
    calls: calls / length,
    warm: work.warm / length,
    concurrent: Math.round(concurrent / length),
  }
  const before = await usedBy(cpus, routers)
  const figures = await Promise.all(routers.map((router) => measure(router, chatSame, share)))
  const after = await usedBy(cpus, routers)
  const sum = (figure: 'callsPerSecond' | 'rssMb') => figures.reduce((total, row) => total + row[figure], 0)
  const per = (of: keyof typeof before) => (after[of] - before[of]) / calls
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
async function usedBy(cpus: string, routers: readonly Router[]): Promise<{ all: number; main: number; load: number }> {
  const used = await Promise.all(routers.map((router) => router.used()))
  const { user, system } = process.cpuUsage()
  return {
    all: used.reduce((total, { cpuUs }) => total + cpuUs, 0),
    main: used.reduce((total, { mainUs = 0 }) => total + mainUs, 0),
    load: user + system + ((await upstreams.get(cpus)?.used())?.cpuUs ?? 0),
  }
}
