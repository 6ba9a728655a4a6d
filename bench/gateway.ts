/**
 * The router beside a bare Express + undici proxy that parses, adds a field and sends: fresh processes that take turns alone on
 * one core, load and upstream on another. `npm run bench -- gateway [rounds]`: medians of the rounds.
 */
import { median } from './load.ts'
import { pin, startMeasured } from './measured.ts'
import { here, startProxy, startRouter } from './subjects.ts'
import { chatSame, type Figures, measure, type Scenario, scenarios, ways } from './ways.ts'

const bare = 'bare proxy'
const rounds = Number(process.argv[3] ?? 3)
const [loadCpu, subjectCpu] = ['0', '1']
pin(process.pid, loadCpu)
const upstream = await startMeasured('upstream.ts', {}, { cpus: loadCpu })

const found = new Map<Scenario, Map<string, Figures[]>>()
const remember = (scenario: Scenario, name: string, figures: Figures) => {
  const rows = found.get(scenario) ?? new Map<string, Figures[]>()
  found.set(scenario, rows.set(name, [...(rows.get(name) ?? []), figures]))
}

for (let round = 1; round <= rounds; round++) {
  for (const scenario of scenarios)
    remember(scenario, 'upstream itself', await measure({ ...upstream, key: '' }, chatSame, scenario))
  const proxy = await startProxy(upstream.url, { cpus: subjectCpu })
  for (const scenario of scenarios) remember(scenario, bare, await measure(proxy, chatSame, scenario))
  await proxy.stop()
  const router = await startRouter(here, upstream.url, { cpus: subjectCpu })
  for (const scenario of scenarios)
    for (const way of ways) remember(scenario, `router, ${way.name}`, await measure(router, way, scenario))
  await router.stop()
  console.error(`round ${round} of ${rounds}`)
}

for (const [scenario, rows] of found) {
  console.log(`\n${scenario.name}`)
  const of = (name: string, figure: keyof Figures) => median((rows.get(name) ?? []).map((each) => each[figure]))
  const table = [...rows.keys()].map((name) => [
    name,
    {
      [scenario.stream ? 'CPU µs/chunk' : 'CPU µs/call']: of(name, 'cpuUs').toFixed(scenario.stream ? 2 : 0),
      'CPU ÷ bare': (of(name, 'cpuUs') / of(bare, 'cpuUs')).toFixed(2),
      'calls/s': of(name, 'callsPerSecond').toFixed(0),
      'p50 ms': of(name, 'p50').toFixed(2),
      'p99 ms': of(name, 'p99').toFixed(2),
      'first byte p50 ms': of(name, 'firstP50').toFixed(2),
      'first byte p99 ms': of(name, 'firstP99').toFixed(2),
      'RSS MB': of(name, 'rssMb').toFixed(0),
    },
  ])
  console.table(Object.fromEntries(table.filter(([name]) => name !== 'upstream itself' || scenario.slow)))
}
await upstream.stop()
process.exit(0)
