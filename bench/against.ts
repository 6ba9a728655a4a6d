/**
 * This state of the project beside another one: pairs of fresh processes that take turns, the routers on one core, the load and
 * the upstream on another. `npm run bench -- against <git ref> [pairs]`.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { percentile } from './load.ts'
import { type Measured, pin, startMeasured } from './measured.ts'
import { chunksPerStream, key, measure, routed, scenarios } from './ways.ts'

const [ref, pairs = '5'] = process.argv.slice(3)
if (!ref) throw new Error('Name the commit to compare with: npm run bench -- against <git ref> [pairs]')

const project = join(import.meta.dirname, '..')
const other = mkdtempSync(join(tmpdir(), 'bench-against-'))
const git = (...words: string[]) =>
  execFileSync('git', ['-C', project, ...words], { stdio: ['ignore', 'pipe', 'inherit'] })
git('worktree', 'add', '--force', '--detach', other, ref)
symlinkSync(join(project, 'node_modules'), join(other, 'node_modules'))

const [loadCpu, routerCpu] = [0, 1]
pin(process.pid, loadCpu)
const upstream = await startMeasured('upstream.ts', {}, { cpu: loadCpu })

type State = 'here' | 'there'
const folders: Record<State, string> = { here: join(project, 'bench'), there: join(other, 'bench') }
const states = Object.keys(folders) as State[]
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
  const ratios = found.map(({ here, there }) => here / there).sort((a, b) => a - b)
  return {
    name,
    [ref]: percentile(sorted(found, 'there'), 0.5).toFixed(2),
    here: percentile(sorted(found, 'here'), 0.5).toFixed(2),
    'here ÷ there': percentile(ratios, 0.5).toFixed(3),
    pairs: ratios.map((ratio) => ratio.toFixed(2)).join(' '),
  }
})
console.log('\nCPU µs of all threads per call (whole replies) and per chunk (streams): medians of the pairs')
console.table(rows)
await upstream.stop()
process.exit(0)

/** One process of each state, every way in alternating slices. */
async function measurePair(): Promise<void> {
  const env = { BENCH_UPSTREAM: upstream.url, BENCH_KEY: key, LOG_LEVEL: 'info' }
  const routers = new Map<State, Measured>()
  for (const state of states)
    routers.set(state, await startMeasured('router.ts', env, { folder: folders[state], cpu: routerCpu }))
  for (const scenario of scenarios) {
    const unit = scenario.stream ? chunksPerStream : 1
    for (const way of routed) {
      const measured: Record<State, number[]> = { here: [], there: [] }
      for (const state of states) await measure(routers.get(state) as Measured, way, { ...scenario, calls: 1 })
      const slice = { ...scenario, warm: 0, calls: Math.ceil(scenario.calls / slices) }
      for (let count = 0; count < slices * 2; count++) {
        const state = states[(count + (count >> 1)) % 2] as State
        const { cpuUs } = await measure(routers.get(state) as Measured, way, slice)
        measured[state].push(cpuUs / unit)
      }
      const name = `${way.name}, ${scenario.name}`
      const [here, there] = [quiet(measured.here), quiet(measured.there)]
      figures.set(name, [...(figures.get(name) ?? []), { here, there }])
    }
  }
  for (const router of routers.values()) await router.stop()
}

function quiet(values: number[]): number {
  return percentile(
    values.sort((a, b) => a - b),
    0.25,
  )
}

function sorted(found: Record<State, number>[], state: State): number[] {
  return found.map((pair) => pair[state]).sort((a, b) => a - b)
}
