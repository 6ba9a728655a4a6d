/**
 * What a refused call costs while the process has as many calls as it may: CPU of all its threads, beside a server that refuses
 * everything, and beside a call that is answered. `npm run bench -- refusals`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { load } from './load.ts'
import { pin, startMeasured } from './measured.ts'
import { here, startRouter } from './subjects.ts'
import { firstCall } from './ways.ts'

const [loadCpu, subjectCpu] = ['0', '1']
pin(process.pid, loadCpu)
const upstream = await startMeasured('upstream.ts', {}, { cpus: loadCpu })
const router = await startRouter(here, upstream.url, { cpus: subjectCpu })
const bare = await startMeasured('refuser.ts', {}, { cpus: subjectCpu })
const dispatcher = new Agent({ allowH2: false, connections: 64 })
const headers = { authorization: `Bearer ${router.key}`, 'content-type': 'application/json' }
const path = '/v1/chat/completions'
await load(router.url + path, { calls: 16_000, concurrent: 32, body: firstCall, headers })
const answered = await cpuOf(
  router,
  () => load(router.url + path, { calls: 10_000, concurrent: 32, body: firstCall, headers }),
  10_000,
)
const text = readFileSync(router.config, 'utf8')
writeFileSync(router.config, text.replace('server: {', 'server: { limits: { concurrent: 1, queue: 1 },'))
await setTimeout(1_500)
const microseconds: Record<string, number> = { answered }
for (let round = 0; round < 3; round++) {
  for (const [name, subject] of [
    ['refused', router],
    ['bare', bare],
  ] as const) {
    await refusals(subject.url + path, 4_000)
    const us = await cpuOf(subject, () => refusals(subject.url + path, 20_000), 20_000)
    microseconds[name] = Math.min(microseconds[name] ?? Infinity, us)
  }
}
console.table(microseconds)
await router.stop()
await upstream.stop()
await bare.stop()
process.exit(0)

async function cpuOf(subject: { used(): Promise<{ cpuUs: number }> }, work: () => Promise<unknown>, calls: number) {
  const before = await subject.used()
  await work()
  return ((await subject.used()).cpuUs - before.cpuUs) / calls
}

async function refusals(url: string, calls: number) {
  let left = calls
  const body = JSON.stringify(firstCall)
  const caller = async () => {
    while (left-- > 0) {
      const answer = await request(url, { method: 'POST', headers, body, dispatcher })
      await answer.body.dump()
    }
  }
  await Promise.all(Array.from({ length: 64 }, caller))
}
