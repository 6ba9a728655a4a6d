/**
 * What a call waits for while 1,000 streams of ten events a second go on: the router and a bare proxy, each alone on one core.
 * `npm run bench -- crowd`.
 */
import { setTimeout } from 'node:timers/promises'
import { load, percentile } from './load.ts'
import { pin, startMeasured } from './measured.ts'
import { here, startProxy, startRouter } from './subjects.ts'
import type { Subject } from './types.ts'
import { firstCall, steadyStream } from './ways.ts'

const streams = 1_000
const calls = 200
const [loadCpu, subjectCpu] = ['0', '1']
pin(process.pid, loadCpu)
const upstream = await startMeasured('upstream.ts', {}, { cpus: loadCpu })
const rows: Record<string, Record<string, string>> = {}
await measure('bare proxy', await startProxy(upstream.url, { cpus: subjectCpu }))
await measure('router', await startRouter(here, upstream.url, { cpus: subjectCpu }))
console.table(rows)
await upstream.stop()
process.exit(0)

async function measure(name: string, subject: Subject): Promise<void> {
  const url = `${subject.url}/v1/chat/completions`
  const headers = { authorization: `Bearer ${subject.key}` }
  const oneAtATime = () => load(url, { calls, concurrent: 1, body: firstCall, headers })
  await load(url, { calls: 4_000, concurrent: 32, body: firstCall, headers })
  rows[`${name}, alone`] = row((await oneAtATime()).latenciesMs)
  const crowd = load(url, { calls: streams, concurrent: streams, body: steadyStream, headers })
  await setTimeout(3_000)
  const before = await subject.used()
  const begun = performance.now()
  const { latenciesMs } = await oneAtATime()
  const share = ((await subject.used()).cpuUs - before.cpuUs) / 10 / (performance.now() - begun)
  rows[`${name}, beside ${streams} streams`] = { ...row(latenciesMs), 'of the core': `${share.toFixed(0)} %` }
  await crowd
  await subject.stop()
}

function row(latenciesMs: readonly number[]): Record<string, string> {
  const at = (share: number) => percentile(latenciesMs, share).toFixed(1)
  return { 'call p50 ms': at(0.5), 'p99 ms': at(0.99), 'longest ms': at(1) }
}
