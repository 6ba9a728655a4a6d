/**
 * The start and the memory of the router as shipped, and the time of `check`: fresh processes on an empty database, with all providers and
 * models.
 * `npm run bench -- start [rounds]`: medians of the rounds.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { load, median } from './load.ts'
import { pin, startMeasured } from './measured.ts'
import { firstAnswer, firstKey, here, routerFolder } from './subjects.ts'
import { firstCall, slowStream } from './ways.ts'

const rounds = Number(process.argv[3] ?? 3)
const [loadCpu, routerCpu] = ['0', '1']
pin(process.pid, loadCpu)
const upstream = await startMeasured('upstream.ts', {}, { cpus: loadCpu })

const loads = {
  'with 1,000 slow streams': { calls: 1_000, concurrent: 1_000, body: slowStream },
  'under load, 32 calls at a time': { calls: 20_000, concurrent: 32, body: firstCall },
}

const figures = new Map<string, number[]>()
const remember = (name: string, value: number) => figures.set(name, [...(figures.get(name) ?? []), value])

const cache = mkdtempSync(join(tmpdir(), 'bench-cache-'))
await measureStart('first start (nothing kept), ms to the first call: demo', 'demo/echo')
for (let round = 1; round <= rounds; round++) {
  measureChecks()
  await measureStart('start on one core, ms to the first call: demo', 'demo/echo', routerCpu)
  await measureStart('start on one core, ms to the first call: OpenAI', firstCall.model, routerCpu)
  await measureStart('start on all cores, ms to the first call: OpenAI', firstCall.model)
  await measureMemory()
  console.error(`round ${round} of ${rounds}`)
}
console.table(
  Object.fromEntries(
    [...figures].map(([name, values]) => [
      name,
      { median: Math.round(median(values)), all: values.map(Math.round).join(' ') },
    ]),
  ),
)
rmSync(cache, { recursive: true, force: true })
await upstream.stop()
process.exit(0)

/** Measures `check` on one core, so that the time is what it costs. */
function measureChecks(): void {
  const files = mkdtempSync(join(tmpdir(), 'bench-check-'))
  const env = { ...process.env, INFERENCE_ROUTER_CACHE: files }
  for (const name of ['check on one core, ms: nothing kept', 'check on one core, ms: again']) {
    const begun = performance.now()
    const command = ['--cpu-list', routerCpu, process.execPath, join(here, 'src/start.js'), 'check']
    execFileSync('taskset', command, { env, cwd: here, stdio: 'ignore' })
    remember(name, performance.now() - begun)
  }
  rmSync(files, { recursive: true, force: true })
}

async function measureStart(name: string, model: string, cpus?: string): Promise<void> {
  const router = await start(model, cpus)
  remember(name, router.startMs)
  await router.stop('SIGTERM')
}

/** A process of its own for each load: what one has left would count for the other. */
async function measureMemory(): Promise<void> {
  for (const [name, work] of Object.entries(loads)) {
    const router = await start(firstCall.model, routerCpu)
    await setTimeout(5_000)
    remember('RSS at rest, MB', router.rssMb())
    const headers = { authorization: `Bearer ${firstKey}` }
    const done = load(`${router.url}/v1/chat/completions`, { ...work, headers })
    remember(`RSS ${name}, MB at most`, await router.mostMbDuring(done))
    await router.stop('SIGTERM')
  }
}

/** A router without anything of the bench in its process. */
async function start(model: string, cpus: string | undefined) {
  const { folder, port } = await routerFolder(here, upstream.url)
  const log = openSync(join(folder, 'data/log'), 'a')
  const command = [process.execPath, join(here, 'src/start.js'), 'serve', '--config', join(folder, 'config.yaml')]
  const [program = '', ...words] = cpus === undefined ? command : ['taskset', '--cpu-list', cpus, ...command]
  const env = { ...process.env, INFERENCE_ROUTER_ADMIN_KEY: firstKey, INFERENCE_ROUTER_CACHE: cache, LOG_LEVEL: 'info' }
  const begun = performance.now()
  const child = spawn(program, words, { env, stdio: ['ignore', log, log] })
  const url = `http://127.0.0.1:${port}`
  await firstAnswer(child, url, model)
  const startMs = performance.now() - begun
  const rssMb = () => Number(execFileSync('ps', ['-o', 'rss=', '-p', `${child.pid}`], { encoding: 'utf8' })) / 1_024
  return {
    url,
    startMs,
    rssMb,
    async mostMbDuring(work: Promise<unknown>): Promise<number> {
      let most = 0
      const watching = setInterval(() => {
        most = Math.max(most, rssMb())
      }, 250)
      await work
      clearInterval(watching)
      return most
    },
    async stop(signal: NodeJS.Signals): Promise<void> {
      child.kill(signal)
      await once(child, 'exit')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
