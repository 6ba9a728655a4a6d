/**
 * This state of the project beside another one, in pairs: fresh processes that alternate, the router alone on one core, the
 * load and the upstream on another. `npm run bench -- against <git ref> [pairs]`.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { percentile } from './load.ts'
import { pin, startMeasured } from './measured.ts'
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
const states: Record<State, string> = { here: join(project, 'bench'), there: join(other, 'bench') }
const figures: Record<string, Record<State, number>[]> = {}
try {
  for (let pair = 0; pair < Number(pairs); pair++) {
    const order: State[] = pair % 2 === 0 ? ['there', 'here'] : ['here', 'there']
    for (const state of order) await runOnce(state, pair)
    console.log(`pair ${pair + 1} of ${pairs}`)
  }
} finally {
  git('worktree', 'remove', '--force', other)
  rmSync(other, { recursive: true, force: true })
}

const rows = Object.entries(figures).map(([name, found]) => {
  const ratios = found.map(({ here, there }) => here / there).sort((a, b) => a - b)
  return {
    name,
    [ref]: percentile(sorted(found, 'there'), 0.5).toFixed(2),
    here: percentile(sorted(found, 'here'), 0.5).toFixed(2),
    'here ÷ there': percentile(ratios, 0.5).toFixed(3),
    pairs: ratios.map((ratio) => ratio.toFixed(2)).join(' '),
  }
})
console.log('\nCPU µs of all threads per call (whole replies) and per chunk (streams): medians')
console.table(rows)
await upstream.stop()
process.exit(0)

async function runOnce(state: State, pair: number): Promise<void> {
  const env = { BENCH_UPSTREAM: upstream.url, BENCH_KEY: key, LOG_LEVEL: 'info' }
  const router = await startMeasured('router.ts', env, { folder: states[state], cpu: routerCpu })
  for (const scenario of scenarios)
    for (const way of routed) {
      const { cpuUs } = await measure(router, way, scenario)
      const name = `${way.name}, ${scenario.name}`
      figures[name] ??= []
      figures[name][pair] ??= { here: Number.NaN, there: Number.NaN }
      figures[name][pair][state] = scenario.stream ? cpuUs / chunksPerStream : cpuUs
    }
  await router.stop()
}

function sorted(found: Record<State, number>[], state: State): number[] {
  return found.map((pair) => pair[state]).sort((a, b) => a - b)
}
