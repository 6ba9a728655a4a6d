/**
 * Twice the load that one process can serve, of one organization, beside a second one that calls now and then: what is served,
 * how fast, and what is refused. `npm run bench -- overload [seconds] [rounds]`.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { load, percentile, sorted } from './load.ts'
import { pin, startMeasured } from './measured.ts'
import { callBytes, OpenLoad } from './open-load.ts'
import { here, startRouter } from './subjects.ts'
import { firstCall, inAMoment, momentMs } from './ways.ts'

const seconds = Number(process.argv[3] ?? 10)
const rounds = Number(process.argv[4] ?? 1)
/** So many callers that the process always has something to do: a call takes half as long again as one alone. */
const atOnce = 400
/** Long queues make the last ones that get their turn late. */
const waiting = 10
const [loadCpu, subjectCpu] = ['0', '1']
pin(process.pid, loadCpu)
const upstream = await startMeasured('upstream.ts', {}, { cpus: loadCpu })
const router = await startRouter(here, upstream.url, { cpus: subjectCpu })
const url = `${router.url}/v1/chat/completions`
const body = { ...firstCall, messages: [{ role: 'user', content: inAMoment }] }
/** Clients keep their connections: Node accepts one new connection in each turn of its event loop. */
const line = new OpenLoad(url)
const calls = callBytes(url, router.key, body)
const others = callBytes(url, otherOrganization(), body)

const headers = { authorization: `Bearer ${router.key}`, 'content-type': 'application/json' }
await load(url, { calls: 16_000, concurrent: 32, body: firstCall, headers })
await closed(2, 2_000)
await closed(8)
const settings = readFileSync(router.config, 'utf8')
for (let round = 0; round < rounds; round++) {
  writeFileSync(router.config, settings)
  await setTimeout(1_500)
  const peak = await closed(seconds)
  // As many calls as are under way while the process does what it can.
  const concurrent = Math.ceil((1.05 * peak * momentMs) / 1_000)
  writeFileSync(
    router.config,
    settings.replace('server: {', `server: { limits: { concurrent: ${concurrent}, queue: ${waiting} },`),
  )
  await setTimeout(1_500)
  const half = await offered(peak / 2)
  const twice = await offered(peak * 2)
  console.log(`at most ${Math.round(peak)} calls a second; limits: ${concurrent} at once, ${waiting} waiting`)
  console.table({ 'half the load': half, 'twice the load': twice })
}
await router.stop()
await upstream.stop()
process.exit(0)

/** Calls a second when there are always more than can be served. */
async function closed(duration: number, callers = atOnce): Promise<number> {
  const begun = performance.now()
  const until = begun + duration * 1_000
  let served = 0
  const next = (status: number) => {
    if (status === 200) served++
    if (performance.now() < until) line.send(calls, next)
  }
  for (let index = 0; index < callers; index++) line.send(calls, next)
  while (line.open > 0) await setTimeout(5)
  return served / ((performance.now() - begun) / 1_000)
}

/** Calls that come at a rate, whether or not earlier ones are answered; one in a hundred milliseconds of the second organization. */
async function offered(perSecond: number) {
  const own: number[] = []
  const second: number[] = []
  const refusals: number[] = []
  let failed = 0
  let sent = 0
  const into = (times: number[]) => (status: number, ms: number) => {
    if (status === 200) times.push(ms)
    else if (status === 429) refusals.push(ms)
    else failed++
  }
  const [ofOwn, ofSecond] = [into(own), into(second)]
  const before = await router.used()
  const loadBefore = await loadUs()
  const begun = performance.now()
  let nextOther = begun
  while (performance.now() - begun < seconds * 1_000) {
    const due = ((performance.now() - begun) / 1_000) * perSecond
    for (; sent < due; sent++) line.send(calls, ofOwn)
    if (performance.now() >= nextOther) {
      line.send(others, ofSecond)
      nextOther += 100
    }
    await setTimeout(1)
  }
  while (line.open > 0) await setTimeout(5)
  const took = (performance.now() - begun) / 1_000
  const { cpuUs } = await router.used()
  const loadTook = (await loadUs()) - loadBefore
  const ms = (values: readonly number[], share: number) => Number(percentile(sorted(values), share).toFixed(1))
  return {
    'offered per s': Math.round(sent / seconds),
    'served per s': Math.round(own.length / took),
    refused: refusals.length,
    failed,
    'p50 ms': ms(own, 0.5),
    'p99 ms': ms(own, 0.99),
    'refusals: p99 ms': ms(refusals, 0.99),
    'second: served': second.length,
    'its p50 ms': ms(second, 0.5),
    'its p99 ms': ms(second, 0.99),
    'busy %': Math.round((cpuUs - before.cpuUs) / took / 10_000),
    'load busy %': Math.round(loadTook / took / 10_000),
  }
}

/** CPU of the core that the callers and the provider share. Where it is the one that is busy, the bench measures itself. */
async function loadUs(): Promise<number> {
  const { user, system } = process.cpuUsage()
  return user + system + (await upstream.used()).cpuUs
}

/** A key of another organization. */
function otherOrganization(): string {
  const run = (...args: string[]) =>
    execFileSync(process.execPath, [`${here}/src/start.js`, ...args, '--config', router.config], { encoding: 'utf8' })
  run('org', 'create', 'second')
  const made = run('key', 'create', 'second', '--org', 'second', '--json')
  return (JSON.parse(made) as { api_key: string }).api_key
}
