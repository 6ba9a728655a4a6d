/**
 * Twice the load that one process can serve, of one organization, beside a second one that calls now and then: what is served,
 * how fast, and what is refused. `npm run bench -- overload [seconds]`.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { load, percentile, sorted } from './load.ts'
import { pin, startMeasured } from './measured.ts'
import { here, startRouter } from './subjects.ts'
import { firstCall } from './ways.ts'

const seconds = Number(process.argv[3] ?? 10)
/** So many calls keep the process busy; more would only wait. */
const limits = 'limits: { concurrent: 32, queue: 32 }'
const [loadCpu, subjectCpu] = ['0', '1']
pin(process.pid, loadCpu)
const upstream = await startMeasured('upstream.ts', {}, { cpus: loadCpu })
const router = await startRouter(here, upstream.url, { cpus: subjectCpu })
const dispatcher = new Agent({ allowH2: false, connections: 4_096 })
const body = JSON.stringify(firstCall)
const second = otherOrganization()

const url = `${router.url}/v1/chat/completions`
const headersOf = (key: string) => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' })
await load(url, { calls: 16_000, concurrent: 32, body: firstCall, headers: headersOf(router.key) })
const peak = await load(url, { calls: 16_000, concurrent: 32, body: firstCall, headers: headersOf(router.key) })
const text = readFileSync(router.config, 'utf8')
writeFileSync(router.config, text.replace('server: {', `server: { ${limits},`))
await setTimeout(2_000)
const half = await offered(peak.callsPerSecond / 2)
const twice = await offered(peak.callsPerSecond * 2)
console.table({
  'all at once': { 'served per s': Math.round(peak.callsPerSecond) },
  'half the load': half,
  'twice the load': twice,
})
await router.stop()
await upstream.stop()
process.exit(0)

/** Calls that come at a rate, whether or not earlier ones are answered; one in a hundred milliseconds of the second organization. */
async function offered(perSecond: number) {
  const own: number[] = []
  const others: number[] = []
  let refused = 0
  let sent = 0
  const open = new Set<Promise<void>>()
  const call = async (key: string, times: number[]) => {
    const begun = performance.now()
    const answer = await request(url, { method: 'POST', headers: headersOf(key), body, dispatcher })
    await answer.body.dump()
    if (answer.statusCode === 200) times.push(performance.now() - begun)
    else refused++
  }
  const begin = (key: string, times: number[]) => {
    const running = call(key, times)
      .catch(() => {})
      .finally(() => open.delete(running))
    open.add(running)
  }
  const begun = performance.now()
  let nextOther = begun
  while (performance.now() - begun < seconds * 1_000) {
    const due = ((performance.now() - begun) / 1_000) * perSecond
    for (; sent < due; sent++) begin(router.key, own)
    if (performance.now() >= nextOther) {
      begin(second, others)
      nextOther += 100
    }
    await setTimeout(1)
  }
  await Promise.all(open)
  const ms = (values: readonly number[], share: number) => percentile(sorted(values), share).toFixed(1)
  return {
    'offered per s': Math.round(sent / seconds),
    'served per s': Math.round(own.length / seconds),
    refused,
    'p50 ms': ms(own, 0.5),
    'p99 ms': ms(own, 0.99),
    'second organization: served': others.length,
    'its p50 ms': ms(others, 0.5),
    'its p99 ms': ms(others, 0.99),
  }
}

/** A key of another organization. */
function otherOrganization(): string {
  const run = (...args: string[]) =>
    execFileSync(process.execPath, [`${here}/src/main.ts`, ...args, '--config', router.config], { encoding: 'utf8' })
  run('org', 'create', 'second')
  const made = run('key', 'create', 'second', '--org', 'second', '--json')
  return (JSON.parse(made) as { api_key: string }).api_key
}
