/**
 * This state of the project beside another one: pairs of fresh processes that take turns, the routers on one core, the load and
 * the upstream on another. `npm run bench -- against <git ref> [pairs]`; with `BENCH_ONLY=embeddings;streams` only the measurements
 * whose name contains one of these texts.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { median, percentile, sorted } from './load.ts'
import { pin, startMeasured } from './measured.ts'
import { here, startRouter } from './subjects.ts'
import type { Subject } from './types.ts'
import { embeddings, measure, type Scenario, scenarios, type Way, ways } from './ways.ts'

const [ref, pairs = '5'] = process.argv.slice(3)
if (!ref) throw new Error('Name the commit to compare with: npm run bench -- against <git ref> [pairs]')

const other = mkdtempSync(join(tmpdir(), 'bench-against-'))
const git = (...words: string[]) =>
  execFileSync('git', ['-C', here, ...words], { stdio: ['ignore', 'pipe', 'inherit'] })
git('worktree', 'add', '--force', '--detach', other, ref)
symlinkSync(join(here, 'node_modules'), join(other, 'node_modules'))

const [loadCpu, routerCpu] = ['0', '1']
pin(process.pid, loadCpu)
const upstream = await startMeasured('upstream.ts', {}, { cpus: loadCpu })

type State = 'here' | 'there'
const folders: Record<State, string> = { here, there: other }
const states = Object.keys(folders) as State[]
const only = (process.env.BENCH_ONLY ?? '').split(';')
/** Alternating slices of one pair; the quietest quarter of them counts, so that other work on the machine does not. */
const slices = 10

const figures = new Map<string, Record<State, number>[]>()
try {
  for (let pair = 1; pair <= Number(pairs); pair++) {
    await measurePair()
    console.log(`pair ${pair} of ${pairs}`)
  }
} finally {
  git('worktree', 'remove', '--force', other)
  rmSync(other, { recursive: true, force: true })
}

const rows = [...figures].map(([name, found]) => {
  const ratios = sorted(found.map(({ here, there }) => here / there))
  return {
    name,
    [ref]: median(found.map(({ there }) => there)).toFixed(2),
    here: median(found.map(({ here }) => here)).toFixed(2),
    'here ÷ there': median(ratios).toFixed(3),
    pairs: ratios.map((ratio) => ratio.toFixed(2)).join(' '),
  }
})
console.log('\nCPU µs of all threads per call (whole replies) and per chunk (streams): medians of the pairs')
console.table(rows)
await upstream.stop()
process.exit(0)

function isMeasured(way: Way, { slow, stream, thinking, long }: Scenario): boolean {
  return !slow && (way !== embeddings || !(stream || thinking || long))
}

/** One process of each state, every way in alternating slices. */
async function measurePair(): Promise<void> {
  const routers = new Map<State, Subject>()
  for (const state of states) routers.set(state, await startRouter(folders[state], upstream.url, { cpus: routerCpu }))
  for (const scenario of scenarios) {
    for (const way of [...ways, embeddings]) {
      const name = `${way.name}, ${scenario.name}`
      if (!isMeasured(way, scenario) || !only.some((text) => name.includes(text))) continue
      const measured: Record<State, number[]> = { here: [], there: [] }
      for (const state of states) await measure(routers.get(state) as Subject, way, { ...scenario, calls: 1 })
      const slice = { ...scenario, warm: 0, calls: Math.ceil(scenario.calls / slices) }
      for (let count = 0; count < slices * 2; count++) {
        const state = states[(count + (count >> 1)) % 2] as State
        const { cpuUs } = await measure(routers.get(state) as Subject, way, slice)
        measured[state].push(cpuUs)
      }
      const pair = { here: quiet(measured.here), there: quiet(measured.there) }
      figures.set(name, [...(figures.get(name) ?? []), pair])
    }
  }
  for (const router of routers.values()) await router.stop()
}

function quiet(values: readonly number[]): number {
  return percentile(sorted(values), 0.25)
}
